// What operators do to a running scheduler: boxes and rates that change, classes that come and go,
// drains, and everything at once by chance.
#include <fmt/format.h>

#include <deque>

#include "tools/sim/devices/simple.h"
#include "tools/sim/recordings/mix.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;
using osd::qos::OpKind;
using osd::qos::Request;
using osd::qos::Scheduler;

// Every profile in turn on one running scheduler, twice.
void RunReconfigured(Session& session) {
  Cluster cluster(1);
  session.AddOsd(&cluster, MixConfig("unified"), Slots(4, kMixRate), "", 14'000);
  SetMixClasses(&cluster);
  StartMix(&cluster);
  Duration at = 0ms;
  for (int round = 0; round < 2; ++round) {
    for (const std::string_view profile : {"noqos", "odis", "sfq", "dsfq-total", "vd", "cvc",
                                           "dsfq-hybrid-h", "vc", "baa", "cscan", "unified"}) {
      at += 230ms;
      cluster.At(at, [&cluster, profile, round] {
        SchedulerConfig config = MixConfig(profile);
        config.depth = round == 0 ? 0 : 8;
        config.token_rate = round == 0 ? kMixRate : kMixRate / 2;
        cluster.Configure(config);
      });
    }
  }
  session.RunTo(&cluster, 10s);
}

// Weights, limits and promises of running classes change.
void RunRetuned(Session& session, std::string_view profile) {
  Cluster cluster(2);
  session.AddOsd(&cluster, MixConfig(profile), Slots(4, kMixRate));
  SetMixClasses(&cluster);
  StartMix(&cluster);
  for (int i = 1; i <= 12; ++i) {
    cluster.At(i * 300ms, [&cluster, i] {
      ClassSpec spec = Spec(ClassId(16 + i % 5), 1 + i % 4);
      if (i % 3 == 0) spec.limit_bytes_per_s = i * kMiB;
      if (i % 3 == 1) spec.reservation = Reservation{.bytes_per_s = i * kMiB / 2};
      if (i % 4 == 2) spec.service = {.bound = 10ms, .max_pending = 2};
      cluster.SetClass(spec);
    });
  }
  session.RunTo(&cluster, 10s);
}

// Classes go while they have requests waiting and on the device, and come back under the same
// number.
void RunRemoved(Session& session, std::string_view profile) {
  Cluster cluster(3);
  SimOsd& osd = session.AddOsd(&cluster, MixConfig(profile), Slots(4, kMixRate));
  SetMixClasses(&cluster);
  StartMix(&cluster);
  for (int i = 1; i <= 10; ++i) {
    const ClassId id(16 + i % 5);
    cluster.At(i * 400ms, [&cluster, &osd, id] {
      osd.scheduler().RemoveClass(id, cluster.events().now());
      osd.Pump();
    });
    cluster.At(i * 400ms + 150ms, [&cluster, id] { cluster.SetClass(Spec(id, 2)); });
  }
  session.RunTo(&cluster, 10s);
}

// A clean end: every promise and limit is lifted, nothing new comes, all that waits is served.
void RunDrained(Session& session, std::string_view profile) {
  Cluster cluster(4);
  session.AddOsd(&cluster, MixConfig(profile), Slots(4, kMixRate));
  SetMixClasses(&cluster);
  std::vector<Load*> loads;
  for (uint32_t i = 0; i < 5; ++i) {
    const ClassId id(16 + i);
    loads.push_back(cluster.Start(
        {.class_id = id, .outstanding = 100, .shape = MixShape(id, 4 * kKiB, 256 * kKiB, .5, .5)}));
  }
  cluster.At(1s, [&cluster, loads, profile] {
    for (Load* load : loads) load->Stop();
    for (uint32_t i = 0; i < 5; ++i) cluster.SetClass(Spec(ClassId(16 + i)));
    SchedulerConfig open = MixConfig(profile);
    open.guarantee = GuaranteeKind::kNone;
    open.gate = GateKind::kConserving;
    cluster.Configure(open);
  });
  session.RunTo(&cluster, 12s);
}

// Calls by chance, completions in any order.
class AnyCalls {
 public:
  AnyCalls(osd::qos::DecisionRecorder* recorder, uint64_t seed, std::string_view profile)
      : prng_(seed), config_(MixConfig(profile)), scheduler_(config_, now_, recorder) {}

  void Run(int steps) {
    for (int i = 0; i < steps; ++i) {
      now_ += std::chrono::microseconds(prng_.Uniform(0, 400));
      if (now_ >= scheduler_.NextTick()) scheduler_.Tick(now_);
      if (prng_.Chance(.02)) scheduler_.SetBulkCap(prng_.Uniform(0, 4) << 22, now_);
      CallOne();
      while (Request* pulled = scheduler_.Pull(now_).request) on_device_.push_back(pulled);
    }
  }

 private:
  void CallOne() {
    switch (prng_.Uniform(0, 11)) {
      case 0:
        if (prng_.Chance(.2)) scheduler_.SetClass(AnyClass(), now_);
        return;
      case 1:
        return Operate();
      case 2:
        return CancelAny();
      case 3:
      case 4:
      case 5:
      case 6:
        return FinishAny();
      default:
        return Arrive();
    }
  }
  void Operate() {
    if (prng_.Chance(.05)) scheduler_.RemoveClass(AnyId(), now_);
    if (prng_.Chance(.2)) scheduler_.SetBooked(prng_.Uniform(0, kMixRate));
    if (prng_.Chance(.2)) scheduler_.DoneOutside(prng_.Uniform(1, 64) << 12);
    if (prng_.Chance(.1)) std::ignore = scheduler_.Counters(now_);
    if (!prng_.Chance(.05)) return;
    const std::string_view profiles[] = {"odis", "dsfq-total", "unified", "cvc", "vd", "noqos"};
    config_ = *ApplyProfile(profiles[prng_.Uniform(0, 5)], config_);
    config_.anticipation = prng_.Chance(.2);
    scheduler_.Configure(config_, now_);
  }
  void CancelAny() {
    if (requests_.empty()) return;
    const size_t back = prng_.Uniform(1, std::min<size_t>(requests_.size(), 20));
    Request* request = &requests_[requests_.size() - back];
    using Stage = Request::Stage;
    if (request->stage != Stage::kOutside) scheduler_.Cancel(request, now_);
  }
  void FinishAny() {
    if (on_device_.empty()) return;
    const size_t at = prng_.Uniform(0, on_device_.size() - 1);
    std::swap(on_device_[at], on_device_.back());
    Request* request = on_device_.back();
    if (!request->landed && prng_.Chance(.2)) {
      scheduler_.Landed(request, now_);
      return;
    }
    on_device_.pop_back();
    scheduler_.Completed(request, now_);
  }
  void Arrive() {
    Request& request = requests_.emplace_back();
    request.class_id = AnyId();
    request.op = static_cast<OpKind>(prng_.Uniform(0, 2));
    request.bytes = prng_.Chance(.1) ? prng_.Uniform(1, 4) << 18 : prng_.Uniform(1, 16) << 12;
    request.lba = prng_.Uniform(0, 1 << 14) << 12;
    if (prng_.Chance(.3)) request.elsewhere = static_cast<int64_t>(prng_.Uniform(0, 300));
    if (prng_.Chance(.3)) request.transaction = static_cast<uint32_t>(prng_.Uniform(1, 3));
    scheduler_.Enqueue(&request, now_);
  }
  ClassId AnyId() { return ClassId(static_cast<uint32_t>(prng_.Uniform(15, 22))); }
  ClassSpec AnyClass() {
    ClassSpec spec = Spec(AnyId(), .5 + 3 * prng_.Real());
    if (prng_.Chance(.3)) spec.service = {.bound = 5ms, .max_pending = 3};
    if (prng_.Chance(.3)) spec.limit_bytes_per_s = prng_.Uniform(1, 20) * kMiB;
    if (prng_.Chance(.2)) spec.disk = {.type = ClassType::kRentADisk, .peak = .2};
    if (prng_.Chance(.4)) {
      spec.reservation = Reservation{.bytes_per_s = prng_.Uniform(1, 9) * kMiB};
      if (prng_.Chance(.5)) spec.reservation->scope = ReservationScope::kOsd;
      if (prng_.Chance(.3)) spec.reservation->iops = prng_.Uniform(10, 500);
      if (prng_.Chance(.3)) spec.transactions = {{.id = 1, .bytes_per_s = kMiB / 2}};
      if (prng_.Chance(.3)) {
        spec.reservation_ends = now_ + std::chrono::milliseconds(prng_.Uniform(1, 400));
      }
    }
    return spec;
  }

  Prng prng_;
  TimePoint now_{1'000'000'000};
  SchedulerConfig config_;
  std::deque<Request> requests_;
  std::vector<Request*> on_device_;
  Scheduler scheduler_;
};

}  // namespace

void AddOperators(std::vector<Workload>* all) {
  const auto add = [all](std::string name, std::string covers, auto run) {
    all->push_back({std::move(name), std::move(covers), std::move(run)});
  };
  add("reconfigured", "every profile in turn on a running scheduler, depth and G0 too",
      RunReconfigured);
  for (const std::string_view profile : {"unified", "odis", "dsfq-total"}) {
    add(fmt::format("retuned-{}", profile),
        fmt::format("`{}`: weights, limits, promises and bounds of running classes change",
                    profile),
        [profile](Session& s) { RunRetuned(s, profile); });
    add(fmt::format("removed-{}", profile),
        fmt::format("`{}`: classes with requests are removed and come back", profile),
        [profile](Session& s) { RunRemoved(s, profile); });
  }
  for (const std::string_view profile : {"unified", "odis"}) {
    add(fmt::format("drained-{}", profile),
        fmt::format("`{}`: 500 requests, promises and limits lifted, all served", profile),
        [profile](Session& s) { RunDrained(s, profile); });
  }
  constexpr std::string_view kProfiles[] = {"unified",    "odis", "dsfq-hybrid", "cvc",
                                            "dsfq-total", "vd",   "noqos",       "unified"};
  constexpr uint64_t kRuns = 16;
  for (uint64_t seed = 1; seed <= kRuns; ++seed) {
    const std::string_view profile = kProfiles[(seed - 1) % std::size(kProfiles)];
    add(fmt::format("any-{}-{}", seed, profile),
        fmt::format("calls by chance, beginning with `{}`: completions in any order, landed, "
                    "cancels, removals, profiles, work outside, processors",
                    profile),
        [=](Session& s) { AnyCalls(s.Keep(), seed, profile).Run(3000); });
  }
}

}  // namespace weir::sim
