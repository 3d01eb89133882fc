// SessionFences: which sessions may change nothing here any more unless they know a newer map, and
// what they still have under way.
//
// A session that cannot be heard is evicted and its leases go to others. The map says from which
// epoch on it may write again: whoever knows that epoch also knows what he has lost. The MDS gives
// the leases away when nothing older is left at any OSD (Drained).
//
// An OSD that begins anew may have missed fences: until it has heard of them nobody changes
// anything, for what was fenced meanwhile may come first.
//
// Threads: one at a time. Errors: kStale for what is fenced; kBusy, try again, before Apply.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>

#include "common/base/ids.h"
#include "common/base/result.h"

namespace weir::osd {

class SessionFences {
 public:
  // `await_map`: the first Apply tells who is fenced. Else nobody is before it.
  explicit SessionFences(bool await_map = false) : awaits_map_(await_map) {}

  // A request that changes something, by the map of `epoch`. End follows if it is ok.
  Status Begin(uint64_t session, uint64_t epoch);
  void End(uint64_t session, uint64_t epoch);

  void Apply(const std::map<uint64_t, Epoch>& fences, Epoch map_epoch);
  // Nothing is under way of what was fenced up to this epoch.
  [[nodiscard]] Epoch Drained() const;

 private:
  bool awaits_map_;
  std::map<uint64_t, Epoch> fences_;
  Epoch map_epoch_{0};
  // By session: how many of each epoch.
  std::unordered_map<uint64_t, std::map<uint64_t, uint32_t>> under_way_;
};

}  // namespace weir::osd
