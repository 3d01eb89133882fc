#include "tools/sim/devices/uniform.h"

#include <algorithm>

namespace weir::sim {
namespace {

class UniformDevice final : public Device {
 public:
  UniformDevice(EventQueue* events, double mean_s, double spread, Prng prng)
      : Device(events), mean_s_(mean_s), spread_(spread), prng_(prng) {}

  void Submit(Job* job) override {
    const Duration time = FromSeconds(mean_s_ * (1 + spread_ * (2 * prng_.Real() - 1)));
    free_at_ = std::max(free_at_, events().now()) + time;
    FinishAt(free_at_, time, job);
  }

 private:
  double mean_s_;
  double spread_;
  Prng prng_;
  TimePoint free_at_{0};
};

}  // namespace

DeviceFactory Uniform(double mean_s, double spread) {
  return [=](EventQueue* events, Prng prng) {
    return std::make_unique<UniformDevice>(events, mean_s, spread, prng);
  };
}

}  // namespace weir::sim
