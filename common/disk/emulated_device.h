// EmulatedDevice: a real device, as slow as a model says. The bytes go to the device below at once;
// the answer is held until the moment at which the model's disk would have given it.
//
// One thread runs the model's events in step with the clock and gives the answers. It sleeps until
// shortly before a moment and spins the rest, so that an answer is some microseconds late, not the
// tens of microseconds that a wake-up may take; how long it spins it learns from its wake-ups. A
// device below that is slower than the model makes the answer as late as it is; `late` counts
// those.
//
// Threads: every call from any thread; callbacks run on Options::loop (without one on the device's
//          thread or, of a late answer, on that of the device below) and must not block; a
//          synchronous read is allowed there.
// Errors:  those of the device below, at the model's time.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/base/inheriting_mutex.h"
#include "common/base/time.h"
#include "common/disk/block_device.h"
#include "common/disk/model/disk_model.h"
#include "common/disk/model/event_queue.h"
#include "common/reactor/loop.h"

namespace weir {

class EmulatedDevice final : public BlockDevice {
 public:
  struct Options {
    std::string name;
    bool rotational = false;
    bool flush_host = false;  // flushes reach the device below
    Loop* loop = nullptr;     // runs the callbacks; null: the thread that has the answer
    // Told of each answer how much later than the model's moment it began; from the thread that
    // gives it, before the answer.
    std::function<void(Duration)> on_answer;
  };
  using MakeModel = std::function<std::unique_ptr<model::DiskModel>(model::EventQueue*)>;

  // The clock must outlive it; it advances by itself.
  static std::unique_ptr<BlockDevice> Start(std::unique_ptr<BlockDevice> below,
                                            const MakeModel& make, Clock& clock, Options options);
  // Without a thread: somebody calls Advance (tests under a manual clock).
  EmulatedDevice(std::unique_ptr<BlockDevice> below, const MakeModel& make, Clock& clock,
                 Options options);
  ~EmulatedDevice() override;  // waits for what is under way

  // Gives the answers that are due. Returns the model's next moment.
  TimePoint Advance();

  [[nodiscard]] uint64_t size() const override { return below_->size(); }
  [[nodiscard]] const std::string& name() const override { return options_.name; }
  [[nodiscard]] bool rotational() const override { return options_.rotational; }
  // As fast or slow as its model wherever it was written or not.
  [[nodiscard]] bool is_image() const override { return options_.flush_host && below_->is_image(); }
  [[nodiscard]] uint64_t late() const { return late_; }

 protected:
  void DoRead(uint64_t offset, Buffer buffer, Done done) override;
  void DoWrite(uint64_t offset, Buffer buffer, Done done) override;
  void DoFlush(Done done) override;
  // From a callback of this device, where nobody else would give the answer, at the real speed.
  Status DoReadSync(uint64_t offset, Buffer buffer) override;
  Status DoDiscard(uint64_t offset, uint64_t length) override {
    return below_->Discard(offset, length);
  }

 private:
  // One request between its two ends, the model's and the real one. Guarded by mutex_.
  struct Request {
    Done done;
    Status status;
    TimePoint due;
    bool model_ended = false;
    bool real_ended = false;
  };
  using RequestPtr = std::shared_ptr<Request>;
  static constexpr TimePoint kAwake{0};

  RequestPtr Submit(const model::DiskIo& io, Done done);
  void RealEnded(const RequestPtr& request, Status status);
  void Answer(const RequestPtr& request);
  void Deliver(Request& request);
  void Run();

  const std::unique_ptr<BlockDevice> below_;
  Clock& clock_;
  const Options options_;

  InheritingMutex mutex_;
  std::condition_variable changed_, idle_;
  model::EventQueue events_;
  std::unique_ptr<model::DiskModel> model_;
  std::vector<RequestPtr> due_;  // both ends reached, the answer not begun
  uint64_t under_way_ = 0;
  TimePoint sleeps_until_ = kAwake;
  std::atomic<bool> news_{false};  // something was submitted; for the thread while it spins
  bool stopping_ = false;
  std::atomic<uint64_t> late_{0};
  std::thread thread_;
};

}  // namespace weir
