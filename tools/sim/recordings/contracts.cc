// Virtual disks (Yan and Jiang) and finish times (Stonehenge) on disks with a head.
#include <fmt/format.h>

#include "tools/sim/devices/hdd.h"
#include "tools/sim/experiments/stonehenge_setup.h"
#include "tools/sim/experiments/vd_setup.h"
#include "tools/sim/recordings/mix.h"
#include "tools/sim/workloads/arrivals.h"
#include "tools/sim/workloads/stand_ins.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;

constexpr ClassId kLarge{16}, kSmall{17}, kSteady{18}, kFree{19};

// 75 and 25 % rented, the neighbour at that locality, and one without a contract.
void RunRented(Session& session, double locality, SpareCharge spare, Duration quantum) {
  Cluster cluster(1);
  SchedulerConfig config = VdConfig();
  config.spare = spare;
  config.quantum = quantum;
  session.AddOsd(&cluster, config, FastDisk());
  cluster.SetClass(RentADisk(kLarge, .75));
  cluster.SetClass(RentADisk(kSmall, .25));
  cluster.SetClass(Spec(kFree));
  cluster.Start({.class_id = kLarge, .outstanding = 8, .shape = FlowOn(0, 1).shape()});
  cluster.Start({.class_id = kSmall, .outstanding = 8, .shape = FlowOn(1, locality).shape()});
  cluster.Start(
      {.class_id = kFree, .shape = FlowOn(1, .3).shape(), .gap = PoissonOnOff(100, 100ms, 400ms)});
  session.RunTo(&cluster, 20s);
}

// A latency disk that borrows from a throughput disk, beside a rented one.
void RunLent(Session& session, double tolerance, Duration window) {
  Cluster cluster(2);
  SchedulerConfig config = VdConfig();
  config.throughput_window = window;
  session.AddOsd(&cluster, config, FastDisk());
  cluster.SetClass(LatencyDisk(kLarge, .4, 20ms));
  cluster.SetClass(ThroughputDisk(kSteady, .4, 150, tolerance));
  cluster.SetClass(RentADisk(kSmall, .2));
  cluster.Start(
      {.class_id = kLarge, .shape = FlowOn(0, .2).shape(), .gap = PoissonOnOff(80, 300ms, 300ms)});
  cluster.Start({.class_id = kSteady, .outstanding = 8, .shape = FlowOn(1, .5).shape()});
  cluster.Start({.class_id = kSmall, .outstanding = 4, .shape = FlowOn(1, .9).shape()});
  session.RunTo(&cluster, 40s);
}

struct Order {
  std::string_view name;
  std::string_view profile;
  CvcConfig cvc;
};

// Classes promised 10, 20 and 40 requests/s of a disk of 100, with as many waiting of each.
void RunFinishTimes(Session& session, const Order& order) {
  Run run(1);
  Cluster cluster(3);
  SchedulerConfig config = StonehengeConfig(run, order.profile, 100);
  config.cvc = order.cvc;
  config.cvc.iops_max = 100;
  session.AddOsd(&cluster, config, Hdd(HddModelOf("dtla-307075")), "", 4500);
  const uint64_t third = 10'000'000'000;
  for (uint32_t i = 0; i < 3; ++i) {
    const ClassId id(16 + i);
    ServiceContract contract;
    contract.iops = 10 << i;
    if (i == 1) contract.bound = 150ms;
    if (i == 1) contract.max_pending = 4;
    cluster.SetClass(Contracted(id, contract));
    cluster.Start(
        {.class_id = id, .outstanding = 16, .shape = RandomReadsOf(8192, i * third, third)});
  }
  cluster.SetClass(Spec(kFree));
  cluster.Start({.class_id = kFree, .outstanding = 4, .shape = RandomReadsOf(8192, 0, third)});
  session.RunTo(&cluster, 40s);
}

// Stand-ins of published traces, side by side.
void RunTraces(Session& session, std::string_view profile, DeviceFactory device, double speed) {
  Cluster cluster(4);
  SchedulerConfig config = MixConfig(profile);
  config.cvc.iops_max = 100;
  session.AddOsd(&cluster, config, device);
  uint32_t i = 0;
  for (const std::string_view name : {"financial", "websearch", "tpc-c", "exchange", "video"}) {
    const ClassId id(16 + i);
    ClassSpec spec = Spec(id, 1 + i);
    if (i < 2) spec.service = {.bound = 100ms, .max_pending = 4};
    cluster.SetClass(spec);
    LoadOptions options{.class_id = id};
    Prng prng(i);
    PlayStandIn(
        name, {.speed = speed, .start = i * 8'000'000'000ull, .footprint_scale = .1, .length = 20s},
        &prng, &options);
    cluster.Start(std::move(options));
    ++i;
  }
  session.RunTo(&cluster, 20s);
}

}  // namespace

void AddContracts(std::vector<Workload>* all) {
  const auto add = [all](std::string name, std::string covers, auto run) {
    all->push_back({std::move(name), std::move(covers), std::move(run)});
  };
  for (const int locality : {100, 85, 35, 0}) {
    add(fmt::format("vd-rented-{}", locality),
        fmt::format("virtual disks of 75 and 25 %, the neighbour's locality {} %", locality),
        [=](Session& s) { RunRented(s, locality / 100.0, SpareCharge::kSystem, 0ms); });
  }
  add("vd-spare-nobody", "the same at 35 %, spare time charged to nobody",
      [](Session& s) { RunRented(s, .35, SpareCharge::kNobody, 0ms); });
  add("vd-spare-owner", "the same at 35 %, spare time charged to its user",
      [](Session& s) { RunRented(s, .35, SpareCharge::kOwner, 0ms); });
  add("vd-quantum", "the same at 35 %, a quantum of 30 ms",
      [](Session& s) { RunRented(s, .35, SpareCharge::kSystem, 30ms); });
  add("vd-lent", "a latency disk borrows from a throughput disk (tolerance 20 %)",
      [](Session& s) { RunLent(s, .2, 0ms); });
  add("vd-lent-window", "the same, averages over 2 s", [](Session& s) { RunLent(s, .2, 2s); });
  add("vd-not-lent", "the same, tolerance 0", [](Session& s) { RunLent(s, 0, 0ms); });
  static const std::vector<Order> orders{{"vc", "vc", {}},
                                         {"cscan", "cscan", {}},
                                         {"cvc", "cvc", {}},
                                         {"cvc-run", "cvc", {.run_max = 1}},
                                         {"cvc-candidates", "cvc", {.candidates = 8}},
                                         {"cvc-not-late", "cvc", {.late_mode = false}},
                                         {"cvc-ahead", "cvc", {.ahead_max = 50ms}},
                                         {"cvc-estimate", "cvc", {.fixed_estimate = 12ms}}};
  for (const Order& order : orders) {
    add(fmt::format("finish-{}", order.name),
        fmt::format("finish times `{}`: 10, 20 (with a bound) and 40 requests/s on a disk",
                    order.name),
        [&order](Session& s) { RunFinishTimes(s, order); });
  }
  for (const std::string_view profile : {"unified", "cvc", "noqos"}) {
    add(fmt::format("traces-{}", profile),
        fmt::format("`{}`: stand-ins of traces (financial, websearch, TPC-C, exchange, video) on "
                    "a RAID of disks",
                    profile),
        [profile](Session& s) {
          RunTraces(s, profile, Raid0(HddModelOf("ultra320-15k"), 4, 64 * kKiB), .8);
        });
  }
}

}  // namespace weir::sim
