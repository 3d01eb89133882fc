// A store under test and what it must hold: runs seeded operations from several threads' worth of
// callbacks, records what was acknowledged, and compares after a crash.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/base/crc32c.h"
#include "common/base/prng.h"
#include "osd/store/object_store.h"

namespace weir::osd::testing {

template <typename T>
struct Waiter {
  std::shared_ptr<std::promise<T>> promise = std::make_shared<std::promise<T>>();
  std::future<T> future = promise->get_future();
  auto Callback() {
    return [p = promise](T value) { p->set_value(std::move(value)); };
  }
};

// A checksum that comes with the bytes is theirs.
inline Result<Buffer> ReadRange(ObjectStore& store, ObjectId id, uint64_t offset, uint64_t n) {
  Waiter<Result<ObjectData>> waiter;
  store.Read(id, offset, n, waiter.Callback());
  WEIR_ASSIGN_OR_RETURN(ObjectData read, waiter.future.get());
  if (read.crc.has_value()) {
    EXPECT_EQ(*read.crc, Crc32c(read.bytes.data(), read.bytes.size())) << offset << " + " << n;
  }
  return std::move(read.bytes);
}
inline Result<Buffer> ReadAll(ObjectStore& store, ObjectId id) {
  return ReadRange(store, id, 0, kMaxObjectSize);
}
inline Result<ObjectInfo> WriteSync(ObjectStore& store, ObjectId id, uint64_t offset, Buffer data) {
  Waiter<Result<ObjectInfo>> waiter;
  store.Write(id, offset, std::move(data), {}, waiter.Callback());
  return waiter.future.get();
}
inline Result<ObjectInfo> TruncateSync(ObjectStore& store, ObjectId id, uint64_t size) {
  Waiter<Result<ObjectInfo>> waiter;
  store.Truncate(id, size, waiter.Callback());
  return waiter.future.get();
}
inline Result<ObjectInfo> PunchSync(ObjectStore& store, ObjectId id, uint64_t offset, uint64_t n) {
  Waiter<Result<ObjectInfo>> waiter;
  store.Punch(id, offset, n, waiter.Callback());
  return waiter.future.get();
}
inline Result<ObjectInfo> AllocateSync(ObjectStore& store, ObjectId id, uint64_t offset, uint64_t n,
                                       bool zeros = false) {
  Waiter<Result<ObjectInfo>> waiter;
  store.Allocate(id, offset, n, zeros, waiter.Callback());
  return waiter.future.get();
}
inline Result<ObjectInfo> GiveBackSync(ObjectStore& store, ObjectId id, uint64_t offset,
                                       uint64_t n) {
  Waiter<Result<ObjectInfo>> waiter;
  store.GiveBack(id, offset, n, waiter.Callback());
  return waiter.future.get();
}
inline Result<ObjectInfo> CopySync(ObjectStore& store, const CopySource& from, ObjectId to,
                                   uint64_t offset, uint64_t n) {
  Waiter<Result<ObjectInfo>> waiter;
  store.Copy(from, to, offset, n, waiter.Callback());
  return waiter.future.get();
}
inline Result<std::vector<ByteRange>> ExtentsSync(ObjectStore& store, ObjectId id, uint64_t offset,
                                                  uint64_t n) {
  Waiter<Result<std::vector<ByteRange>>> waiter;
  store.Extents(id, offset, n, waiter.Callback());
  return waiter.future.get();
}
inline Result<ObjectInfo> StatSync(ObjectStore& store, ObjectId id) {
  Waiter<Result<ObjectInfo>> waiter;
  store.Stat(id, waiter.Callback());
  return waiter.future.get();
}
inline Status DeleteSync(ObjectStore& store, ObjectId id) {
  Waiter<Status> waiter;
  store.Delete(id, waiter.Callback());
  return waiter.future.get();
}
inline Result<DeletedObjects> DeleteInodeSync(ObjectStore& store, InodeId inode, uint64_t first) {
  Waiter<Result<DeletedObjects>> waiter;
  store.DeleteInode(inode, first, waiter.Callback());
  return waiter.future.get();
}

inline Result<DeletedObjects> DeleteSomeSync(ObjectStore& store, InodeId inode, uint64_t first,
                                             size_t most) {
  Waiter<Result<DeletedObjects>> waiter;
  store.DeleteSome(inode, first, most, waiter.Callback());
  return waiter.future.get();
}

inline Buffer RandomBytes(Prng& prng, size_t size) {
  Buffer buffer = Buffer::Aligned(size);
  for (size_t i = 0; i + 8 <= size; i += 8) {
    const uint64_t word = prng.Next();
    std::memcpy(buffer.data() + i, &word, 8);
  }
  for (size_t i = size / 8 * 8; i < size; ++i) buffer.data()[i] = static_cast<uint8_t>(prng.Next());
  return buffer;
}

// A size as a filesystem makes them: small, a block, ragged, large.
inline uint64_t RandomSize(Prng& prng) {
  switch (prng.Uniform(0, 4)) {
    case 0:
      return prng.Uniform(1, 5000);
    case 1:
      return kBlockSize;
    case 2:
      return prng.Uniform(1, 40000);
    case 3:
      return kBlockSize * prng.Uniform(1, 20);
    default:
      return prng.Uniform(1, 300000);
  }
}

// Every state an object may have after a crash: the last acknowledged one and those of operations
// that were under way.
class History {
 public:
  explicit History(size_t objects) : objects_(objects) {}

  static ObjectId IdOf(size_t i) { return {InodeId(10 + i / 4), i % 4}; }

  // Issues one random operation; at most one operation per object is under way at the caller's
  // wish, so that "old or new" is exact.
  void Issue(ObjectStore& store, Prng& prng);
  void WaitAll();
  // Waits until fewer than `n` operations are under way, and some object is at rest for the next (a
  // copy keeps two busy).
  void WaitBelow(size_t n);
  [[nodiscard]] size_t acknowledged() const { return acknowledged_; }
  [[nodiscard]] size_t failed() const { return failed_; }
  // Empty if the store holds what it must; else the story of the first object that is wrong.
  // `adopt`: what is found becomes the only allowed state, for going on.
  std::string Check(ObjectStore& store, bool adopt);
  // The same on a disk that has lost bits: an object may also say that it is damaged.
  std::string CheckRotten(ObjectStore& store);

 private:
  struct Model {
    std::string committed;              // acknowledged bytes
    std::vector<std::string> possible;  // of operations that failed or never answered
    bool busy = false;
  };
  void Finish(size_t i, bool ok, std::string after);
  // Half of the operations name a slot, and themselves; floors come some numbers behind.
  ChangeTerms SomeTerms(Prng& prng, size_t i);
  void IssuePunch(ObjectStore& store, Prng& prng, size_t i, std::unique_lock<std::mutex> lock);
  void IssueCopy(ObjectStore& store, Prng& prng, size_t i, std::unique_lock<std::mutex> lock);
  void IssueAllocate(ObjectStore& store, Prng& prng, size_t i, std::unique_lock<std::mutex> lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Model> objects_;
  size_t in_flight_ = 0, acknowledged_ = 0, failed_ = 0;
  uint64_t number_ = 0;  // of the last operation that named itself
};

inline void History::Issue(ObjectStore& store, Prng& prng) {
  std::unique_lock lock(mutex_);
  size_t i = prng.Uniform(0, objects_.size() - 1);
  while (objects_[i].busy) i = (i + 1) % objects_.size();
  Model& model = objects_[i];
  const ObjectId id = IdOf(i);
  std::string after = model.committed;
  const uint64_t choice = prng.Uniform(0, 99);
  model.busy = true;
  ++in_flight_;
  if (choice < 8) {
    IssueAllocate(store, prng, i, std::move(lock));
  } else if (choice < 16) {
    IssuePunch(store, prng, i, std::move(lock));
  } else if (choice < 28) {
    IssueCopy(store, prng, i, std::move(lock));
  } else if (choice < 80) {
    const uint64_t offset =
        prng.Chance(0.4) ? kBlockSize * prng.Uniform(0, 20) : prng.Uniform(0, after.size());
    const uint64_t size = RandomSize(prng);
    Buffer data = RandomBytes(prng, size);
    if (after.size() < offset + size) after.resize(offset + size);
    after.replace(offset, size, data.view());
    model.possible.push_back(after);
    ObjectChange change{.id = id, .offset = offset, .data = data, .terms = SomeTerms(prng, i)};
    lock.unlock();
    store.Change(std::move(change), [this, i, after = std::move(after)](Result<ObjectInfo> info) {
      Finish(i, info.ok(), after);
    });
  } else if (choice < 92) {
    const uint64_t size = prng.Uniform(0, after.size() + 5000);
    after.resize(size);
    model.possible.push_back(after);
    ObjectChange change{.kind = ObjectChange::Kind::kTruncate,
                        .id = id,
                        .offset = size,
                        .terms = SomeTerms(prng, i)};
    lock.unlock();
    store.Change(std::move(change), [this, i, after = std::move(after)](Result<ObjectInfo> info) {
      Finish(i, info.ok(), after);
    });
  } else {
    model.possible.emplace_back();
    lock.unlock();
    store.Delete(id, [this, i](Status status) { Finish(i, status.ok(), ""); });
  }
}

inline ChangeTerms History::SomeTerms(Prng& prng, size_t i) {
  ChangeTerms terms;
  if (prng.Chance(0.5)) return terms;
  const uint64_t lag = prng.Uniform(20, 40);
  const uint64_t floor = ++number_ > lag ? number_ - lag : 0;
  terms.slot = SlotId{1, static_cast<uint32_t>(i % 3)};
  terms.chain_version = 1 + number_ / 64;
  terms.op = {.session = 1 + prng.Uniform(0, 1), .number = number_, .session_floor = floor};
  return terms;
}

inline void History::IssuePunch(ObjectStore& store, Prng& prng, size_t i,
                                std::unique_lock<std::mutex> lock) {
  Model& model = objects_[i];
  std::string after = model.committed;
  const uint64_t offset = prng.Uniform(0, after.size());
  const uint64_t size = RandomSize(prng);
  for (uint64_t at = offset; at < std::min<uint64_t>(offset + size, after.size()); ++at) {
    after[at] = 0;
  }
  model.possible.push_back(after);
  lock.unlock();
  store.Punch(IdOf(i), offset, size,
              [this, i, after = std::move(after)](const Result<ObjectInfo>& info) {
                Finish(i, info.ok(), after);
              });
}

inline void History::IssueAllocate(ObjectStore& store, Prng& prng, size_t i,
                                   std::unique_lock<std::mutex> lock) {
  Model& model = objects_[i];
  std::string after = model.committed;
  const uint64_t offset = prng.Uniform(0, after.size() + 100'000);
  const uint64_t size = RandomSize(prng);
  const bool zeros = prng.Chance(0.3);
  for (uint64_t at = offset; zeros && at < std::min<uint64_t>(offset + size, after.size()); ++at) {
    after[at] = 0;
  }
  model.possible.push_back(after);
  lock.unlock();
  auto done = [this, i, after = std::move(after)](const Result<ObjectInfo>& info) {
    Finish(i, info.ok(), after);
  };
  if (!zeros && prng.Chance(0.2)) return store.GiveBack(IdOf(i), offset, size, done);
  store.Allocate(IdOf(i), offset, size, zeros, done);
}

// From an object that is known and at rest, mostly block by block.
inline void History::IssueCopy(ObjectStore& store, Prng& prng, size_t i,
                               std::unique_lock<std::mutex> lock) {
  size_t from = prng.Uniform(0, objects_.size() - 1);
  for (size_t tried = 0; tried < objects_.size(); ++tried, from = (from + 1) % objects_.size()) {
    if (from != i && !objects_[from].busy && objects_[from].possible.empty()) break;
  }
  if (from == i || objects_[from].busy || !objects_[from].possible.empty()) from = i;
  Model& model = objects_[i];
  Model& source = objects_[from];
  std::string after = model.committed;
  // Over itself, with a rest between the ranges, when nobody else is free.
  const bool alike = prng.Chance(0.7);
  const uint64_t offset = from == i ? 0 : prng.Uniform(0, 20) * kBlockSize + (alike ? 0 : 1000);
  uint64_t from_offset = prng.Uniform(0, 20) * kBlockSize;
  const uint64_t size = RandomSize(prng);
  if (from == i) from_offset += offset + size;
  std::string bytes(size, 0);
  if (from_offset < source.committed.size()) {
    const std::string found = source.committed.substr(from_offset, size);
    bytes.replace(0, found.size(), found);
  }
  if (after.size() < offset + size) after.resize(offset + size);
  after.replace(offset, size, bytes);
  model.possible.push_back(after);
  if (from != i) source.busy = true;
  lock.unlock();
  store.Copy({IdOf(from), from_offset}, IdOf(i), offset, size,
             [this, i, from, after = std::move(after)](const Result<ObjectInfo>& info) {
               if (from != i) {
                 std::lock_guard guard(mutex_);
                 objects_[from].busy = false;
               }
               Finish(i, info.ok(), after);
             });
}

inline void History::Finish(size_t i, bool ok, std::string after) {
  std::lock_guard lock(mutex_);
  Model& model = objects_[i];
  model.busy = false;
  if (ok) {
    ++acknowledged_;
    model.committed = std::move(after);
    model.possible.clear();
  } else {
    ++failed_;
  }
  --in_flight_;
  changed_.notify_all();
}

inline void History::WaitAll() {
  WaitBelow(1);
}

inline void History::WaitBelow(size_t n) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    return in_flight_ < n && std::any_of(objects_.begin(), objects_.end(),
                                         [](const Model& model) { return !model.busy; });
  });
}

inline std::string History::Check(ObjectStore& store, bool adopt) {
  for (size_t i = 0; i < objects_.size(); ++i) {
    Model& model = objects_[i];
    const ObjectId id = IdOf(i);
    const Result<Buffer> bytes = ReadAll(store, id);
    const std::string name = "object " + std::to_string(i) + ": ";
    if (!bytes.ok()) return name + bytes.status().message();
    const std::string_view found = bytes->view();
    bool allowed = found == model.committed;
    for (const std::string& state : model.possible) allowed = allowed || found == state;
    if (!allowed) {
      return name + "has " + std::to_string(found.size()) + " bytes that are neither the " +
             std::to_string(model.committed.size()) + " acknowledged ones nor of one of " +
             std::to_string(model.possible.size()) + " operations under way";
    }
    if (adopt) {
      model.committed = found;
      model.possible.clear();
    }
  }
  return "";
}

inline std::string History::CheckRotten(ObjectStore& store) {
  for (size_t i = 0; i < objects_.size(); ++i) {
    const Result<Buffer> bytes = ReadAll(store, IdOf(i));
    if (bytes.code() == ErrorCode::kCorrupt) continue;
    const std::string name = "object " + std::to_string(i) + ": ";
    if (!bytes.ok()) return name + bytes.status().message();
    if (bytes->view() != objects_[i].committed) return name + "is damaged and does not say so";
  }
  return "";
}

}  // namespace weir::osd::testing
