// SessionWindows: how much of one class each client may have under way at this OSD, so that
// overload shows as waiting in the client and never as memory growth here.
//
// A budget of bytes is split evenly among the (session, class) pairs that were active lately; every
// reply carries the grant of its pair, and a client keeps to it. One that does not, by more than a
// factor of two (grants shrink while requests are on their way), is refused. A pair may always have
// one request under way, however large.
//
// Units:   payload bytes, of writes and reads alike.
// Threads: one at a time.
// Errors:  kBusy, to be sent again when something was answered.
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>

#include "common/base/ids.h"
#include "common/base/result.h"
#include "common/base/time.h"

namespace weir::osd {

class SessionWindows {
 public:
  struct Options {
    uint64_t budget_bytes = 256 << 20;
    uint64_t grant_min = 1 << 20;
    uint64_t grant_max = 16 << 20;
    uint64_t grant_kept_short = 2 << 20;  // at most: a large request in service, one to follow it
    // What clients assume before the first reply; a newcomer is held to no less.
    uint64_t start_grant = 8 << 20;
    Duration active_for = std::chrono::seconds(2);  // since the last request or reply
  };
  explicit SessionWindows(const Options& options) : options_(options) {}

  // A request of `bytes` arrives. Not ok: it is not counted and must be refused.
  Status Admit(uint64_t session, ClassId class_id, uint64_t bytes, TimePoint now);
  // An admitted request is answered. Returns the grant to tell the client, smaller while the device
  // is `kept_short`: what is under way in vain takes processors and their caches from those who
  // wait for small requests.
  uint64_t Release(uint64_t session, ClassId class_id, uint64_t bytes, TimePoint now,
                   bool kept_short = false);

  [[nodiscard]] uint64_t in_flight_bytes() const;
  [[nodiscard]] size_t active() const;

 private:
  struct Key {
    uint64_t session;
    ClassId class_id;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const { return MixHash(key.session, key.class_id.value); }
  };
  struct Pair {
    uint64_t in_flight = 0;
    uint64_t granted = 0;  // last told
    TimePoint used;
    std::list<Key>::iterator place;  // in by_use_
  };
  Pair& Touch(const Key& key, TimePoint now);
  void ForgetIdle(TimePoint now);
  [[nodiscard]] uint64_t Grant() const;

  const Options options_;
  std::unordered_map<Key, Pair, KeyHash> pairs_;
  std::list<Key> by_use_;  // longest unused first
  uint64_t in_flight_ = 0;
};

}  // namespace weir::osd
