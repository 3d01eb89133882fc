// ScratchDevice: another device as it may be written to without being changed. Writes stay in
// memory and hide what lies below: so that a checker can let a store recover on a disk that it must
// not touch, and so that a start that is refused has changed nothing. Memory: what is written.
//
// Threads: any. The device below must outlive it.
// Durability: a Flush before Keep makes nothing durable. Keep repeats writes, growth and flushes in
//          their order, so that a power loss within it leaves what one in the original would have.
#pragma once

#include <atomic>
#include <map>
#include <shared_mutex>
#include <vector>

#include "common/disk/block_device.h"

namespace weir {

class ScratchDevice final : public BlockDevice {
 public:
  explicit ScratchDevice(BlockDevice& below) : below_(below), size_(below.size()) {}

  // Does to the device below all that was done here, and is that device from now on.
  Status Keep();

  Status Grow(uint64_t size) override;
  [[nodiscard]] uint64_t size() const override { return kept_ ? below_.size() : size_.load(); }
  [[nodiscard]] const std::string& name() const override { return below_.name(); }
  [[nodiscard]] bool rotational() const override { return below_.rotational(); }
  [[nodiscard]] bool is_image() const override { return below_.is_image(); }

 protected:
  void DoRead(uint64_t offset, Buffer buffer, Done done) override;
  void DoWrite(uint64_t offset, Buffer buffer, Done done) override;
  void DoFlush(Done done) override;
  Status DoDiscard(uint64_t offset, uint64_t length) override;
  Status DoReadSync(uint64_t offset, Buffer buffer) override;
  Status DoWriteSync(uint64_t offset, Buffer buffer) override;
  Status DoFlushSync() override;

 private:
  struct Step {
    enum Kind { kWrite, kFlush, kGrow } kind;
    uint64_t offset = 0;  // or the new size
    Buffer buffer;
  };
  // False when they have been kept meanwhile, and the device below is to be asked.
  bool ReadHere(uint64_t offset, const Buffer& buffer, Status* status);
  bool NoteStep(Step step);

  BlockDevice& below_;
  std::atomic<bool> kept_{false};
  std::atomic<uint64_t> size_;
  std::shared_mutex mutex_;             // held over reads of what lies below, so that Keep waits
  std::map<uint64_t, Buffer> written_;  // by block number
  std::vector<Step> steps_;
};

}  // namespace weir
