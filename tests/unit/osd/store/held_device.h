// HeldDevice: a device in memory whose large requests are carried out when the test says so; small
// ones (RocksDB's, say) complete inside the call. Threads: any; Release completes in the caller's.
#pragma once

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
      if (request.bytes >= hold_from_) {
        held_.push_back({request, std::move(run)});
        return;
      }
    }
    run({});
  }

  MemDevice medium_;
  mutable std::mutex mutex_;
  uint64_t hold_from_ = UINT64_MAX;
  std::deque<Held> held_;
};

}  // namespace weir::osd::testing
