// HeldObjectStore: an ObjectStore in memory whose operations take effect when the test says so.
//
// Started operations queue up in `started()`; Release(i) carries the i-th out and completes it, in
// the calling thread. With `immediate` they complete inside the call, as in a very fast store.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/base/crc32c.h"
#include "osd/store/object_store.h"

namespace weir::osd::testing {

class HeldObjectStore final : public ObjectStore {
 public:
  struct Started {
    std::string what;  // "write 7.0 at 4096"
    ObjectId object;
    std::function<void()> complete;
    std::function<Duration()> landed;  // of a write that asked for it, see Land
  };
  std::function<void()> on_write;  // inside each Write, before it is held
  std::function<void()> after;     // behind each Release and Land
  bool immediate = false;
  Status fail;  // of every operation completed from now on
  StoreStats stats;
  Duration last_patience{0};          // of a write
  uint64_t piece_bytes = UINT64_MAX;  // as told last
  ChangeTerms last_terms;             // of a change
  std::optional<uint32_t> read_crc;   // what it says is the checksum of what is read

  [[nodiscard]] std::vector<std::string> started() const {
    std::lock_guard lock(mutex_);
    std::vector<std::string> names;
    for (const Started& one : started_) names.push_back(one.what);
    return names;
  }
  [[nodiscard]] size_t held() const {
    std::lock_guard lock(mutex_);
    return started_.size();
  }
  void Release(size_t index = 0) {
    std::function<void()> complete;
    {
      std::lock_guard lock(mutex_);
      complete = std::move(started_.at(index).complete);
      started_.erase(started_.begin() + static_cast<std::ptrdiff_t>(index));
    }
    complete();
    if (after) after();
  }
  // The data of the i-th is where it belongs, its commit is still to come; returns how long it may
  // be.
  Duration Land(size_t index = 0) {
    std::function<Duration()> landed;
    {
      std::lock_guard lock(mutex_);
      landed = std::move(started_.at(index).landed);
    }
    const Duration patience = landed();
    if (after) after();
    return patience;
  }
  [[nodiscard]] bool Lands(size_t index = 0) const {
    std::lock_guard lock(mutex_);
    return started_.at(index).landed != nullptr;
  }
  void ReleaseAll() {
    while (held() > 0) Release();
  }

  void Read(ObjectId id, uint64_t offset, uint64_t length, ReadDone done) override {
    Hold("read", id, offset, [this, id, offset, length, done = std::move(done)] {
      if (!fail.ok()) return done(fail);
      const std::string bytes = Get(id);
      const uint64_t from = std::min<uint64_t>(offset, bytes.size());
      done(ObjectData{Buffer::CopyOf(std::string_view(bytes).substr(from, length)), read_crc});
    });
  }
  void Change(ObjectChange change, WriteDone done) override {
    last_terms = change.terms;
    ObjectStore::Change(std::move(change), std::move(done));
  }
  void Write(ObjectId id, uint64_t offset, Buffer data, const WriteHints& hints,
             WriteDone done) override {
    last_patience = hints.patience;
    if (on_write) on_write();
    auto carry_out = [this, id, offset, data, crc = hints.crc, done = std::move(done)] {
      if (!fail.ok()) return done(fail);
      if (crc.has_value() && *crc != Crc32c(data.data(), data.size())) {
        return done(Status(ErrorCode::kBadMessage, "damaged"));
      }
      std::string bytes = Get(id);
      bytes.resize(std::max<size_t>(bytes.size(), offset + data.size()));
      bytes.replace(offset, data.size(), data.view());
      done(Put(id, bytes));
    };
    Hold("write", id, offset, std::move(carry_out), hints.landed);
  }
  void Truncate(ObjectId id, uint64_t size, WriteDone done) override {
    Hold("truncate", id, size, [this, id, size, done = std::move(done)] {
      if (!fail.ok()) return done(fail);
      std::string bytes = Get(id);
      bytes.resize(size);
      done(Put(id, bytes));
    });
  }
  void Delete(ObjectId id, Done done) override {
    Hold("delete", id, 0, [this, id, done = std::move(done)] {
      std::lock_guard lock(mutex_);
      objects_.erase(id);
      done(fail);
    });
  }
  void DeleteSome(InodeId inode, uint64_t first_index, size_t most, DeletedDone done) override {
    Hold("delete-some", {inode, first_index}, 0,
         [this, inode, first_index, most, done = std::move(done)] {
           uint64_t next = 0;
           {
             std::lock_guard lock(mutex_);
             auto it = objects_.lower_bound({inode, first_index});
             for (size_t i = 0; i < most && it != objects_.end() && it->first.inode == inode; ++i) {
               it = objects_.erase(it);
             }
             if (it != objects_.end() && it->first.inode == inode) next = it->first.index;
           }
           if (!fail.ok()) return done(fail);
           done(DeletedObjects{next, 0});
         });
  }
  void DeleteInode(InodeId inode, uint64_t first_index, DeletedDone done) override {
    Hold("delete-inode", {inode, first_index}, 0,
         [this, inode, first_index, done = std::move(done)] {
           {
             std::lock_guard lock(mutex_);
             std::erase_if(objects_, [&](const auto& item) {
               return item.first.inode == inode && item.first.index >= first_index;
             });
           }
           if (!fail.ok()) return done(fail);
           done(DeletedObjects{});
         });
  }
  void Stat(ObjectId id, InfoDone done) override {
    Hold("stat", id, 0, [this, id, done = std::move(done)] {
      if (!fail.ok()) return done(fail);
      done(ObjectInfo{Get(id).size(), {0, version_}});
    });
  }
  Result<std::optional<ObjectId>> NextObject(ObjectId from) override {
    std::lock_guard lock(mutex_);
    const auto it = objects_.lower_bound(from);
    if (it == objects_.end()) return std::optional<ObjectId>();
    return std::optional<ObjectId>(it->first);
  }
  uint64_t LbaHint(ObjectId id, uint64_t offset) override {
    return (id.inode.value << 32) + id.index * kMaxObjectSize + offset;
  }
  void SetPieceBytes(uint64_t bytes) override { piece_bytes = bytes; }
  [[nodiscard]] StoreStats Stats() const override { return stats; }
  Status Close() override { return {}; }

  std::string Get(ObjectId id) {
    std::lock_guard lock(mutex_);
    const auto it = objects_.find(id);
    return it == objects_.end() ? std::string() : it->second;
  }

 private:
  void Hold(const char* verb, ObjectId id, uint64_t offset, std::function<void()> complete,
            std::function<Duration()> landed = nullptr) {
    if (immediate && landed) landed();
    if (immediate) return complete();
    std::lock_guard lock(mutex_);
    const std::string what = std::string(verb) + " " + std::to_string(id.inode.value) + "." +
                             std::to_string(id.index) + " at " + std::to_string(offset);
    started_.push_back({what, id, std::move(complete), std::move(landed)});
  }
  ObjectInfo Put(ObjectId id, const std::string& bytes) {
    std::lock_guard lock(mutex_);
    objects_[id] = bytes;
    return {bytes.size(), {0, ++version_}};
  }

  mutable std::mutex mutex_;
  std::deque<Started> started_;
  std::map<ObjectId, std::string> objects_;
  uint64_t version_ = 0;
};

}  // namespace weir::osd::testing
