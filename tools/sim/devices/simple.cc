#include "tools/sim/devices/simple.h"

#include <algorithm>
#include <deque>

namespace weir::sim {
namespace {

class FlatDevice final : public Device {
 public:
  FlatDevice(EventQueue* events, double rate) : Device(events), rate_(rate) {}

  void Submit(Job* job) override {
    const Duration time = FromSeconds(static_cast<double>(job->io.bytes) / rate_);
    free_at_ = std::max(free_at_, events().now()) + time;
    FinishAt(free_at_, time, job);
  }
  void SetRate(double rate) override { rate_ = rate; }

 private:
  double rate_;
  TimePoint free_at_{0};
};

class SlotsDevice final : public Device {
 public:
  SlotsDevice(EventQueue* events, int servers, double rate, Prng prng)
      : Device(events), servers_(servers), free_(servers), rate_(rate), prng_(prng) {}

  void Submit(Job* job) override {
    if (free_ == 0) {
      waiting_.push_back(job);
      return;
    }
    --free_;
    Serve(job);
  }
  void SetRate(double rate) override { rate_ = rate; }

 private:
  void Serve(Job* job) {
    const double mean = static_cast<double>(job->io.bytes) * servers_ / rate_;
    const Duration time = FromSeconds(prng_.Exponential(mean));
    FinishAt(events().now() + time, time, job);
  }
  void OnEnd(Job* /*job*/) override {
    ++free_;
    if (waiting_.empty()) return;
    Job* next = waiting_.front();
    waiting_.pop_front();
    --free_;
    Serve(next);
  }

  int servers_;
  int free_;
  double rate_;
  Prng prng_;
  std::deque<Job*> waiting_;
};

class ExponentialDevice final : public Device {
 public:
  ExponentialDevice(EventQueue* events, double iops, Prng prng)
      : Device(events), mean_(1 / iops), prng_(prng) {}

  void Submit(Job* job) override {
    const Duration time = FromSeconds(prng_.Exponential(mean_));
    free_at_ = std::max(free_at_, events().now()) + time;
    FinishAt(free_at_, time, job);
  }

 private:
  double mean_;
  Prng prng_;
  TimePoint free_at_{0};
};

}  // namespace

DeviceFactory Flat(double bytes_per_s) {
  return
      [=](EventQueue* events, Prng) { return std::make_unique<FlatDevice>(events, bytes_per_s); };
}

DeviceFactory Slots(int servers, double bytes_per_s) {
  return [=](EventQueue* events, Prng prng) {
    return std::make_unique<SlotsDevice>(events, servers, bytes_per_s, prng);
  };
}

DeviceFactory Exponential(double iops) {
  return [=](EventQueue* events, Prng prng) {
    return std::make_unique<ExponentialDevice>(events, iops, prng);
  };
}

}  // namespace weir::sim
