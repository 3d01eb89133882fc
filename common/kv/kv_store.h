// KvStore: an ordered map of byte strings with atomic, durable batches. RocksDB in a daemon
// (rocks_kv_store.h), a std::map in tests (mem_kv_store.h); the same typed tests run on both.
//
// Order:   keys compare as unsigned bytes.
// Threads: every call may come from any thread. Apply is atomic; a batch applied with kDurable is
// on
//          stable storage when Apply returns, together with everything applied before it.
// Errors:  kNotFound from Get; kIo, kCorrupt, kNoSpace from the medium. A failed Apply changed
// nothing
//          that a later Get may see, unless the store reports itself failed from then on.
//          kAgain from what reads memory only: it would have to ask the medium.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace weir {

// An ordered list of changes applied together.
class WriteBatch {
 public:
  struct Op {
    enum class Kind { kPut, kDelete, kDeleteRange } kind;
    std::string key;
    std::string value;  // kPut: the value; kDeleteRange: the end key, not included
  };
  void Put(std::string_view key, std::string_view value) {
    ops_.push_back({Op::Kind::kPut, std::string(key), std::string(value)});
  }
  void Delete(std::string_view key) { ops_.push_back({Op::Kind::kDelete, std::string(key), {}}); }
  // Deletes begin <= key < end.
  void DeleteRange(std::string_view begin, std::string_view end) {
    ops_.push_back({Op::Kind::kDeleteRange, std::string(begin), std::string(end)});
  }
  // Appends the changes of another batch, which is left empty.
  void Append(WriteBatch&& other) {
    for (Op& op : other.ops_) ops_.push_back(std::move(op));
    other.ops_.clear();
  }
  [[nodiscard]] const std::vector<Op>& ops() const { return ops_; }
  [[nodiscard]] bool empty() const { return ops_.empty(); }
  void Clear() { ops_.clear(); }

 private:
  std::vector<Op> ops_;
};

enum class Durability { kDurable, kBuffered };

class KvStore {
 public:
  // A forward cursor over a snapshot taken when it was made.
  class Iterator {
   public:
    virtual ~Iterator() = default;
    virtual void Seek(std::string_view key) = 0;  // to the first key >= `key`
    [[nodiscard]] virtual bool Valid() const = 0;
    virtual void Next() = 0;
    // Views that hold until the next Seek or Next.
    [[nodiscard]] virtual std::string_view key() const = 0;
    [[nodiscard]] virtual std::string_view value() const = 0;
    [[nodiscard]] virtual Status status() const = 0;  // not ok: Valid() is false because of it
  };

  virtual ~KvStore() = default;
  virtual Result<std::string> Get(std::string_view key) = 0;
  // The same without a wait for the medium. What Get has read is in memory for a while.
  virtual Result<std::string> GetInMemory(std::string_view key) { return Get(key); }
  virtual Status Apply(const WriteBatch& batch, Durability durability) = 0;
  // False: nearly full. What is left is for what makes it smaller, and for the store itself.
  virtual bool HasRoom() { return true; }
  // The same, after what the store has yet to tidy up. May block for that.
  virtual bool AwaitRoom() { return HasRoom(); }
  virtual std::unique_ptr<Iterator> NewIterator() = 0;
  // For keys before `end` only: what lies behind, deleted keys among it, need not be looked at.
  virtual std::unique_ptr<Iterator> NewIteratorBefore(std::string_view /*end*/) {
    return NewIterator();
  }
  // The same without a wait for the medium: where it would have to, it is not valid any more and
  // its status is kAgain.
  virtual std::unique_ptr<Iterator> NewIteratorInMemory(std::string_view end) {
    return NewIteratorBefore(end);
  }
};

}  // namespace weir
