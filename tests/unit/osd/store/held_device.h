// HeldDevice: a device in memory whose large requests are carried out when the test says so; small
// ones (RocksDB's, say) complete inside the call. Threads: any; Release completes in the caller's.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "common/disk/mem_device.h"

namespace weir::osd::testing {

class HeldDevice final : public BlockDevice {
 public:
  struct Request {
    uint64_t offset;
    uint64_t bytes;
    bool operator==(const Request&) const = default;
  };

  explicit HeldDevice(uint64_t size) : medium_(size) {}

  // Requests of at least so many bytes wait from now on. UINT64_MAX: none.
  void HoldFrom(uint64_t bytes) {
    std::lock_guard lock(mutex_);
    hold_from_ = bytes;
  }
  // Only those that begin in this range of the device.
  void HoldWithin(uint64_t offset, uint64_t bytes) {
    std::lock_guard lock(mutex_);
    hold_begin_ = offset;
    hold_end_ = offset + bytes;
  }
  // Waits for another thread's request. False: none came in a minute.
  [[nodiscard]] bool WaitHeld() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::minutes(1), [this] { return !held_.empty(); });
  }
  [[nodiscard]] std::vector<Request> held() const {
    std::lock_guard lock(mutex_);
    std::vector<Request> requests;
    for (const Held& one : held_) requests.push_back(one.request);
    return requests;
  }
  // Carries out the i-th of held(), or fails it.
  void Release(size_t index = 0, Status fault = {}) {
    std::function<void(Status)> run;
    {
      std::lock_guard lock(mutex_);
      run = std::move(held_.at(index).run);
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
    }
    run(std::move(fault));
  }

  [[nodiscard]] uint64_t size() const override { return medium_.size(); }
  [[nodiscard]] const std::string& name() const override { return medium_.name(); }

 protected:
  void DoRead(uint64_t offset, Buffer buffer, Done done) override {
    HoldOrRun({offset, buffer.size()},
              [this, offset, buffer, done = std::move(done)](Status fault) mutable {
                if (!fault.ok()) return done(std::move(fault));
                medium_.ReadAsync(offset, buffer, std::move(done));
              });
  }
  void DoWrite(uint64_t offset, Buffer buffer, Done done) override {
    HoldOrRun({offset, buffer.size()},
              [this, offset, buffer, done = std::move(done)](Status fault) mutable {
                if (!fault.ok()) return done(std::move(fault));
                medium_.WriteAsync(offset, buffer, std::move(done));
              });
  }
  void DoFlush(Done done) override { done({}); }
  Status DoDiscard(uint64_t, uint64_t) override { return {}; }

 private:
  struct Held {
    Request request;
    std::function<void(Status)> run;
  };

  void HoldOrRun(Request request, std::function<void(Status)> run) {
    {
      std::lock_guard lock(mutex_);
      if (request.bytes >= hold_from_ && request.offset >= hold_begin_ &&
          request.offset < hold_end_) {
        held_.push_back({request, std::move(run)});
        changed_.notify_all();
        return;
      }
    }
    run({});
  }

  MemDevice medium_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t hold_from_ = UINT64_MAX, hold_begin_ = 0, hold_end_ = UINT64_MAX;
  std::deque<Held> held_;
};

}  // namespace weir::osd::testing
