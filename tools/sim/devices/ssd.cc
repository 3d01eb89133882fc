#include "tools/sim/devices/ssd.h"

#include <algorithm>
#include <deque>

#include "common/base/check.h"

namespace weir::sim {
namespace {

class SsdDevice final : public Device {
 public:
  SsdDevice(EventQueue* events, const SsdModel& model)
      : Device(events), model_(model), channel_free_(static_cast<size_t>(model.channels)) {}

  void Submit(Job* job) override {
    if (job->io.op != osd::qos::OpKind::kWrite) {
      Read(job);
    } else {
      waiting_.push_back(job);
      TakeWrites();
    }
  }

 private:
  [[nodiscard]] uint64_t PagesOf(const Job& job) const {
    return std::max<uint64_t>(1, (job.io.bytes + model_.page - 1) / model_.page);
  }
  // The moment at which all pages have been worked on.
  TimePoint Occupy(const Job& job, double seconds_a_page) {
    const uint64_t first = job.io.lba / model_.page;
    const Duration each = FromSeconds(seconds_a_page);
    TimePoint end = events().now();
    for (uint64_t i = 0; i < PagesOf(job); ++i) {
      TimePoint& free = channel_free_[(first + i) % channel_free_.size()];
      free = std::max(free, events().now()) + each;
      end = std::max(end, free);
    }
    return end;
  }
  void Read(Job* job) {
    const Duration overhead = FromSeconds(model_.overhead_s);
    const TimePoint end = Occupy(*job, model_.read_s) + overhead;
    FinishAt(end, end - events().now(), job);
  }
  void TakeWrites() {
    while (!waiting_.empty()) {
      Job* job = waiting_.front();
      const uint64_t bytes = PagesOf(*job) * model_.page;
      if (buffered_ > 0 && buffered_ + bytes > model_.buffer) return;
      waiting_.pop_front();
      buffered_ += bytes;
      const Duration time =
          FromSeconds(model_.overhead_s + static_cast<double>(bytes) / model_.bus_bytes_per_s);
      FinishAt(events().now() + time, time, job);
      events().At(Occupy(*job, model_.program_s), [this, bytes] {
        buffered_ -= bytes;
        TakeWrites();
      });
    }
  }

  SsdModel model_;
  std::vector<TimePoint> channel_free_;
  std::deque<Job*> waiting_;
  uint64_t buffered_ = 0;
};

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

DeviceFactory Ssd(const SsdModel& model) {
  return [=](EventQueue* events, Prng) { return std::make_unique<SsdDevice>(events, model); };
}

DeviceFactory Recorded(std::vector<double> seconds) {
  return
      [=](EventQueue* events, Prng) { return std::make_unique<RecordedDevice>(events, seconds); };
}

}  // namespace weir::sim
