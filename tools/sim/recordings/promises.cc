// Promises and limits: in bytes, in requests, over several OSDs, with an end, of transactions, with
// the bandwidth maximizer.
#include <fmt/format.h>

#include "tools/sim/devices/simple.h"
#include "tools/sim/recordings/mix.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;

constexpr ClassId kA{16}, kB{17}, kC{18}, kHog{19};

Load* StartWrites(Cluster* cluster, ClassId id, int outstanding, uint64_t bytes, size_t osd = 0) {
  return cluster->Start({.class_id = id,
                         .outstanding = outstanding,
                         .osd = osd,
                         .shape = MixShape(id, bytes, bytes, .2, .8)});
}

SchedulerConfig At(std::string_view profile, uint64_t rate, uint32_t depth = 4) {
  SchedulerConfig config = MixConfig(profile);
  config.token_rate = rate;
  config.depth = depth;
  return config;
}

// AQuA figure 9: promises of 5, 15 and 20 of 40 MiB/s, which end one after the other.
void RunWriters(Session& session, std::string_view profile, GateKind gate) {
  Cluster cluster(1);
  SchedulerConfig config = At(profile, 40 * kMiB, 4);
  config.gate = gate;
  config.maximizer = false;
  session.AddOsd(&cluster, config, Flat(60 * kMiB));
  const uint64_t promised[] = {5, 15, 20};
  for (uint32_t i = 0; i < 3; ++i) {
    const ClassId id(16 + i);
    ClassSpec spec = Reserved(id, promised[i] * kMiB);
    spec.reservation_ends = TimePoint{0} + (3 + 2 * i) * 1s;
    cluster.SetClass(spec);
    StartWrites(&cluster, id, 4, 256 * kKiB);
  }
  session.RunTo(&cluster, 12s);
}

void RunMaximizer(Session& session) {
  Cluster cluster(1);
  SimOsd& osd = session.AddOsd(&cluster, At("odis", 40 * kMiB, 4), Flat(60 * kMiB), "", 14000);
  for (const ClassId id : {kA, kB}) {
    cluster.SetClass(Reserved(id, 15 * kMiB));
    StartWrites(&cluster, id, 4, 512 * kKiB);
  }
  cluster.At(20s, [&osd] { osd.SetDeviceRate(25 * kMiB); });
  cluster.At(30s, [&osd] { osd.SetDeviceRate(60 * kMiB); });
  session.RunTo(&cluster, 40s);
}

// Two thirds of what one OSD has, over three, most of it on one, and the other way round later.
void RunOverOsds(Session& session, std::string_view profile) {
  Cluster cluster(3);
  for (size_t i = 0; i < 3; ++i) {
    session.AddOsd(&cluster, At(profile, kMixRate), Flat(kMixRate), fmt::format("osd{}", i), 6000);
  }
  cluster.SetClass(Reserved(kA, kMixRate / 3 * 2, .1, ReservationScope::kCluster));
  cluster.SetClass(Spec(kHog));
  const Shape shape = MixShape(kA, 64 * kKiB, 64 * kKiB, .5, 0);
  cluster.Start({.class_id = kA,
                 .outstanding = 48,
                 .shape = [&cluster, shape](Prng& prng, uint64_t n, Io* io) {
                   shape(prng, n, io);
                   const bool most = prng.Chance(.8);
                   const size_t favourite = cluster.now() < 2s ? 0 : 2;
                   io->osd = most ? favourite : (favourite + prng.Uniform(1, 2)) % 3;
                 }});
  for (size_t i = 0; i < 3; ++i) StartWrites(&cluster, kHog, 8, 128 * kKiB, i);
  session.RunTo(&cluster, 8s);
}

// Requests per second, alone and with bytes, with and without other OSDs.
void RunIops(Session& session, std::string_view profile) {
  Cluster cluster(4);
  for (size_t i = 0; i < 2; ++i) {
    session.AddOsd(&cluster, At(profile, kMixRate), Slots(4, kMixRate), fmt::format("osd{}", i));
  }
  ClassSpec iops = Reserved(kA, 0, .1, ReservationScope::kCluster);
  iops.reservation->iops = 300;
  ClassSpec both = Reserved(kB, 2 * kMiB, .1);
  both.reservation->iops = 400;
  for (const ClassSpec& spec : {iops, both, Spec(kHog, 4)}) cluster.SetClass(spec);
  for (const ClassId id : {kA, kB}) {
    const Shape shape = MixShape(id, 8 * kKiB, 8 * kKiB, .8, 0);
    cluster.Start(
        {.class_id = id, .outstanding = 24, .shape = [shape](Prng& prng, uint64_t n, Io* io) {
           shape(prng, n, io);
           io->osd = prng.Chance(.7) ? 0 : 1;
         }});
  }
  for (size_t i = 0; i < 2; ++i) StartWrites(&cluster, kHog, 16, 64 * kKiB, i);
  session.RunTo(&cluster, 6s);
}

// Bounds, weighed by their worst case and as measured, beside a promise in bytes of the same class.
void RunBounds(Session& session) {
  Cluster cluster(5);
  session.AddOsd(&cluster, At("unified", kMixRate, 0), Slots(4, kMixRate));
  for (uint32_t i = 0; i < 3; ++i) {
    ClassSpec spec = Spec(ClassId(16 + i), .5);
    spec.service = {.bound = (i + 1) * 10ms, .probability = .9 + .04 * i, .max_pending = i};
    if (i == 1) spec.admission = AdmissionKind::kMeasured;
    if (i == 1) spec.service.granted_iops = 60;
    if (i == 2) spec.reservation = Reservation{.bytes_per_s = 2 * kMiB};
    cluster.SetClass(spec);
    cluster.Start({.class_id = spec.id,
                   .outstanding = static_cast<int>(i + 1),
                   .shape = MixShape(spec.id, 4 * kKiB, 16 * kKiB, 1, 0),
                   .think = 2ms});
  }
  cluster.SetClass(Spec(kHog));
  StartWrites(&cluster, kHog, 64, 64 * kKiB);
  session.RunTo(&cluster, 8s);
}

void RunTransactions(Session& session, std::string_view profile) {
  Cluster cluster(6);
  session.AddOsd(&cluster, At(profile, 40 * kMiB, 4), Flat(40 * kMiB));
  ClassSpec spec = Reserved(kA, 20 * kMiB);
  spec.transactions = {{.id = 1, .bytes_per_s = 8 * kMiB}, {.id = 2, .bytes_per_s = 4 * kMiB}};
  cluster.SetClass(spec);
  cluster.SetClass(Spec(kHog));
  for (uint32_t transaction = 0; transaction < 4; ++transaction) {
    const uint64_t bytes = (32 << transaction) * kKiB;
    cluster.Start({.class_id = kA,
                   .outstanding = 6,
                   .shape = MixShape(kA, bytes, bytes, .5, .5),
                   .transaction = transaction});
  }
  StartWrites(&cluster, kHog, 8, 128 * kKiB);
  cluster.At(2s, [&cluster, spec]() mutable {
    spec.transactions = {{.id = 3, .bytes_per_s = 15 * kMiB}};
    cluster.SetClass(spec);
  });
  session.RunTo(&cluster, 10s);
}

void RunLimits(Session& session, bool at_coordinators) {
  Cluster cluster(7);
  cluster.HoldLimits(at_coordinators);
  for (size_t i = 0; i < 2; ++i) {
    session.AddOsd(&cluster, At("unified", kMixRate), Flat(kMixRate), fmt::format("osd{}", i));
  }
  ClassSpec total = Spec(kA);
  total.limit_bytes_per_s = 10 * kMiB;
  ClassSpec below = Reserved(kB, 8 * kMiB, 1, ReservationScope::kOsd);
  below.limit_bytes_per_s = 5 * kMiB;
  ClassSpec small = Spec(kC);
  small.limit_bytes_per_s = kMiB;
  for (const ClassSpec& spec : {total, below, small, Spec(kHog)}) cluster.SetClass(spec);
  for (const ClassId id : {kA, kB, kC}) {
    const Shape shape = MixShape(id, 16 * kKiB, 128 * kKiB, .5, .3);
    cluster.Start(
        {.class_id = id, .outstanding = 12, .shape = [shape](Prng& prng, uint64_t n, Io* io) {
           shape(prng, n, io);
           io->osd = prng.Chance(.75) ? 0 : 1;
         }});
  }
  for (size_t i = 0; i < 2; ++i) StartWrites(&cluster, kHog, 4, 256 * kKiB, i);
  session.RunTo(&cluster, 10s);
}

// A disk that falls below what is booked of it.
void RunSlowDisk(Session& session) {
  Cluster cluster(8);
  SimOsd& osd = session.AddOsd(&cluster, At("unified", kMixRate), Flat(kMixRate));
  osd.scheduler().SetBooked(18 * kMiB);
  for (const ClassId id : {kA, kB}) {
    cluster.SetClass(Reserved(id, 8 * kMiB));
    StartWrites(&cluster, id, 16, 128 * kKiB);
  }
  cluster.At(2s, [&osd] { osd.SetDeviceRate(9 * kMiB); });
  cluster.At(8s, [&osd] { osd.SetDeviceRate(kMixRate); });
  session.RunTo(&cluster, 13s);
}

}  // namespace

void AddPromises(std::vector<Workload>* all) {
  const auto add = [all](std::string name, std::string covers, auto run) {
    all->push_back({std::move(name), std::move(covers), std::move(run)});
  };
  add("promise-ends", "HTB, strict gate, FCFS, C-SCAN: promises of 5, 15, 20 MiB/s that end",
      [](Session& s) { RunWriters(s, "odis", GateKind::kStrict); });
  add("promise-conserving", "the same, conserving gate",
      [](Session& s) { RunWriters(s, "odis", GateKind::kConserving); });
  add("promise-dsfq", "the same under `unified`",
      [](Session& s) { RunWriters(s, "unified", GateKind::kConserving); });
  add("promise-dsfq-strict", "the same under `unified` with a strict gate",
      [](Session& s) { RunWriters(s, "unified", GateKind::kStrict); });
  add("maximizer", "bandwidth maximizer: G up, down with a slow disk, up again", RunMaximizer);
  add("promise-total", "a promise over three OSDs at 80/10/10, later 10/10/80, beside hogs",
      [](Session& s) { RunOverOsds(s, "unified"); });
  add("promise-total-odis", "the same under `odis`", [](Session& s) { RunOverOsds(s, "odis"); });
  add("promise-iops", "promises in requests/s: over two OSDs, and on one with bytes beside",
      [](Session& s) { RunIops(s, "unified"); });
  add("promise-iops-odis", "the same under `odis`", [](Session& s) { RunIops(s, "odis"); });
  add("bounds", "three latency bounds: additive, measured, with a promise beside", RunBounds);
  add("transactions", "transactions of 8 and 4 of 20 MiB/s, one without; others later",
      [](Session& s) { RunTransactions(s, "unified"); });
  add("transactions-odis", "the same under `odis`", [](Session& s) { RunTransactions(s, "odis"); });
  add("limits", "limits: over two OSDs, of one OSD below its promise, small",
      [](Session& s) { RunLimits(s, false); });
  add("limits-at-mounts", "the same, held back at the coordinators first",
      [](Session& s) { RunLimits(s, true); });
  add("slow-disk", "a disk that falls below what is booked, and recovers", RunSlowDisk);
}

}  // namespace weir::sim
