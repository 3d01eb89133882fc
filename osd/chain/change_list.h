// ChangeList: the objects of a slot that were changed lately, so that a member that comes back need
// not be compared as a whole. Bounded; what is forgotten moves `complete_since`. Pure. Threads:
// one.
#pragma once

#include <deque>
#include <optional>
#include <set>

#include "common/replication/messages.h"

namespace weir::osd {

class ChangeList {
 public:
  explicit ChangeList(size_t entries_max) : entries_max_(entries_max) {}

  // From here on it sees every change above `highest`.
  void Restart(replication::Version highest) {
    entries_.clear();
    complete_since_ = highest;
  }
  void Add(ObjectId object, replication::Version version) {
    entries_.emplace_back(object, version);
    while (entries_.size() > entries_max_) {
      complete_since_ = std::max(complete_since_, entries_.front().second);
      entries_.pop_front();
    }
  }
  // The objects changed above `base`; none: it does not reach back so far.
  [[nodiscard]] std::optional<std::set<ObjectId>> Since(replication::Version base) const {
    if (complete_since_ > base) return std::nullopt;
    std::set<ObjectId> changed;
    for (const auto& [object, version] : entries_) {
      if (version > base) changed.insert(object);
    }
    return changed;
  }

 private:
  const size_t entries_max_;
  std::deque<replication::ObjectVersion> entries_;
  replication::Version complete_since_;
};

}  // namespace weir::osd
