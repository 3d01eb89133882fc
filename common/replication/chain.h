// Chain: who holds a slot's objects, in which order; and the versions that its head gives.
// The protocol is common/wire/REPLICATION.md. Values; threads: any.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/ids.h"
#include "common/base/time.h"

namespace weir::replication {

// How long one grant lets a member answer reads, counted by it from when it asked.
inline constexpr Duration kLease = std::chrono::seconds(3);
// How long a leader waits, by its own clock, until a lease is over by any clock: the rates of two
// clocks differ from true time by at most 1 % each.
inline constexpr Duration kLeaseWait = kLease + kLease * 3 / 100;

// Of an object and of an operation; {0, 0}: there is none.
struct Version {
  uint64_t chain = 0;     // version of the chain under which it was ordered
  uint64_t sequence = 0;  // in the slot; from 1 under each chain version

  [[nodiscard]] bool none() const { return chain == 0 && sequence == 0; }
  // The largest that is smaller than all operations from this one on. Requires: !none().
  [[nodiscard]] Version Before() const { return {chain, sequence - 1}; }
  friend constexpr auto operator<=>(const Version&, const Version&) = default;
};

// Numbers the processes that ever served a disk; grows with each start.
using Life = uint64_t;

enum class MemberState : uint8_t { kServing, kSyncing, kOffline };

struct Member {
  OsdId osd;
  Life life = 0;
  MemberState state = MemberState::kOffline;
  friend bool operator==(const Member&, const Member&) = default;
};

struct Chain {
  uint32_t slot = 0;
  uint64_t version = 0;
  uint32_t min_replicas = 1;  // below so many serving members nothing is ordered
  // Serving ones first, then at most one that is syncing, then those that are offline. The first
  // two kinds are the path of every operation.
  std::vector<Member> members;

  friend bool operator==(const Chain&, const Chain&) = default;

  [[nodiscard]] size_t CountOf(MemberState state) const {
    return static_cast<size_t>(std::count_if(members.begin(), members.end(),
                                             [&](const Member& m) { return m.state == state; }));
  }
  [[nodiscard]] size_t serving() const { return CountOf(MemberState::kServing); }
  [[nodiscard]] size_t path_length() const { return serving() + CountOf(MemberState::kSyncing); }
  // In the path, from 0, the head; none: a process that has no part in it.
  [[nodiscard]] std::optional<size_t> PositionOf(OsdId osd, Life life) const {
    for (size_t i = 0; i < path_length(); ++i) {
      if (members[i].osd == osd && members[i].life == life) return i;
    }
    return std::nullopt;
  }
  [[nodiscard]] bool Serves(OsdId osd, Life life) const {
    const auto position = PositionOf(osd, life);
    return position.has_value() && *position < serving();
  }
};

}  // namespace weir::replication
