// OpIds: the numbers under which one session changes objects. An operation keeps its number in
// every retry, over connections and restarts of OSDs, so that it is done once; the floors say which
// numbers nobody asks for again (common/wire/REPLICATION.md, "Op ids and floors").
//
// Memory: of what is open alone. Pure. Threads: not safe; under the lock of its owner.
#pragma once

#include <cstdint>
#include <set>
#include <utility>

#include "common/base/ids.h"
#include "common/replication/messages.h"

namespace weir::replication {

class OpIds {
 public:
  // `above`: of a process that goes on with the session of a dead one: above all numbers that were
  // used. What those asked for is given up.
  explicit OpIds(uint64_t session, uint64_t above = 0) : session_(session), last_(above) {}

  [[nodiscard]] uint64_t session() const { return session_; }
  // The next number, for a change of `object`.
  uint64_t Begin(const ObjectId& object);
  // It was answered, or nobody will ask for it again. Requires: of Begin, once.
  void End(const ObjectId& object, uint64_t number);
  // As of now: the lowest open number of the session, and of those that name the object; where none
  // is open, the next one. Each only grows.
  [[nodiscard]] IdFloors FloorsOf(const ObjectId& object) const;
  [[nodiscard]] size_t open() const { return open_.size(); }

 private:
  const uint64_t session_;
  uint64_t last_;
  std::set<uint64_t> open_;
  std::set<std::pair<ObjectId, uint64_t>> of_objects_;
};

}  // namespace weir::replication
