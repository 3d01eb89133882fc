// What clients, members of a chain and leaders say to each other about one slot, as values: the
// messages of common/wire/REPLICATION.md before they have bytes.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/result.h"
#include "common/replication/chain.h"

namespace weir::replication {

// The same in every retry of a request.
struct OpId {
  uint64_t session = 0;
  uint64_t number = 0;
  friend constexpr auto operator<=>(const OpId&, const OpId&) = default;
};

// Below these numbers the session has got an answer, or given up, and asks no more.
struct IdFloors {
  uint64_t session = 0;  // of all its requests
  uint64_t object = 0;   // of those that name this object
};

enum class RequestKind : uint8_t { kRead, kWrite, kAppend, kDelete };

struct Request {
  OpId id;
  IdFloors floors;
  uint64_t chain = 0;  // version that the client knows
  uint32_t slot = 0;
  ObjectId object;
  RequestKind kind = RequestKind::kRead;
  uint64_t offset = 0;
  uint64_t length = 0;  // of a read
  std::string bytes;
  std::optional<Version> expected;  // none(): there must be no such object
};

// kStaleEpoch: another chain is in force (`chain`), or this is the wrong member. kBusy: not now.
struct Reply {
  OpId id;
  ErrorCode status = ErrorCode::kOk;
  Version version;  // none() when something that the read does not touch was pending
  uint64_t size = 0;
  uint64_t offset = 0;  // where an append went
  std::string bytes;
  std::optional<Chain> chain;
};

enum class OpKind : uint8_t { kWrite, kDelete, kRefusal };

// What the head has ordered: the same bytes at the same place on every member.
struct Operation {
  ObjectId object;
  Version version;
  Version previous;  // of the object on which it builds; none(): there is no such object
  OpId id;
  IdFloors floors;
  OpKind kind = OpKind::kWrite;
  uint64_t offset = 0;
  std::string bytes;
  ErrorCode status = ErrorCode::kOk;  // what a refusal answers
};

// What became of an operation, for whoever asks again.
struct Outcome {
  Version version;
  ErrorCode status = ErrorCode::kOk;
  uint64_t offset = 0;
};
struct SessionIds {
  uint64_t floor = 0;
  std::map<uint64_t, Outcome> done;
};

// A readable state: an object, or what is left of one (op ids).
struct ObjectState {
  bool exists = false;
  Version version;       // of the last operation
  Version data_version;  // of the last one that was not refused; none(): there is no object
  std::string bytes;
  std::map<uint64_t, SessionIds> ids;  // by session
};

using ObjectVersion = std::pair<ObjectId, Version>;

// Items of a link, from predecessor to successor, in order.
enum class Verdict : uint8_t { kKeep, kReadable, kDrop };
struct Verdicts {
  std::vector<std::pair<ObjectVersion, Verdict>> of;
};
struct Floors {
  std::map<uint64_t, uint64_t> of;  // session floor of each session
};
struct Forward {
  Operation operation;
};
struct Install {
  ObjectId object;
  std::optional<ObjectState> state;  // none: it has nothing of it
};
struct Drop {
  ObjectId object;
  Version from;
};
// The predecessor has refused it, so it does not come, although later ones may.
struct Skipped {
  ObjectId object;
  Version version;
};
struct ListNext {
  std::optional<ObjectId> after;
};
struct SyncEnd {
  Version highest;  // that the predecessor has had in the slot's order
};
using ItemBody = std::variant<Verdicts, Floors, Forward, Install, Drop, Skipped, ListNext, SyncEnd>;

struct Item {
  uint64_t number = 0;  // from 1 on each link
  ItemBody body;
};
struct ItemAck {
  uint64_t number = 0;  // all up to this one
  Version resolved;     // nothing up to here is open from this member down
};
struct Join {
  std::vector<ObjectVersion> pending;
  // Of a syncing member.
  Version base;
  std::vector<ObjectId> newer;
};
struct Durable {
  ObjectId object;
  Version version;
};
struct Ack {
  ObjectId object;
  Version version;
};
struct Refused {
  ObjectId object;
  Version version;
  ErrorCode status = ErrorCode::kNoSpace;
};
struct Listing {
  std::optional<ObjectId> after;
  std::vector<ObjectVersion> objects;
  bool last = false;  // there is nothing behind them
};
struct RenewAsk {
  TimePoint asked_at;
};
struct RenewGrant {
  TimePoint asked_at;
};
struct Stale {
  Chain chain;
};

struct PeerMessage {
  OsdId from;
  Life life = 0;
  uint32_t slot = 0;
  uint64_t chain = 0;
  std::variant<Join, Item, ItemAck, Durable, Ack, Refused, Listing, RenewAsk, RenewGrant, Stale>
      body;
};

// Grows with each word of a leader on who is sealed out.
struct SealId {
  uint64_t term = 0;
  uint64_t number = 0;
  friend constexpr auto operator<=>(const SealId&, const SealId&) = default;
};

// From a leader to a member.
struct News {
  Chain chain;
};
struct Seal {
  Chain chain;  // in force
  SealId id;
  std::set<OsdId> removed;  // whom to grant nothing any more; empty: the seal is off
};
struct LeaderGrant {
  uint64_t chain = 0;
  Life life = 0;
  TimePoint asked_at;
};
struct LeaderMessage {
  uint64_t term = 0;
  uint32_t slot = 0;
  std::variant<News, Seal, LeaderGrant> body;
};

// From a member's OSD to the MDSes.
struct SlotReport {
  uint64_t chain = 0;
  bool synced = false;  // under that chain
};
struct Alive {
  bool failed = false;
  std::map<uint32_t, SlotReport> slots;
};
struct Sealed {
  uint32_t slot = 0;
  SealId id;
};
struct LeaderAsk {
  uint32_t slot = 0;
  uint64_t chain = 0;
  TimePoint asked_at;
};
struct MemberMessage {
  OsdId from;
  Life life = 0;
  std::variant<Alive, Sealed, LeaderAsk> body;
};

}  // namespace weir::replication
