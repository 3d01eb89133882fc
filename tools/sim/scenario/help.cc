#include "tools/sim/scenario/scenario.h"

namespace weir::sim {

std::string ScenarioHelp() {
  return R"(A scenario is a TOML file. Sizes, rates and times are texts: "64KiB", "40MiB/s", "30s".

duration = "30s"        how long it runs, in virtual time
window = "1s"           one point of the time series
seed = 1                of all chance
limits_held_by = "mounts"   and by the OSDs, as in the product; "osds": by each OSD alone, which hears of the others late

[[device]]              an OSD and its disk; at least one
  model = "flat"        flat: one request after the other at `rate`
                        slots: `slots` servers sharing `rate`, exponential service times
                        exponential: one server of `iops` requests/s on average, whatever their size
                        hdd: a disk by `disk`: st32171w, st34501n, dtla-307075, 6y080p0, ultra320-15k
                        ssd: `channels`, `buffer`;  recorded: service times from `file`, one a line, in s
  name = "osd.0"        default: osd.0, osd.1 ...
  rate = "100MiB/s"     flat, slots                slots = 20          slots
  disk = "dtla-307075"  hdd                        disks = 4, stripe_unit = "64KiB": a RAID-0 of them
  channels = 8, buffer = "4MiB"   ssd              file = "times.txt"  recorded
  tiers = [{ name = "hd", model = "exponential", iops = 100 }, { name = "ssd", model = "ssd" }]
                        in place of a model: parts that work at the same time behind one scheduler; capacity = 500:
                        requests/s that allocation counts with (default: what it measures)
  count = 3             so many like this

[scheduler]             of all devices; default: profile unified
  profile = "unified"   a row of `osdctl osd set --profile`; single pieces override it:
  gate, surplus, sharing, dispatch, cost, maximizer = true, depth = 8 (0: auto)
  token_rate = "40MiB/s", best_effort_min = "1MiB/s"
  iops_max = 100        requests/s that may be promised; default: one for each 64KiB of the token rate
  service_estimate = "auto" (or "13ms"), estimate_part = 0.9     dispatch cvc: what a request is taken to need
  run_max = 0, candidates = 1, late_mode = true, ahead_max = "0s"      of the disk; picks in its order in a row
  anticipation = true                                (0: any number), tried of that order; as CvcConfig has them
  allocation = "baa"    of devices with tiers: baa, drf, or fair: by weight (profile baa, depth 128)
  allocation_period = "1s", allocation_window = "60s", allocation_alarm = true

[[class]]
  name = "gold"
  weight = 1, min_weight = 0.1, limit = "20MiB/s"
  reservation = "10MiB/s", iops = 200, scope = "cluster" (or "osd"), reservation_for = "10s"
  transactions = ["8MiB/s", "2MiB/s"]                parts of the reservation, for transactions 1, 2
  latency = "50ms", max_pending = 16, probability = 0.95     a bound (finish times, virtual disks)
  admission = "measured" (or "additive"), asks = "60s"       is there, with its workloads, once it was admitted on every
                        device: by what these measured until then, or by its worst case; default: always there
  type = "throughput"   a virtual disk (profile vd): rent-a-disk, latency or throughput, of
  peak = 0.25           so much of the device's time; throughput = "10MiB/s", tolerance = 0.05

[[workload]]            at least one
  class = "gold"        a class above, or "best-effort"
  name = "reader"       default: the class
  threads = 4           closed loop: so many requests under way; think = "1ms" between them
  arrivals = 200        or open: requests a second, Poisson; burstiness = 0.75: in bursts (b-model)
  pace = "10MiB/s"      or closed, but no faster than that
  stand_in = "financial", speed = 1.25       or as a published workload: financial, websearch, tpc-c,
                                             exchange, openmail, video
  trace = "web.spc", format = "spc" (msr, fio), speed = 1    or as recorded, in the file beside this one: of the
  unit = 0              Storage Performance Council, MSR Cambridge, fio --write_iolog; of this ASU or disk number only
  size = "64KiB"        or ["1KiB", "16KiB"]: anything between
  reads = 0.5           part that reads              locality = 0.3   chance to follow the last request
  start_address = "0", span = "1GiB", zipf = 0.9     where on each device
  transaction = 1       of its class                 default: none
  devices = [0, 1], shares = [0.8, 0.2]              default: the first device
  tiers = [0.5, 0.5]                                 parts that go to each tier; default: all to the first
  coordinators = 1      how many mounts send it, in turn
  start = "0s", stop = "20s"
  on = "2s", off = "2s"                              threads come and go
  low = 0, high = 10, period = "60s"                 threads follow a sine

Example:
  duration = "20s"
  [[device]]
  rate = "60MiB/s"
  [scheduler]
  profile = "odis"
  token_rate = "40MiB/s"
  [[class]]
  name = "gold"
  reservation = "15MiB/s"
  [[class]]
  name = "web"
  [[workload]]
  class = "gold"
  size = "512KiB"
  start = "5s"
  [[workload]]
  class = "web"
  threads = 16
  size = "512KiB"
)";
}

}  // namespace weir::sim
