// Overlay: the namespace store as the next operation must see it: what is durable, plus what has
// been prepared and waits for its commit, plus a bounded cache of what was read.
//
// Order:   every prepared change belongs to a numbered batch and to the session that made it;
//          Committed(n) says that batches up to n are durable. A read tells the youngest
//          uncommitted batch it saw, and the youngest of another session's changes, so that an
//          answer built on it can be held back until that batch is durable. Two kinds of changes
//          are told apart from all others: a quiet one moves only what is counted below
//          directories, which hardly any answer shows; one of contents moves of a directory only
//          what its names move (times, version, numbers of entries and links), which nobody needs
//          who looks up or changes a name in it.
// Memory:  a read may be told to ask memory only. It fails with kAgain, then, where the disk would
//          have to be asked, and adds what that is to a list for somebody to load (store_loader.h).
//          BeginLoad and EndLoad hand over what was loaded, unless it was changed meanwhile; each
//          load ends with EndLoad or FailLoad.
// Cache:   what was read or written once goes first, unless it is read again while it is among the
//          last eighth: a find, or a million new files, leave what is asked for often in memory,
//          and what they push out is still warm in the processor's caches.
// Threads: none of its own; the caller holds the NamespaceDb lock.
#pragma once

#include <algorithm>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "common/kv/kv_store.h"

namespace weir::mds {

class Overlay {
 public:
  using Value = std::optional<std::string>;  // none: known to be absent

  Overlay(KvStore& store, size_t cached_keys)
      : store_(store), once_max_(cached_keys / 8), again_max_(cached_keys - once_max_) {}

  // What is not in memory: keys from `begin` on and before `end`, or `begin` alone without an end.
  struct Missing {
    std::string begin;
    std::string end;
    [[nodiscard]] bool is_key() const { return end.empty(); }
    bool operator<(const Missing& other) const {
      return std::tie(begin, end) < std::tie(other.begin, other.end);
    }
  };

  // The youngest batches, not durable yet, that values come from which `reader` has read; 0: none.
  struct Seen {
    uint64_t reader = 0;  // session; 0: the MDS itself
    uint64_t any = 0;
    uint64_t others = 0;  // changed by somebody else
    uint64_t counts = 0;  // of quiet changes, which the two above leave out
  };

  // With `missing` memory alone is asked. With `contents` what its contents have moved is seen by
  // that alone.
  Result<Value> Get(const std::string& key, Seen* seen, std::vector<Missing>* missing = nullptr,
                    Seen* contents = nullptr);
  // Keys of [begin, end) in order until `visit` returns false.
  using Visit = std::function<bool(std::string_view key, std::string_view value)>;
  Status Scan(std::string_view begin, std::string_view end, Seen* seen, const Visit& visit,
              std::vector<Missing>* missing = nullptr);

  // The key is about to be read; returns the number of that load.
  uint64_t BeginLoad(const std::string& key);
  // This is what the store had. Remembered, unless the key was written or loaded anew since.
  void EndLoad(const std::string& key, uint64_t load, Value value);
  // Nothing was read.
  void FailLoad(const std::string& key, uint64_t load);
  [[nodiscard]] size_t loading() const { return loading_.size(); }

  // Batches come in order. Of several values of a key in one, the last counts.
  enum class Change : uint8_t { kAny, kContents };
  void Put(const std::string& key, Value value, uint64_t batch, uint64_t session,
           Change change = Change::kAny);
  void PutQuietly(const std::string& key, Value value, uint64_t batch);
  // What Put has brought of the youngest batch.
  void CopyBatch(uint64_t batch, WriteBatch* writes) const;
  void Committed(uint64_t batch);
  // The store lost what was pending: forget it and the cache.
  void Reset();

 private:
  // Batches of changes of one key; 0: none is pending.
  struct Changes {
    uint64_t last = 0;
    uint64_t session = 0;  // whose that is
    uint64_t others = 0;   // the last of anybody else
    void Add(uint64_t batch, uint64_t by) {
      if (by != session) others = last;
      last = batch;
      session = by;
    }
  };
  struct Pending {
    Value value;
    Changes shown;         // that are not quiet
    Changes steady;        // nor of contents
    uint64_t counted = 0;  // batch of the last quiet one
    [[nodiscard]] uint64_t batch() const { return std::max(shown.last, counted); }
  };
  Pending& Take(const std::string& key, Value value, uint64_t batch);
  void See(const Changes& changes, Seen* seen) const;
  using PendingMap = std::map<std::string, Pending, std::less<>>;
  using Uses = std::list<const std::string*>;  // least recently used first; keys of cache_
  struct Cached {
    Value value;
    Uses::iterator use;
    bool again = false;  // in which list that is
  };
  void Use(Cached* cached);
  // Whether that load is the key's last, and the key was not written since.
  bool TakeLoad(const std::string& key, uint64_t load);
  void Remember(const std::string& key, Value value);
  void Forget(const std::string& key);

  KvStore& store_;
  const size_t once_max_, again_max_;  // keys
  uint64_t committed_ = 0;             // batch
  PendingMap pending_;
  // What was put in it; a younger batch may have taken it over.
  std::map<uint64_t, std::vector<PendingMap::iterator>> of_batch_;
  std::unordered_map<std::string, Cached> cache_;  // older than what is pending
  Uses once_, again_;
  std::unordered_map<std::string, uint64_t> loading_;  // key -> its last load, not written since
  uint64_t last_load_ = 0;
};

}  // namespace weir::mds
