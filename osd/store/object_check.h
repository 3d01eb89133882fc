// ObjectCheck: the part of CheckStore that looks at the objects: every record of RocksDB against
// every other and against the blocks of the data region. Internal to osd/store.
#pragma once

#include <map>
#include <vector>

#include "common/kv/kv_store.h"
#include "osd/format/onode_format.h"
#include "osd/format/superblock_format.h"
#include "osd/store/store_check.h"

namespace weir::osd {

class ObjectCheck {
 public:
  // All of them outlive it.
  ObjectCheck(KvStore& kv, BlockDevice& device, const Superblock& super,
              const CheckOptions& options, CheckReport* report);
  Status Run();

 private:
  struct Overlaid {
    uint64_t version;
    std::string bytes;
  };
  // Everything that is stored under one id.
  struct Records {
    ObjectId id;
    bool has_head = false, head_ok = false;
    OnodeHead head;
    std::vector<BlockRef> blocks;
    std::map<uint32_t, uint64_t>
        kept;  // by shard: a bit for each block that has space without bytes
    uint16_t shards = 0, bad_shards = 0;
    std::map<uint32_t, Overlaid> overlays;
  };
  // One of the three tables, walked in step with the others.
  struct Cursor {
    std::unique_ptr<KvStore::Iterator> it;
    char kind = 0;
    ParsedKey key;
    [[nodiscard]] bool valid() const { return key.kind == kind; }
  };

  Status ReadMark();
  Status CountStrangers();
  Status OpenCursor(char kind, Cursor* cursor);
  Status Settle(Cursor* cursor);  // at the next key that parses
  Status Step(Cursor* cursor);
  Status Walk();
  Status Gather(ObjectId id, Records* records);
  void TakeShard(std::string_view value, uint32_t shard, Records* records);
  void TakeBlock(ObjectId id, uint32_t block, uint32_t place);
  void CheckHead(const Records& records);
  void CheckReach(const Records& records);
  void CheckEnd(const Records& records);
  Status CheckBlocks(const Records& records);
  Status CheckRun(const Records& records, uint32_t first, uint32_t count);
  void CheckTail(const Records& records, uint32_t block, std::string_view bytes);
  void Unreachable(std::string key, std::string what, uint64_t blocks);
  template <typename Visit>
  Status ForEachBlock(Visit visit);
  void CheckKept();
  Status CheckShared();
  Status NameOwners();
  void CountWaiting();
  Status Repair();
  Findings& findings() { return report_.findings; }

  KvStore& kv_;
  BlockDevice& device_;
  const uint32_t first_, count_;  // blocks of the data region
  const bool may_share_;          // copies may name the same block, with the same checksum
  const CheckOptions options_;
  CheckReport& report_;

  Cursor heads_, shards_, overlays_;
  std::vector<bool> taken_, named_again_;
  bool any_named_again_ = false;
  std::map<uint32_t, std::vector<std::string>> claimed_;  // places in double use -> their owners
  // Places with a block waiting for them, but those for which space is kept.
  std::vector<uint32_t> overlaid_;
  WriteBatch repairs_, unwanted_;
  uint64_t mark_ = UINT64_MAX;  // above every version given
  uint64_t objects_ = 0, used_blocks_ = 0, kept_blocks_ = 0, waiting_ = 0, leaked_blocks_ = 0,
           verified_ = 0;
};

}  // namespace weir::osd
