// E48 and E49: the pipeline as a whole: a recorded run replays to the same decisions, and nobody
// waits while the device has room.
#include <array>

#include "tools/sim/devices/simple.h"
#include "tools/sim/experiments/all.h"
#include "tools/sim/experiments/dsfq_setup.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;
using osd::qos::Request;
using osd::qos::Scheduler;

constexpr uint32_t kDepth = 8;
constexpr uint64_t kRate = 60 * kMiB;

// Every row of the profile table that this build has.
std::vector<std::string_view> Profiles() {
  std::vector<std::string_view> built;
  for (std::string_view name : {"noqos", "odis", "sfq", "dsfq-total", "dsfq-hybrid",
                                "dsfq-hybrid-h", "vd", "vc", "cscan", "cvc", "baa", "unified"}) {
    if (ApplyProfile(name, {}).ok()) built.push_back(name);
  }
  return built;
}

SchedulerConfig ConfigOf(std::string_view profile) {
  SchedulerConfig config = ProfileOf(profile, kDepth);
  config.token_rate = 40 * kMiB;
  return config;
}

std::vector<ClassSpec> Classes() {
  std::vector<ClassSpec> specs{Reserved(kF, 10 * kMiB), Reserved(kG, 15 * kMiB, 2), Spec(kH, 3)};
  specs.push_back(Spec(ClassId(19)));
  specs.back().limit_bytes_per_s = 8 * kMiB;
  return specs;
}

void StartMixed(Cluster* cluster, Duration end) {
  for (const ClassSpec& spec : Classes()) {
    cluster->SetClass(spec);
    Load* load = cluster->Start({.class_id = spec.id, .outstanding = 12, .shape = FilesOf(1, 64)});
    const Duration phase = 700ms * spec.id.value % 3s;
    for (Duration at = phase + 1s; at < end; at += 4s) {
      cluster->At(at, [=] { load->SetOutstanding(0); });
      cluster->At(at + 1s, [=] { load->SetOutstanding(12); });
    }
  }
  // Something elsewhere, so that requests carry delays.
  cluster->Start({.class_id = kG, .outstanding = 6, .osd = 1, .shape = FilesOf(1, 64)});
}

// What the world did to a scheduler, and what it pulled, by sequence of arrival.
struct Event {
  enum class Kind : uint8_t { kEnqueue, kPull, kComplete, kTick } kind;
  TimePoint when;
  size_t request = 0;
};

// A policy that writes down every call.
class Recorder final : public Policy {
 public:
  Recorder(const SchedulerConfig& config, TimePoint now, std::vector<Event>* log,
           std::vector<Request>* requests)
      : scheduler_(config, now), log_(log), requests_(requests) {}

  void SetClass(const ClassSpec& spec, TimePoint now) override { scheduler_.SetClass(spec, now); }
  void Enqueue(Request* request, TimePoint now) override {
    log_->push_back({Event::Kind::kEnqueue, now, requests_->size()});
    index_[request] = requests_->size();
    requests_->push_back(*request);
    scheduler_.Enqueue(request, now);
  }
  osd::qos::PullResult Pull(TimePoint now) override {
    const osd::qos::PullResult result = scheduler_.Pull(now);
    log_->push_back({Event::Kind::kPull, now,
                     result.request == nullptr ? SIZE_MAX : index_.at(result.request)});
    return result;
  }
  void Completed(Request* request, TimePoint now) override {
    log_->push_back({Event::Kind::kComplete, now, index_.at(request)});
    scheduler_.Completed(request, now);
  }
  void Tick(TimePoint now) override {
    log_->push_back({Event::Kind::kTick, now});
    scheduler_.Tick(now);
  }
  [[nodiscard]] TimePoint NextTick() const override { return scheduler_.NextTick(); }
  [[nodiscard]] uint64_t queued() const override { return scheduler_.queued(); }
  [[nodiscard]] uint64_t in_flight() const override { return scheduler_.in_flight(); }
  [[nodiscard]] Scheduler* scheduler() override { return &scheduler_; }

 private:
  Scheduler scheduler_;
  std::vector<Event>* log_;
  std::vector<Request>* requests_;
  std::unordered_map<const Request*, size_t> index_;
};

// Feeds the log to a fresh scheduler on another clock; how many pulls came out otherwise.
uint64_t Replay(const SchedulerConfig& config, const std::vector<Event>& log,
                std::vector<Request> requests) {
  constexpr Duration kLater = std::chrono::hours(24 * 7);
  Scheduler scheduler(config, TimePoint{0} + kLater);
  for (const ClassSpec& spec : Classes()) scheduler.SetClass(spec, TimePoint{0} + kLater);
  uint64_t different = 0;
  for (const Event& event : log) {
    const TimePoint now = event.when + kLater;
    switch (event.kind) {
      case Event::Kind::kEnqueue:
        scheduler.Enqueue(&requests[event.request], now);
        break;
      case Event::Kind::kPull: {
        const Request* pulled = scheduler.Pull(now).request;
        const Request* expected = event.request == SIZE_MAX ? nullptr : &requests[event.request];
        different += pulled != expected ? 1 : 0;
        if (pulled != expected) return different;  // from here on everything differs
        break;
      }
      case Event::Kind::kComplete:
        scheduler.Completed(&requests[event.request], now);
        break;
      case Event::Kind::kTick:
        scheduler.Tick(now);
        break;
    }
  }
  return different;
}

void RunReplay(Run& run) {
  constexpr Duration kEnd = 60s;
  for (std::string_view profile : Profiles()) {
    std::vector<Event> log;
    std::vector<Request> requests;
    Cluster cluster(run.seed());
    const SchedulerConfig config = ConfigOf(profile);
    cluster.AddOsd(
        [&](TimePoint now) { return std::make_unique<Recorder>(config, now, &log, &requests); },
        Slots(kDepth, static_cast<double>(kRate)));
    cluster.AddOsd(config, Slots(kDepth, static_cast<double>(kRate)));
    StartMixed(&cluster, kEnd);
    cluster.RunTo(kEnd);
    const std::string at = ", " + std::string(profile);
    run.AtLeast("requests recorded" + at, static_cast<double>(requests.size()), 20'000);
    run.Near("decisions that a replay made otherwise" + at,
             static_cast<double>(Replay(config, log, requests)), 0, 0);
  }
}

void RunConservation(Run& run) {
  constexpr Duration kEnd = 60s;
  for (std::string_view profile : Profiles()) {
    SchedulerConfig config = ConfigOf(profile);
    config.maximizer = false;
    const bool strict = config.gate == GateKind::kStrict;
    if (run.broken(Fault::kGateOpen)) config.gate = GateKind::kConserving;
    Cluster cluster(run.seed());
    for (int i = 0; i < 2; ++i) {
      cluster.AddOsd(config, Slots(kDepth, static_cast<double>(kRate)));
    }
    cluster.osd(0).WatchDepth(config.depth);
    StartMixed(&cluster, kEnd);
    // The limited class may wait at its own limit; it must not count as a backlog.
    ClassSpec unlimited = Spec(ClassId(19));
    cluster.SetClass(unlimited);
    cluster.RunTo(kEnd);
    const double free = ToSeconds(cluster.osd(0).free_slot_while_queued());
    const std::string name = std::string(profile);
    if (strict) {
      run.AtLeast("strict gate holds back although a slot is free, s, " + name, free, 1);
    } else {
      run.Near("a slot free while somebody waits, s, " + name, free, 0, 0);
    }
  }
}

}  // namespace

void AddPipeline(std::vector<Experiment>* all) {
  all->push_back(
      {"E48", "A recorded run replays to the same decisions", "RULES.md I-35",
       "Every call to the scheduler is written down, for every profile, and fed to a fresh "
       "scheduler on another clock: every pull gives the same request.",
       RunReplay});
  all->push_back(
      {"E49", "Nobody waits while the device has room", "RULES.md I-4",
       "Under every conserving profile there is no moment with a backlog and a free device "
       "slot; under the strict gate there is, by intention.",
       RunConservation});
}

}  // namespace weir::sim
