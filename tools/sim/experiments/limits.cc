// E55: limits and promises in requests, on one OSD and over all of them (RULES.md §3.8); limits
// that mounts divide among each other (common/qos/README.md).
#include <algorithm>
#include <vector>

#include "tools/sim/devices/simple.h"
#include "tools/sim/experiments/all.h"
#include "tools/sim/experiments/dsfq_setup.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;

constexpr double kMiBd = static_cast<double>(kMiB);

struct Served {
  double rate = 0;  // MiB/s
  double iops = 0;
  double worst_second = 0;  // MiB/s
  double fullest_osd = 0;   // MiB/s
};

// The class on three OSDs, so much of it on the first, hogs on all.
Served OnThree(Run& run, const ClassSpec& spec, double on_first, uint64_t bytes, bool hogs) {
  Cluster cluster(run.seed());
  SchedulerConfig config = ProfileOf("unified", 4);
  config.token_rate = 60 * kMiB;
  if (run.broken(Fault::kReservationOff)) config.guarantee = GuaranteeKind::kNone;
  for (int i = 0; i < 3; ++i) cluster.AddOsd(config, Flat(60 * kMiBd));
  if (run.broken(Fault::kDelayOff)) cluster.SendDelays(false);
  SilenceBestEffort(&cluster);
  cluster.SetClass(spec);
  if (run.broken(Fault::kLimitOff)) {
    ClassSpec unlimited = spec;
    unlimited.limit_bytes_per_s.reset();
    cluster.SetClass(unlimited);
  }
  cluster.SetClass(Spec(kG, 1));
  for (size_t osd = 0; hogs && osd < 3; ++osd) {
    cluster.Start({.class_id = kG, .outstanding = 16, .osd = osd, .coordinator = 1 + osd});
  }
  Prng prng(MixHash(run.seed(), 55));
  Load* load = cluster.Start(
      {.class_id = spec.id, .outstanding = 48, .bytes = bytes, .route = [&](uint64_t) {
         const size_t osd = prng.Chance(on_first) ? 0 : prng.Uniform(1, 2);
         return std::pair<size_t, size_t>(osd, 0);
       }});
  cluster.RunTo(30s);
  Served served{load->MiBps(2s, 30s), load->Iops(2s, 30s)};
  for (int osd = 0; osd < 3; ++osd) {
    served.fullest_osd = std::max(served.fullest_osd, load->MiBps(2s, 30s, osd));
  }
  for (double rate : load->Series(2s, 30s, 1s)) {
    served.worst_second = std::max(served.worst_second, rate / kMiBd);
  }
  return served;
}

constexpr double kTotal = 20;  // MiB/s

struct Seconds {
  double lowest = 0;  // MiB/s
  double highest = 0;
};

// A class with a limit, all of whose mounts ask for all that they can get from 0 s on, from three
// OSDs or, apart, from one each.
Seconds Divided(Run& run, size_t mounts, bool apart) {
  constexpr uint64_t kRequest = 256 * kKiB;
  Cluster cluster(run.seed());
  const bool undivided = run.broken(Fault::kLimitUndivided);
  if (undivided) {
    cluster.HoldLimits(true);
  } else {
    cluster.DivideLimits();
  }
  SchedulerConfig config = ProfileOf("unified", 4);
  config.token_rate = 60 * kMiB;
  for (int i = 0; i < 3; ++i) cluster.AddOsd(config, Flat(60 * kMiBd));
  SilenceBestEffort(&cluster);
  ClassSpec spec = Spec(kF);
  if (!run.broken(Fault::kLimitOff)) spec.limit_bytes_per_s = static_cast<uint64_t>(kTotal) * kMiB;
  cluster.SetClass(spec);
  ClassSpec net = spec;
  if (undivided) net.limit_bytes_per_s = 4 * *spec.limit_bytes_per_s;  // as with parts
  for (int i = 0; undivided && i < 3; ++i) cluster.osd(i).policy().SetClass(net, TimePoint{0});
  std::vector<Load*> loads;
  for (size_t mount = 0; mount < mounts; ++mount) {
    const auto route = [=](uint64_t n) {
      return std::pair<size_t, size_t>((apart ? mount : mount + n) % 3, mount);
    };
    loads.push_back(
        cluster.Start({.class_id = kF, .outstanding = 16, .bytes = kRequest, .route = route}));
  }
  cluster.RunTo(30s);
  std::vector<double> totals(28);
  for (const Load* load : loads) {
    const std::vector<double> series = load->Series(2s, 30s, 1s);
    for (size_t i = 0; i < totals.size(); ++i) totals[i] += series[i] / kMiBd;
  }
  const auto [lowest, highest] = std::minmax_element(totals.begin(), totals.end());
  return {*lowest, *highest};
}

void CheckDivided(Run& run, size_t mounts, bool apart) {
  const Seconds seconds = Divided(run, mounts, apart);
  // 2 % and one request of a quarter of a MiB for each mount.
  const double off = .02 * kTotal + .25 * static_cast<double>(mounts);
  const std::string of =
      ", " + std::to_string(mounts) + " mounts" + (apart ? " on an OSD each" : "");
  run.Between("limit of 20 MiB/s: lowest second" + of, seconds.lowest, kTotal - off, kTotal + off,
              kTotal);
  run.Between("limit of 20 MiB/s: highest second" + of, seconds.highest, kTotal - off, kTotal + off,
              kTotal);
}

void RunLimits(Run& run) {
  for (const size_t mounts : {1, 2, 3, 6}) CheckDivided(run, mounts, false);
  CheckDivided(run, 3, true);
  for (double on_first : {1. / 3, .8, 1.0}) {
    const std::string at =
        ", " + std::to_string(static_cast<int>(on_first * 100)) + " % on one OSD";
    ClassSpec limited = Spec(kF);
    limited.limit_bytes_per_s = 30 * kMiB;
    const Served total = OnThree(run, limited, on_first, 64 * kKiB, false);
    run.NearPart("limit of 30 MiB/s over all OSDs" + at, total.rate, 30, .04);
    run.Between("its highest second" + at, total.worst_second, 30 * .99, 30 * 1.03, 30);
    ClassSpec per_osd = Reserved(kF, kMiB);
    per_osd.limit_bytes_per_s = 10 * kMiB;
    const Served each = OnThree(run, per_osd, on_first, 64 * kKiB, false);
    // With even access now one and now another is the fullest: none is always at its limit.
    run.Between("limit of 10 MiB/s on each OSD: on the fullest" + at, each.fullest_osd,
                on_first > .5 ? 9.8 : 9.5, 10.2, 10);
    // It limits a class that waits for answers: 10 of `on_first` of what is asked for, or less
    // where chance makes an OSD fuller than its part.
    run.Between("limit of 10 MiB/s on each OSD: in all" + at, each.rate, 10 / on_first * .95,
                10 / on_first * 1.02, 10 / on_first);
    ClassSpec both = limited;
    both.weight = .001;
    both.reservation = Reservation{20 * kMiB, ReservationScope::kCluster, std::nullopt};
    both.limit_bytes_per_s = 10 * kMiB;
    run.NearPart("a limit below the promise cuts it" + at,
                 OnThree(run, both, on_first, 64 * kKiB, true).rate, 10, .05);
    ClassSpec requests = Spec(kF, .001);
    requests.reservation = Reservation{0, ReservationScope::kCluster, std::nullopt, 2000};
    const Served iops = OnThree(run, requests, on_first, 8 * kKiB, true);
    run.NearPart("promise of 2000 requests a second over all OSDs" + at, iops.iops, 2000, .05);
  }
  ClassSpec one = Spec(kF, .001);
  one.reservation = Reservation{0, ReservationScope::kOsd, std::nullopt, 1000};
  run.NearPart("promise of 1000 requests a second on each OSD, all on one",
               OnThree(run, one, 1, 8 * kKiB, true).iops, 1000, .05);
  one.reservation = Reservation{4 * kMiB, ReservationScope::kOsd, std::nullopt, 1000};
  run.NearPart("with 4 MiB/s promised as well: the less of the two (512 of 8 KiB)",
               OnThree(run, one, 1, 8 * kKiB, true).iops, 512, .05);
}

}  // namespace

void AddLimits(std::vector<Experiment>* all) {
  all->push_back(
      {"E55", "Limits and promises in requests", "RULES.md §3.8 (beyond the papers)",
       "A limit of 30 MiB/s and a promise of 2,000 requests a second over three OSDs hold "
       "in total, however the access is skewed; with scope osd they hold on each; a limit "
       "below a promise cuts it; of a promise in bytes and in requests the less is owed. A limit "
       "of "
       "20 MiB/s that 1, 2, 3 and 6 mounts divide, also with an OSD each, is used and kept within "
       "2 % and a request of each mount in every second from 2 s on.",
       RunLimits});
}

}  // namespace weir::sim
