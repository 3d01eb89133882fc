// Lock methods: decode, ask the LockService, answer.
#include <utility>

#include "mds/locks/lock_service.h"
#include "mds/service/mds_core.h"

namespace weir::mds {
namespace {

LockService::Respond AnswerTo(const MdsCore::Call& call) {
  return [call](const Status& status, const wire::LockReply& reply) {
    call->Respond(status, status.ok() ? reply.SerializeAsString() : std::string(), {});
  };
}

template <typename Request>
bool DecodeLock(const MdsCore::Call& call, Request* request) {
  if (request->ParseFromString(call->body())) return true;
  call->Respond(Status(ErrorCode::kBadMessage, request->GetTypeName() + " does not parse"));
  return false;
}

}  // namespace

bool MdsCore::HandleLocks(const Call& call) {
  const uint32_t method = call->method();
  if (method < wire::MDS_LOCK || method > wire::MDS_LOCKS_SETTLED) return false;
  OriginOf(call);  // a sign of life
  const uint64_t session = call->session();
  wire::LockRequest request;
  wire::LockTicket ticket;
  wire::LocksSettledRequest settled;
  switch (method) {
    case wire::MDS_LOCK:
      if (DecodeLock(call, &request)) locks_->Lock(session, request, AnswerTo(call));
      return true;
    case wire::MDS_LOCK_TEST:
      if (DecodeLock(call, &request)) locks_->Test(session, request, AnswerTo(call));
      return true;
    case wire::MDS_LOCK_WAIT:
      if (DecodeLock(call, &ticket)) locks_->Wait(session, ticket.ticket(), AnswerTo(call));
      return true;
    case wire::MDS_LOCKS_SETTLED:
      if (!DecodeLock(call, &settled)) return true;
      locks_->Settled(session, settled.seq());
      call->Respond(Status::Ok());
      return true;
    default:
      if (!DecodeLock(call, &ticket)) return true;
      locks_->Cancel(session, ticket.ticket());
      call->Respond(Status::Ok());
      return true;
  }
}

}  // namespace weir::mds
