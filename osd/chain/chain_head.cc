// What clients ask: the head orders changes, every serving member answers reads.
#include "osd/chain/chain_member.h"

namespace weir::osd {

using namespace replication;  // NOLINT: this file speaks the protocol's words

namespace {

// Whether what a read sees may differ before and after the operation.
bool Touches(const Operation& operation, const NewestState& before, const Request& read) {
  if (operation.kind == OpKind::kRefusal) return false;
  if (operation.kind == OpKind::kDelete || !before.exists) return true;
  const uint64_t end = operation.offset + operation.bytes.size();
  if (end > before.size) return true;
  return operation.offset < read.offset + read.length && read.offset < end;
}

bool TouchedByPending(const ObjectRecord& record, const Request& read) {
  ObjectRecord so_far;
  so_far.readable = record.readable;
  for (const Operation& operation : record.pending) {
    if (Touches(operation, Newest(&so_far), read)) return true;
    so_far.pending.push_back(operation);
  }
  return false;
}

}  // namespace

void ChainMember::HandleRequest(ClientId client, const Request& request, TimePoint now) {
  if (failed_ || !chain_.has_value()) return;
  if (request.chain > chain_->version) return;  // the news come
  const bool read = request.kind == RequestKind::kRead;
  if (request.chain < chain_->version || !(read ? Serving() : IsHead())) {
    AnswerStale(client, request.id);
    return;
  }
  read ? HandleRead(client, request, now) : HandleChange(client, request, now);
}

void ChainMember::HandleChange(ClientId client, const Request& request, TimePoint now) {
  const SlotState& slot = store_.state();
  if (request.id.number < slot.FloorOf(request.id.session)) return;
  if (AnswerKnown(client, request)) return;
  if (chain_->serving() < chain_->min_replicas ||
      !credits_.TryTake(options_.osd, 0, request.bytes.size())) {
    AnswerWith(client, request.id, ErrorCode::kBusy);
    return;
  }
  waiters_[request.id] = {request, {client}};
  Order(request, now);
}

// Ids below the object's floor count as known: nobody waits for the answer.
bool ChainMember::AnswerKnown(ClientId client, const Request& request) {
  const ObjectRecord* record = Find(request.object);
  if (record == nullptr) return false;
  const auto session = record->readable.ids.find(request.id.session);
  if (session != record->readable.ids.end()) {
    if (request.id.number < session->second.floor) return true;
    if (session->second.done.contains(request.id.number)) {
      waiters_[request.id].clients.insert(client);
      AnswerWaiter(request.id, request.object);
      return true;
    }
  }
  for (const Operation& operation : record->pending) {
    if (operation.id != request.id) continue;
    Waiter& waiter = waiters_[request.id];
    waiter.request = request;
    waiter.clients.insert(client);
    return true;
  }
  return false;
}

// Requires: a credit of position 0 is taken for it.
void ChainMember::Order(const Request& request, TimePoint now) {
  const NewestState newest = Newest(Find(request.object));
  Operation operation;
  operation.object = request.object;
  operation.previous = newest.Previous();
  operation.id = request.id;
  operation.floors = request.floors;
  operation.kind = request.kind == RequestKind::kDelete ? OpKind::kDelete : OpKind::kWrite;
  operation.offset = request.kind == RequestKind::kAppend ? newest.size : request.offset;
  if (operation.kind == OpKind::kWrite) operation.bytes = request.bytes;
  if (request.expected.has_value() && *request.expected != newest.data_version) {
    operation.status = ErrorCode::kStale;
  } else if (operation.kind == OpKind::kWrite && !store_.HasRoom(operation)) {
    operation.status = ErrorCode::kNoSpace;
  }
  if (operation.status != ErrorCode::kOk) {
    OrderRefusal(operation, operation.status, now);
  } else {
    Stage(std::move(operation), now);
  }
}

void ChainMember::OrderRefusal(const Operation& refused, ErrorCode status, TimePoint now) {
  Operation refusal = refused;
  refusal.kind = OpKind::kRefusal;
  refusal.status = status;
  refusal.bytes.clear();
  credits_.Give(options_.osd, 0, refused.bytes.size());
  credits_.Take(options_.osd, 0, 0);
  refusal.previous = Newest(Find(refused.object)).Previous();
  Stage(std::move(refusal), now);
}

void ChainMember::Stage(Operation operation, TimePoint now) {
  operation.version = {chain_->version, next_sequence_++};
  const Version version = operation.version;
  Take(operation);
  pending_[version].above = true;
  ForwardUnsent(now);
}

// A member has no room for it: nobody keeps it, nor what was built on it. The client hears of it
// when the refusal, which follows on the same links, is committed.
void ChainMember::Abort(const Refused& refused, TimePoint now) {
  const ObjectRecord* record = Find(refused.object);
  if (record == nullptr || !pending_.contains(refused.version)) return;
  std::vector<Operation> dropped;
  for (const Operation& operation : record->pending) {
    if (operation.version >= refused.version) dropped.push_back(operation);
  }
  DropFrom(refused.object, refused.version, now);
  for (const Operation& operation : dropped) {
    const auto waiter = waiters_.find(operation.id);
    const bool first = operation.version == refused.version;
    if (!first && waiter == waiters_.end()) continue;  // its client will ask again
    if (first) {
      credits_.Take(options_.osd, 0, operation.bytes.size());
      OrderRefusal(operation, refused.status, now);
    } else {  // it may have been a refusal itself, and be none now
      credits_.Take(options_.osd, 0, waiter->second.request.bytes.size());
      Order(waiter->second.request, now);
    }
  }
}

void ChainMember::AnswerWaiter(const OpId& id, ObjectId object) {
  const auto waiter = waiters_.find(id);
  const ObjectRecord* record = Find(object);
  if (waiter == waiters_.end() || record == nullptr) return;
  const auto session = record->readable.ids.find(id.session);
  if (session != record->readable.ids.end() && session->second.done.contains(id.number)) {
    const Outcome& outcome = session->second.done.at(id.number);
    for (const ClientId client : waiter->second.clients) {
      Reply reply;
      reply.id = id;
      reply.status = outcome.status;
      reply.version = outcome.version;
      reply.offset = outcome.offset;
      host_.Answer(client, std::move(reply));
    }
  }
  waiters_.erase(waiter);
}

// They ask again, whoever it may be now.
void ChainMember::SendAwayClients() {
  for (const auto& [id, waiter] : waiters_) {
    for (const ClientId client : waiter.clients) AnswerStale(client, id);
  }
  for (const WaitingRead& read : reads_) AnswerStale(read.client, read.request.id);
  waiters_.clear();
  reads_.clear();
}

void ChainMember::HandleRead(ClientId client, const Request& request, TimePoint now) {
  if (TryRead(client, request, now)) return;
  const bool waits = std::any_of(reads_.begin(), reads_.end(), [&](const WaitingRead& read) {
    return read.client == client && read.request.id == request.id;
  });
  if (!waits) reads_.push_back({client, request});
}

// The lease is looked at after the data, so it was held when the data was true.
bool ChainMember::TryRead(ClientId client, const Request& request, TimePoint now) {
  const ObjectRecord* record = Find(request.object);
  if (record != nullptr && TouchedByPending(*record, request)) return false;
  Reply reply;
  reply.id = request.id;
  reply.status = ErrorCode::kNotFound;
  if (record != nullptr && record->readable.exists) {
    reply.status = ErrorCode::kOk;
    reply.size = record->readable.bytes.size();
    if (record->pending.empty()) reply.version = record->readable.data_version;
    if (request.offset < reply.size) {
      reply.bytes = record->readable.bytes.substr(request.offset, request.length);
    }
  }
  if (!lease_.Holds(*chain_, options_.osd, now)) return false;
  host_.Answer(client, std::move(reply));
  return true;
}

void ChainMember::RetryReads(TimePoint now) {
  if (!Serving()) return;
  std::erase_if(reads_,
                [&](const WaitingRead& read) { return TryRead(read.client, read.request, now); });
}

void ChainMember::AnswerStale(ClientId client, const OpId& id) {
  Reply reply;
  reply.id = id;
  reply.status = ErrorCode::kStaleEpoch;
  reply.chain = chain_;
  host_.Answer(client, std::move(reply));
}

void ChainMember::AnswerWith(ClientId client, const OpId& id, ErrorCode status) {
  Reply reply;
  reply.id = id;
  reply.status = status;
  host_.Answer(client, std::move(reply));
}

}  // namespace weir::osd
