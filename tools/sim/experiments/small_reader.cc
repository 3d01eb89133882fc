// E56: what a small synchronous reader keeps beside large writes (depth control; no paper).
// E59: what a latency bound costs its neighbours (bulk governor; no paper).
#include <cmath>

#include "osd/qos/control/bound_setpoint.h"
#include "osd/qos/control/bulk_governor.h"
#include "tools/sim/devices/chunked.h"
#include "tools/sim/devices/simple.h"
#include "tools/sim/experiments/all.h"
#include "tools/sim/experiments/dsfq_setup.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;

constexpr double kDevice = 1024.0 * kMiB;

struct Outcome {
  double reads = 0;   // part of the 10,000/s that the reader makes alone
  double device = 0;  // part of the device's rate that both use
};

Outcome Beside(Run& run, std::string_view profile, uint64_t bytes, bool pieces) {
  SchedulerConfig base;
  base.token_rate = 200 * kMiB;
  Cluster cluster(run.seed());
  SimOsd* osd = nullptr;
  osd = &cluster.AddOsd(*ApplyProfile(profile, base), Chunked(kDevice, [&, pieces] {
    return pieces ? osd->scheduler().Advise(cluster.events().now()).piece_bytes : UINT64_MAX;
  }));
  cluster.SetClass(Spec(kF));
  cluster.SetClass(Spec(kG));
  Load* reader =
      cluster.Start({.class_id = kF,
                     .outstanding = 1,
                     .bytes = 4 * kKiB,
                     .shape = [](Prng&, uint64_t, Io* io) { io->op = osd::qos::OpKind::kRead; },
                     .think = 96us});
  Load* writers = cluster.Start({.class_id = kG, .outstanding = 64, .bytes = bytes});
  cluster.RunTo(6s);
  return {reader->Iops(1s, 6s) / 1e4, (reader->Rate(1s, 6s) + writers->Rate(1s, 6s)) / kDevice};
}

void RunBeside(Run& run) {
  for (const uint64_t bytes : {64 * kKiB, kMiB}) {
    const std::string name = std::to_string(bytes / kKiB) + " KiB writes: ";
    const bool large = bytes == kMiB;
    const Outcome plain = Beside(run, "noqos", bytes, false);
    const Outcome whole = Beside(run, "unified", bytes, false);
    const Outcome pieces = Beside(run, "unified", bytes, true);
    run.AtMost(name + "reader without QoS", plain.reads, .03);
    run.AtLeast(name + "reader under unified", whole.reads, large ? .045 : .45);
    run.AtLeast(name + "reader under unified, writes in pieces", pieces.reads, large ? .25 : .45);
    run.AtLeast(name + "device in use under unified", whole.device, .99);
    run.AtLeast(name + "device in use, writes in pieces", pieces.device, .99);
  }
}

// The way of a request beside its time at the OSD: 100 us, and processors that take all in turn,
// for bulk a time by chance that is 0.95 of what the device needs for it, on average.
class Way {
 public:
  explicit Way(uint64_t seed) : prng_(seed) {}
  TimePoint Pass(const Job& job, TimePoint now) {
    constexpr double kSmall = 10e-6;
    constexpr double kRate = kDevice / .95;
    const double chance = -std::log(1 - static_cast<double>(prng_.Uniform(0, 999'999)) / 1e6);
    const bool bulk = job.request.class_id == kG;
    const double seconds = bulk ? static_cast<double>(job.request.bytes) / kRate * chance : kSmall;
    const TimePoint starts = std::max(free_at_, now);
    waited_ += std::max(Duration(0), starts - std::max(now, waited_until_));
    waited_until_ = starts;
    free_at_ = starts + FromSeconds(seconds);
    return free_at_ + 100us;
  }
  // How long somebody has waited for it, a sum that grows.
  [[nodiscard]] Duration Waited(TimePoint now) const {
    return waited_ - std::max(Duration(0), waited_until_ - now);
  }

 private:
  Prng prng_;
  TimePoint free_at_;
  TimePoint waited_until_;
  Duration waited_{0};
};

struct Kept {
  double alone = 0;  // 99th percentile of the reader, seconds
  double beside = 0;
  double bulk = 0;  // part of the device
};

Kept BesideBound(Run& run, Duration bound) {
  SchedulerConfig base;
  base.token_rate = 200 * kMiB;
  Cluster cluster(run.seed());
  SimOsd& osd = cluster.AddOsd(*ApplyProfile("unified", base), Flat(kDevice));
  ClassSpec reader = Spec(kF);
  reader.service = {.bound = bound, .probability = .99, .max_pending = 0};
  cluster.SetClass(reader);
  cluster.SetClass(Spec(kG));
  ServiceContract told = reader.service;
  if (run.broken(Fault::kBoundIgnored)) told.bound = 10s;
  osd::qos::BoundSetpoint setpoint;
  setpoint.SetLeast(base.processor_pressure / 100.0);
  osd::qos::BulkGovernor governor;
  governor.Choose(setpoint.pressure());
  Way way(run.seed());
  std::vector<double> waits;
  osd.on_completion = [&](const Job& job) {
    const TimePoint now = cluster.events().now();
    const TimePoint done = way.Pass(job, now);
    if (job.request.class_id != kF) return;
    waits.push_back(ToSeconds(done - job.sent));
    osd::qos::Scheduler& scheduler = osd.scheduler();
    governor.Guarded(scheduler.guarded_until(), now);
    const bool held = governor.rate() > 0 && now < scheduler.guarded_until() &&
                      governor.pressure() > 0.8 * setpoint.pressure();
    setpoint.Waited(kF, told, done - job.sent, held, now);
    governor.Choose(setpoint.pressure());
    if (now >= governor.LookAt()) {
      governor.Look(way.Waited(now), scheduler.State(now).bulk_taken, now);
    }
    scheduler.SetBulkCap(governor.rate(), now);
  };
  cluster.Start({.class_id = kF,
                 .outstanding = 1,
                 .bytes = 4 * kKiB,
                 .shape = [](Prng&, uint64_t, Io* io) { io->op = osd::qos::OpKind::kRead; },
                 .think = 196us});
  cluster.RunTo(2s);
  Kept kept{.alone = Quantile(waits, .99)};
  Load* writers = cluster.Start({.class_id = kG, .outstanding = 64, .bytes = 64 * kKiB});
  cluster.RunTo(8s);
  waits.clear();
  cluster.RunTo(20s);
  kept.beside = Quantile(waits, .99);
  kept.bulk = writers->Rate(8s, 20s) / kDevice;
  return kept;
}

void RunBesideBound(Run& run) {
  Curve curve{.name = "writers"};
  double before = 0;
  for (const Duration bound : {2ms, 5ms, 10ms, 20ms, 40ms}) {
    const Kept kept = BesideBound(run, bound);
    const std::string name = std::to_string(bound / 1ms) + " ms: ";
    run.AtMost(name + "99th percentile over the bound", kept.beside / ToSeconds(bound), 1);
    run.Report(name + "99th percentile, us", 1e6 * kept.beside);
    run.Report(name + "alone, us", 1e6 * kept.alone);
    run.AtLeast(name + "writers, part of the device", kept.bulk, before);
    before = kept.bulk;
    curve.x.push_back(static_cast<double>(bound / 1ms));
    curve.y.push_back(kept.bulk);
  }
  run.AtLeast("what 40 ms leave over what 2 ms leave", before / curve.y.front(), 1.5);
  run.Draw({.title = "What a bound leaves to 64 writers",
            .x_label = "bound, ms",
            .y_label = "part of the device",
            .curves = {curve}});
}

}  // namespace

void AddSmallReader(std::vector<Experiment>* all) {
  all->push_back(
      {"E56", "A small reader beside large writes", "depth control, no paper",
       "One reader that waits for each 4 KiB (10,000/s alone) beside 64 writers on a device of "
       "1 GiB/s that serves one after the other, gate conserving. The reader is light, so the "
       "device holds two writes and it passes the window; a write is not interrupted, unless the "
       "store issues it in the pieces that the scheduler asks for.",
       RunBeside});
  all->push_back(
      {"E59", "What a latency bound costs its neighbours", "bulk governor, no paper",
       "A reader of 4 KiB with a bound at 99 %, alone for 2 s, then beside 64 writers of 64 KiB on "
       "a device of 1 GiB/s. What all of them queue for is not the device but processors that the "
       "writers could keep busy for 95 % of the time. The writers are held to what the bound "
       "leaves.",
       RunBesideBound});
}

}  // namespace weir::sim
