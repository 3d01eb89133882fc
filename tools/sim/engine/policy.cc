#include "tools/sim/engine/policy.h"

namespace weir::sim {
namespace {

class SchedulerPolicy final : public Policy {
 public:
  SchedulerPolicy(const SchedulerConfig& config, TimePoint now,
                  osd::qos::DecisionRecorder* recorder)
      : scheduler_(config, now, recorder) {}

  void SetClass(const ClassSpec& spec, TimePoint now) override { scheduler_.SetClass(spec, now); }
  void Enqueue(osd::qos::Request* request, TimePoint now) override {
    scheduler_.Enqueue(request, now);
  }
  osd::qos::PullResult Pull(TimePoint now) override { return scheduler_.Pull(now); }
  void Completed(osd::qos::Request* request, TimePoint now) override {
    scheduler_.Completed(request, now);
  }
  void Tick(TimePoint now) override { scheduler_.Tick(now); }
  [[nodiscard]] TimePoint NextTick() const override { return scheduler_.NextTick(); }
  [[nodiscard]] uint64_t queued() const override { return scheduler_.queued(); }
  [[nodiscard]] uint64_t in_flight() const override { return scheduler_.in_flight(); }
  [[nodiscard]] osd::qos::Scheduler* scheduler() override { return &scheduler_; }

 private:
  osd::qos::Scheduler scheduler_;
};

}  // namespace

PolicyFactory ProductPolicy(const SchedulerConfig& config, osd::qos::DecisionRecorder* recorder) {
  return [config, recorder](TimePoint now) {
    return std::make_unique<SchedulerPolicy>(config, now, recorder);
  };
}

}  // namespace weir::sim
