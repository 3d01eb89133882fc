// Bugs on purpose, around the store and never in it: what a harness must notice to be worth
// anything. Each is a wrapper of the device or of RocksDB that the store is opened with.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "common/disk/block_device.h"
#include "osd/store/object_store.h"

namespace weir::osd::testing {

enum class Bug {
  kNone,
  kMissingFlush,     // a batch is answered before it is durable
  kWrongOrder,       // metadata is durable before the data that it names
  kMissingChecksum,  // what the disk has is taken for what was written
  kLeak,             // records of freed space are not deleted
};

// A device that answers writes at once and makes them later, in its own time.
class LateDevice final : public BlockDevice {
 public:
  explicit LateDevice(BlockDevice& below) : below_(below) {}
  [[nodiscard]] uint64_t size() const override { return below_.size(); }
  [[nodiscard]] const std::string& name() const override { return below_.name(); }

 protected:
  void DoRead(uint64_t offset, Buffer buffer, Done done) override;
  void DoWrite(uint64_t offset, Buffer buffer, Done done) override;
  void DoFlush(Done done) override { done({}); }
  Status DoDiscard(uint64_t, uint64_t) override { return {}; }

 private:
  static constexpr size_t kHeldMax = 16;  // blocks
  BlockDevice& below_;
  std::mutex mutex_;
  std::map<uint64_t, Buffer> held_;  // by block number
};

// A store with its bug.
struct OpenedStore {
  std::unique_ptr<BlockDevice> device;  // what the store sees; null: the real one
  std::unique_ptr<ObjectStore> store;   // last: goes first
};
Result<OpenedStore> OpenWithBug(BlockDevice& device, const StoreOptions& options, Bug bug);

}  // namespace weir::osd::testing
