// MemObjectStore: the trivial model of an ObjectStore, for tests that need one and as the oracle of
// the model check. `done` runs inside the call.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "osd/store/object_store.h"

namespace weir::osd {

class MemObjectStore final : public ObjectStore {
 public:
  void Read(ObjectId id, uint64_t offset, uint64_t length, ReadDone done) override;
  void Write(ObjectId id, uint64_t offset, Buffer data, const WriteHints& hints,
             WriteDone done) override;
  void Truncate(ObjectId id, uint64_t size, WriteDone done) override;
  void Delete(ObjectId id, Done done) override;
  void DeleteInode(InodeId inode, uint64_t first_index, DeletedDone done) override;
  void DeleteSome(InodeId inode, uint64_t first_index, size_t most, DeletedDone done) override;
  void Punch(ObjectId id, uint64_t offset, uint64_t length, WriteDone done) override;
  void Allocate(ObjectId id, uint64_t offset, uint64_t length, bool zeros, WriteDone done) override;
  void GiveBack(ObjectId id, uint64_t offset, uint64_t length, WriteDone done) override;
  void Copy(const CopySource& from, ObjectId to, uint64_t offset, uint64_t length,
            WriteDone done) override;
  // What is not in a block of zeros.
  void Extents(ObjectId id, uint64_t offset, uint64_t length, ExtentsDone done) override;
  void NextIndex(ObjectId id, NextDone done) override;
  void Stat(ObjectId id, InfoDone done) override;
  Result<std::optional<ObjectId>> NextObject(ObjectId from) override;
  uint64_t LbaHint(ObjectId id, uint64_t offset) override;
  [[nodiscard]] StoreStats Stats() const override;
  Status Close() override { return {}; }

 private:
  struct Object {
    std::vector<uint8_t> bytes;
    uint64_t version = 0;
  };
  mutable std::mutex mutex_;
  std::map<ObjectId, Object> objects_;
  uint64_t next_version_ = 1;
};

}  // namespace weir::osd
