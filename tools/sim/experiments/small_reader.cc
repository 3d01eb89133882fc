// E56: what a small synchronous reader keeps beside large writes (depth control; no paper).
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

}  // namespace

void AddSmallReader(std::vector<Experiment>* all) {
  all->push_back(
      {"E56", "A small reader beside large writes", "depth control, no paper",
       "One reader that waits for each 4 KiB (10,000/s alone) beside 64 writers on a device of "
       "1 GiB/s that serves one after the other, gate conserving. The reader is light, so the "
       "device holds two writes and it passes the window; a write is not interrupted, unless the "
       "store issues it in the pieces that the scheduler asks for.",
       RunBeside});
}

}  // namespace weir::sim
