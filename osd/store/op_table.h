// OpTable: what became of the operations whose senders may still ask again, so that each is carried
// out once; and the floors below which nobody asks. All of it is in memory, and on the disk as the
// records 'I' and 'F' (osd/format/DISK_FORMAT.md), which change in the same batch as the object.
//
// An id is kept until the floor of its session in its slot, or the one of the object, has passed
// it. The floor on the disk follows in steps, so that not each change writes it, and ids go with
// those: after a crash a late copy is below the floor, or finds its id. A tombstone is kept as long
// as an id is. Bounded: of a session in a slot the lowest numbers
// go first when there are more than `ids_max`, and count as below its floor then: who asks again is
// refused, nothing is done twice. Of sessions the one that has been silent longest goes, with all
// that is known of it, when there are more than `sessions_max` (a session counts in each slot): a
// copy that is late after that is taken for new.
//
// Threads: whoever holds Lock, from the question until the batch is in the commit queue, so that
//          the disk sees the same order. Lock order: object, table, commit queue.
#pragma once

#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "common/kv/kv_store.h"
#include "osd/format/onode_format.h"
#include "osd/store/object_store.h"

namespace weir::osd {

class OpTable {
 public:
  struct Options {
    size_t ids_max = 1024;          // of one session in one slot
    size_t sessions_max = 1 << 16;  // of all slots
    uint64_t floor_step = 64;       // numbers
  };
  // Whoever names no slot has this one.
  static constexpr SlotId kNoSlot{UINT32_MAX, UINT32_MAX};

  explicit OpTable(Options options) : options_(options) {}
  OpTable() : OpTable(Options()) {}

  // Reads what is on the disk; before any other call. Into `batch` goes what is to be tidied up.
  Status Load(KvStore& kv, WriteBatch* batch);

  [[nodiscard]] std::unique_lock<std::mutex> Lock() { return std::unique_lock(mutex_); }

  // What follows requires the lock.
  [[nodiscard]] bool IsBelowFloor(ObjectId object, SlotId slot, const OpTerms& op) const;
  // Null: it was not carried out.
  [[nodiscard]] const OpIdRecord* Find(ObjectId object, const OpTerms& op) const;
  // What the sender says that it has an answer to is forgotten.
  void RaiseFloors(SlotId slot, const OpTerms& op, WriteBatch* batch);
  // Of one that Find does not know and that is below no floor; object_floor rises with it.
  void Record(ObjectId object, SlotId slot, const OpTerms& op, const OpIdRecord& record,
              WriteBatch* batch);
  // The object goes. True: a tombstone must stay, which goes when its last id does, together with
  // its entry in the index of `slot`.
  bool Bury(ObjectId object, std::optional<SlotId> slot);
  // There is such an object again.
  void Revive(ObjectId object);

  [[nodiscard]] size_t sessions() const { return sessions_.size(); }

 private:
  struct Key {
    SlotId slot;
    uint64_t session = 0;
    friend constexpr auto operator<=>(const Key&, const Key&) = default;
  };
  struct Session {
    uint64_t floor = 0;
    uint64_t kept_floor = 0;                      // on the disk
    std::set<std::pair<uint64_t, ObjectId>> ids;  // by number
    std::list<Key>::iterator use;
  };
  struct Known {
    std::map<uint64_t, OpIdsValue> sessions;  // ids in the order of their numbers
    bool tombstone = false;
    std::optional<SlotId> index;  // of a tombstone
  };

  Session& Use(const Key& key, WriteBatch* batch);
  void RaiseSession(const Key& key, uint64_t floor, uint64_t step, WriteBatch* batch);
  void Forget(ObjectId object, uint64_t session, uint64_t below, WriteBatch* batch);
  void DropSession(const Key& key, WriteBatch* batch);
  void DropIfEmpty(ObjectId object, WriteBatch* batch);
  Status LoadFloors(KvStore& kv);
  Status LoadIds(KvStore& kv);

  const Options options_;
  mutable std::mutex mutex_;
  std::map<Key, Session> sessions_;
  std::list<Key> uses_;  // the one that has been silent longest first
  std::map<ObjectId, Known> objects_;
};

}  // namespace weir::osd
