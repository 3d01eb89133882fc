// What the scheduler learns from the device: depth, kept short or not, bursts, anticipation,
// pieces, landing, the processors' pace; on disks, flash and models without mechanics.
#include <fmt/format.h>

#include "tools/sim/devices/chunked.h"
#include "tools/sim/devices/hdd.h"
#include "tools/sim/devices/simple.h"
#include "tools/sim/devices/ssd.h"
#include "tools/sim/recordings/mix.h"
#include "tools/sim/recordings/store_osd.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;
using osd::qos::OpKind;

constexpr ClassId kReader{16}, kWriters{17}, kOthers{18};

void RunDepth(Session& session, uint32_t depth, const DeviceFactory& device, uint64_t rate) {
  Cluster cluster(1);
  SchedulerConfig config = MixConfig("unified");
  config.token_rate = rate;
  config.depth = depth;
  session.AddOsd(&cluster, config, device);
  for (const ClassId id : {kReader, kWriters, kOthers}) cluster.SetClass(Spec(id));
  cluster.Start({.class_id = kReader,
                 .outstanding = 1,
                 .shape = MixShape(kReader, 4 * kKiB, 4 * kKiB, 1, 0),
                 .think = 100us});
  cluster.Start({.class_id = kWriters,
                 .outstanding = 32,
                 .shape = MixShape(kWriters, 64 * kKiB, 64 * kKiB, 0, .5)});
  cluster.Start({.class_id = kOthers,
                 .outstanding = 8,
                 .shape = MixShape(kOthers, 4 * kKiB, 256 * kKiB, .5, .3)});
  session.RunTo(&cluster, 10s);
}

// A small reader beside 64 writers, who may be asked for pieces.
void RunHurry(Session& session, std::string_view profile, uint64_t bytes, bool pieces) {
  Cluster cluster(2);
  SchedulerConfig base;
  base.token_rate = 60 * kMiB;
  SimOsd* osd = nullptr;
  osd = &session.AddOsd(&cluster, *ApplyProfile(profile, base), Chunked(256.0 * kMiB, [&, pieces] {
    return pieces ? osd->scheduler().Advise(cluster.events().now()).piece_bytes : UINT64_MAX;
  }));
  for (const ClassId id : {kReader, kWriters}) cluster.SetClass(Spec(id));
  cluster.Start({.class_id = kReader,
                 .outstanding = 1,
                 .shape = MixShape(kReader, 4 * kKiB, 4 * kKiB, 1, 0),
                 .think = 96us});
  cluster.Start(
      {.class_id = kWriters, .outstanding = 64, .shape = MixShape(kWriters, bytes, bytes, 0, .9)});
  session.RunTo(&cluster, 6s);
}

StoreOsd::MakeDisk Sata() {
  return [](model::EventQueue* events) {
    model::HddModel model = HddModelOf("sata-7200");
    model.capacity = 8ull << 30;
    return model::MakeHdd(events, model, 1, model.capacity, Prng(1));
  };
}

StoreOsd::MakeDisk Flash() {
  return [](model::EventQueue* events) { return model::MakeSsd(events, model::Ssd200()); };
}

struct Below {
  StoreOsd::MakeDisk disk;
  uint64_t rate = 100 * kMiB;  // G0
  uint64_t bytes = 64 * kKiB;  // of a write
  Duration bound{0};           // of the reader
  uint64_t promised = 0;       // to the writers, bytes per second
  bool anticipation = false;
  double pressure = 0;
  double cancels = 0;
  GateKind gate = GateKind::kConserving;
};

void RunStore(Session& session, const Below& below) {
  SchedulerConfig config = MixConfig("unified");
  config.token_rate = below.rate;
  config.anticipation = below.anticipation;
  config.gate = below.gate;
  StoreOsd osd(config, below.disk, session.Keep());
  ClassSpec reader = Spec(kReader);
  reader.service.bound = below.bound;
  reader.service.max_pending = 0;
  ClassSpec writers = Spec(kWriters);
  if (below.promised > 0) writers.reservation = Reservation{.bytes_per_s = below.promised};
  for (const ClassSpec& spec : {reader, writers, Spec(kOthers, 2)}) {
    osd.scheduler().SetClass(spec, osd.now());
  }
  osd.SetPressure(below.pressure);
  osd.Start({.class_id = kReader, .think = 200us, .start = 256 * kMiB, .span = 128 * kMiB});
  osd.Start({.class_id = kWriters,
             .op = OpKind::kWrite,
             .bytes = below.bytes,
             .threads = 64,
             .sequential = true,
             .start = 640 * kMiB,
             .span = 384 * kMiB,
             .cancels = below.cancels});
  osd.Start({.class_id = kOthers,
             .bytes = 128 * kKiB,
             .threads = 2,
             .think = 5ms,
             .start = 2048 * kMiB,
             .cancels = below.cancels});
  for (Duration at = 100ms; at < 20s && !session.full(); at += 100ms) osd.RunTo(at);
}

}  // namespace

void AddDevices(std::vector<Workload>* all) {
  const auto add = [all](std::string name, std::string covers, auto run) {
    all->push_back({std::move(name), std::move(covers), std::move(run)});
  };
  for (const uint32_t depth : {0, 1, 4, 32}) {
    const std::string word = depth == 0 ? "auto" : std::to_string(depth);
    add(fmt::format("depth-{}-flat", word),
        fmt::format("depth {} on a flat device: a small reader, writers, others", word),
        [depth](Session& s) { RunDepth(s, depth, Flat(400.0 * kMiB), 200 * kMiB); });
    add(fmt::format("depth-{}-flash", word), fmt::format("the same on flash, depth {}", word),
        [depth](Session& s) { RunDepth(s, depth, Ssd(model::Ssd200()), 150 * kMiB); });
  }
  add("depth-auto-disk", "the same on a disk, depth auto",
      [](Session& s) { RunDepth(s, 0, Hdd(HddModelOf("sata-7200")), 60 * kMiB); });
  add("depth-auto-slots", "the same on 20 servers, depth auto",
      [](Session& s) { RunDepth(s, 0, Slots(20, 60 * kMiB), 60 * kMiB); });
  for (const std::string_view profile : {"unified", "odis", "noqos"}) {
    add(fmt::format("hurry-64k-{}", profile),
        fmt::format("`{}`: a small reader beside 64 writers of 64 KiB", profile),
        [profile](Session& s) { RunHurry(s, profile, 64 * kKiB, false); });
  }
  add("hurry-1m-pieces", "`unified`: the same with 1 MiB, in the pieces that are asked for",
      [](Session& s) { RunHurry(s, "unified", kMiB, true); });
  add("bursts", "a store on a disk with a cache: bursts between the reads, landed writes, patience",
      [](Session& s) { RunStore(s, {.disk = Sata()}); });
  add("bursts-1m", "the same, writes of 1 MiB, the writers promised 30 MiB/s",
      [](Session& s) { RunStore(s, {.disk = Sata(), .bytes = kMiB, .promised = 30 * kMiB}); });
  add("anticipation", "the same with anticipation",
      [](Session& s) { RunStore(s, {.disk = Sata(), .anticipation = true}); });
  add("landing-flash", "a store on flash, a bound of 5 ms, writers promised 60 MiB/s",
      [](Session& s) {
        RunStore(s, {.disk = Flash(), .rate = 200 * kMiB, .bound = 5ms, .promised = 60 * kMiB});
      });
  add("landing-strict", "a store on flash behind the strict gate: steps, landing while tokens lack",
      [](Session& s) {
        RunStore(s, {.disk = Flash(), .rate = 60 * kMiB, .gate = GateKind::kStrict});
      });
  add("pace", "the processors' pace: a bound, processors that are waited for 60 % of the time",
      [](Session& s) {
        RunStore(s, {.disk = Flash(), .rate = 200 * kMiB, .bound = 5ms, .pressure = .6});
      });
  add("cancels", "a store on flash, 5 % of the requests taken back",
      [](Session& s) { RunStore(s, {.disk = Flash(), .rate = 200 * kMiB, .cancels = .05}); });
}

}  // namespace weir::sim
