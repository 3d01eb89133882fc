#include "tests/crash/planted_bug.h"

#include "common/base/crc32c.h"
#include "osd/store/extent_store.h"
#include "osd/store/superblock.h"
#include "tests/crash/forwarding_kv.h"

namespace weir::osd::testing {
namespace {

class BuggyKv final : public ForwardingKv {
 public:
  BuggyKv(std::unique_ptr<RawKvStore> below, BlockDevice& device, Bug bug)
      : ForwardingKv(std::move(below)), device_(device), bug_(bug) {}

  Result<std::string> Get(std::string_view key) override {
    Result<std::string> value = below_->Get(key);
    if (!value.ok() || bug_ != Bug::kMissingChecksum || key[0] != 'S') return value;
    return Believe(*value);
  }
  Status Apply(const WriteBatch& batch, Durability durability) override {
    if (bug_ == Bug::kMissingFlush) return below_->Apply(batch, Durability::kBuffered);
    if (bug_ != Bug::kLeak) return below_->Apply(batch, durability);
    WriteBatch kept;
    for (const WriteBatch::Op& op : batch.ops()) {
      if (op.kind == WriteBatch::Op::Kind::kPut) kept.Put(op.key, op.value);
      if (op.kind == WriteBatch::Op::Kind::kDelete && op.key[0] != 'S') kept.Delete(op.key);
    }
    return below_->Apply(kept, durability);
  }

 private:
  // The extent map with the checksums of what the disk has now.
  Result<std::string> Believe(const std::string& value) {
    std::vector<BlockRef> refs(kBlocksPerShard);
    uint64_t kept = 0;
    WEIR_RETURN_IF_ERROR(DecodeShard(value, refs, &kept));
    const Buffer block = Buffer::Aligned(kBlockSize);
    for (BlockRef& ref : refs) {
      if (ref.place == 0) continue;
      WEIR_RETURN_IF_ERROR(device_.Read(uint64_t{ref.place} * kBlockSize, block));
      ref.crc = Crc32c(block.data(), kBlockSize);
    }
    return EncodeShard(refs, kept);
  }

  BlockDevice& device_;
  const Bug bug_;
};

}  // namespace

void LateDevice::DoRead(uint64_t offset, Buffer buffer, Done done) {
  const Status status = below_.Read(offset, buffer);
  {
    const std::lock_guard lock(mutex_);
    for (size_t at = 0; at < buffer.size(); at += kBlockSize) {
      const auto held = held_.find((offset + at) / kBlockSize);
      if (held != held_.end()) std::memcpy(buffer.data() + at, held->second.data(), kBlockSize);
    }
  }
  done(status);
}

void LateDevice::DoWrite(uint64_t offset, Buffer buffer, Done done) {
  Status status;
  {
    const std::lock_guard lock(mutex_);
    for (size_t at = 0; at < buffer.size(); at += kBlockSize) {
      held_[(offset + at) / kBlockSize] = Buffer::CopyOf(buffer.Slice(at, kBlockSize).span());
    }
    while (held_.size() > kHeldMax) {
      Buffer aligned = Buffer::Aligned(kBlockSize);
      std::memcpy(aligned.data(), held_.begin()->second.data(), kBlockSize);
      status = below_.Write(held_.begin()->first * kBlockSize, aligned);
      held_.erase(held_.begin());
    }
  }
  done(status);
}

Result<OpenedStore> OpenWithBug(BlockDevice& device, const StoreOptions& options, Bug bug) {
  OpenedStore opened;
  if (bug == Bug::kNone) {
    WEIR_ASSIGN_OR_RETURN(opened.store, OpenStore(device, options));
    return opened;
  }
  WEIR_ASSIGN_OR_RETURN(const Superblock super, LoadSuperblock(device));
  WEIR_ASSIGN_OR_RETURN(auto kv,
                        OpenRawKvStore(device, {super.kv_offset, super.kv_bytes},
                                       {.cache_bytes = options.memory_bytes / 4,
                                        .write_buffer_bytes = options.kv_write_buffer_bytes}));
  if (bug == Bug::kWrongOrder) opened.device = std::make_unique<LateDevice>(device);
  BlockDevice& seen = opened.device != nullptr ? *opened.device : device;
  auto store =
      std::make_unique<ExtentStore>(seen, std::make_unique<BuggyKv>(std::move(kv), device, bug),
                                    Region{super.data_offset, super.data_bytes}, options);
  WEIR_RETURN_IF_ERROR(store->Recover());
  opened.store = std::move(store);
  return opened;
}

}  // namespace weir::osd::testing
