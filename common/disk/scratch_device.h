// ScratchDevice: another device as it may be written to without being changed. Writes stay in
// memory and hide what lies below, so that a checker can let a store recover on a disk that it must
// not touch. Memory: what is written.
//
// Threads: any. The device below must outlive it; `done` runs inside the call.
#pragma once

#include <map>
#include <mutex>

#include "common/disk/block_device.h"

namespace weir {

class ScratchDevice final : public BlockDevice {
 public:
  explicit ScratchDevice(BlockDevice& below) : below_(below) {}
  [[nodiscard]] uint64_t size() const override { return below_.size(); }
  [[nodiscard]] const std::string& name() const override { return below_.name(); }

 protected:
  void DoRead(uint64_t offset, Buffer buffer, Done done) override;
  void DoWrite(uint64_t offset, Buffer buffer, Done done) override;
  void DoFlush(Done done) override { done({}); }
  Status DoDiscard(uint64_t, uint64_t) override { return {}; }

 private:
  BlockDevice& below_;
  std::mutex mutex_;
  std::map<uint64_t, Buffer> written_;  // by block number
};

}  // namespace weir
