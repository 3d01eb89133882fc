// SyncSource: which objects a syncing successor does not have as its predecessor has them. Either a
// list is to do, or ranges of (object, version) are compared one after the other: below the cursor
// all is equal but what is to do, above it only what was sent already. Pure. Threads: one.
#pragma once

#include <optional>
#include <set>

#include "osd/chain/slot_store.h"

namespace weir::osd {

class SyncSource {
 public:
  // All objects but these are equal.
  explicit SyncSource(std::set<ObjectId> to_do) : compared_(true), to_do_(std::move(to_do)) {}
  // Nothing is known to be.
  SyncSource() = default;

  [[nodiscard]] bool IsEqual(ObjectId object) const {
    if (to_do_.contains(object)) return false;
    return compared_ || (cursor_.has_value() && object <= *cursor_) || ahead_.contains(object);
  }
  // It has been sent.
  void Sent(ObjectId object) {
    to_do_.erase(object);
    if (!IsEqual(object)) ahead_.insert(object);
  }
  [[nodiscard]] std::optional<ObjectId> Next() const {
    return to_do_.empty() ? std::nullopt : std::optional(*to_do_.begin());
  }
  // The next range is wanted; it begins behind the cursor.
  [[nodiscard]] bool WantsListing() const { return !compared_ && to_do_.empty(); }
  [[nodiscard]] const std::optional<ObjectId>& cursor() const { return cursor_; }
  [[nodiscard]] bool done() const { return compared_ && to_do_.empty(); }

  // What the successor has behind the cursor, beside what is here. A listing that was not wanted,
  // a late copy, changes nothing.
  void Compare(const replication::Listing& listing, const SlotState& here);

 private:
  bool compared_ = false;
  std::optional<ObjectId> cursor_;
  std::set<ObjectId> to_do_;
  std::set<ObjectId> ahead_;
};

}  // namespace weir::osd
