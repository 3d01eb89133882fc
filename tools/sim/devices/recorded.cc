#include <algorithm>

#include "common/base/check.h"
#include "tools/sim/devices/ssd.h"

namespace weir::sim {
namespace {

class RecordedDevice final : public Device {
 public:
  RecordedDevice(EventQueue* events, std::vector<double> seconds)
      : Device(events), seconds_(std::move(seconds)) {
    WEIR_CHECK(!seconds_.empty(), "a recorded device needs service times");
  }

  void Submit(Job* job) override {
    const Duration time = FromSeconds(seconds_[next_++ % seconds_.size()]);
    free_at_ = std::max(free_at_, events().now()) + time;
    FinishAt(free_at_, time, job);
  }

 private:
  std::vector<double> seconds_;
  size_t next_ = 0;
  TimePoint free_at_{0};
};

}  // namespace

DeviceFactory Recorded(std::vector<double> seconds) {
  return
      [=](EventQueue* events, Prng) { return std::make_unique<RecordedDevice>(events, seconds); };
}

}  // namespace weir::sim
