// Bugs on purpose, each of which must be noticed: a member, a leader, a store or a network that
// does one thing otherwise than the page says. They are planted from outside; the protocol's
// objects know nothing of them.
#pragma once

#include "tests/crash/replication/world.h"

namespace weir::crash::replication {

enum class Bug {
  kNone,
  kAckAtHead,            // the head answers when it has it alone
  kReadsPending,         // a read does not wait for what is pending
  kNoWaitForLease,       // the leader changes a chain as soon as the others have sealed
  kNewerWins,            // who comes back keeps what has a higher version
  kTombstonesDropped,    // a delete leaves nothing at once
  kOpIdsNotCopied,       // coming back brings data without op ids
  kOldChainAccepted,     // messages of an older chain are taken for the present one
  kLeaseStopsInSuspend,  // a lease is counted by a clock that stops in suspend
  kReadableTooEarly,     // an acknowledgement makes readable what those above may not have yet
  kOneCredit,            // credits do not tell positions apart
  kDurableTooEarly,      // a store says durable before it is
  kBaseTooHigh,          // who comes back claims to have all up to its newest version
  kRefusalNotOrdered,    // no room is only answered, and may come true later
};

// What the bug does to a message on its way.
bool Spoil(Bug bug, World& world, Node from, Node to, Packet* packet);
// And to one that arrives at a member whose chain is `chain`.
void SpoilArrival(Bug bug, const std::optional<Chain>& chain, PeerMessage* message);

}  // namespace weir::crash::replication
