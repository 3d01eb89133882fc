// MemDevice: a BlockDevice in memory, for tests. Untouched ranges cost nothing and read as zeros;
// `done` runs inside the call. Threads: any.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "common/disk/block_device.h"

namespace weir {

class MemDevice final : public BlockDevice {
 public:
  explicit MemDevice(uint64_t size, std::string name = "mem", bool rotational = false);
  Status Grow(uint64_t size) override;
  [[nodiscard]] uint64_t size() const override { return size_; }
  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] bool rotational() const override { return rotational_; }
  // A device with the same bytes.
  [[nodiscard]] std::unique_ptr<MemDevice> Clone() const;

 protected:
  void DoRead(uint64_t offset, Buffer buffer, Done done) override;
  void DoWrite(uint64_t offset, Buffer buffer, Done done) override;
  void DoFlush(Done done) override { done({}); }
  Status DoDiscard(uint64_t offset, uint64_t length) override;

 private:
  static constexpr size_t kChunk = 64 << 10;
  std::atomic<uint64_t> size_;
  const std::string name_;
  const bool rotational_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<uint8_t[]>> chunks_;  // null: zeros
};

}  // namespace weir
