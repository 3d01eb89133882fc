// Changes of the cluster map by operators: durable, and obeyed by the OSDs, before they are
// confirmed.
#include <optional>
#include <utility>

#include "common/base/log.h"
#include "mds/service/mds_core.h"

namespace weir::mds {
namespace {

std::string Serialised(const google::protobuf::Message& message) {
  return message.SerializeAsString();
}

template <typename Reply>
Result<std::string> ToBody(const Result<Reply>& reply) {
  if (!reply.ok()) return reply.status();
  return Serialised(*reply);
}

Result<std::string> ToBody(const Status& status) {
  if (!status.ok()) return status;
  return std::string();
}

}  // namespace

bool MdsCore::HandleAdmin(const Call& call) {
  switch (call->method()) {
#define WEIR_CHANGE(number, Request, Method, ...)                                                \
  case wire::number: {                                                                           \
    auto request = std::make_shared<wire::Request>();                                            \
    if (!request->ParseFromString(call->body())) {                                               \
      call->Respond(Status(ErrorCode::kBadMessage, request->GetTypeName() + " does not parse")); \
      return true;                                                                               \
    }                                                                                            \
    ChangeMap(call, [this, request](const Asked& asked) {                                        \
      return ToBody(keeper_->Method(__VA_ARGS__, asked));                                        \
    });                                                                                          \
    return true;                                                                                 \
  }
    WEIR_CHANGE(MDS_SET_OSD, SetOsdRequest, SetOsd, *request)
    WEIR_CHANGE(MDS_CLASS_CREATE, SetClassRequest, CreateClass, *request)
    WEIR_CHANGE(MDS_CLASS_SET, SetClassRequest, SetClass, *request)
    WEIR_CHANGE(MDS_CLASS_REMOVE, ClassNameRequest, RemoveClass, request->name())
    WEIR_CHANGE(MDS_RESERVE, ReserveRequest, Reserve, *request)
    WEIR_CHANGE(MDS_RELEASE_RESERVATION, ClassNameRequest, ReleaseReservation, request->name(),
                request->has_user() ? std::optional(request->user()) : std::nullopt)
    WEIR_CHANGE(MDS_RULE_ADD, RuleAddRequest, AddRule, *request)
    WEIR_CHANGE(MDS_RULE_REMOVE, RuleNumberRequest, RemoveRule, request->number())
    WEIR_CHANGE(MDS_POOL_CREATE, PoolCreateRequest, CreatePool, *request)
    WEIR_CHANGE(MDS_POOL_REMOVE, PoolNameRequest, RemovePool, request->name())
#undef WEIR_CHANGE
    default:
      return false;
  }
}

void MdsCore::ChangeMap(const Call& call, Change change) {
  Post([this, call, change = std::move(change)] {
    const Asked asked{call->sub_session(), call->request_id()};
    const std::optional<std::string> before = keeper_->AnswerTo(asked);
    const Result<std::string> body =
        before.has_value() ? Result<std::string>(*before) : change(asked);
    if (!body.ok()) {
      call->Respond(body.status());
      return;
    }
    // A name that begins or ceases to be a class changes what tags mean.
    const uint32_t method = call->method();
    if (method == wire::MDS_CLASS_CREATE || method == wire::MDS_CLASS_REMOVE) {
      names_->BumpTagEpoch();
    }
    watchers_->WhenObeyed(keeper_->map()->epoch, options_.obey_patience,
                          [call, answer = *body] { call->Respond(answer); });
  });
}

}  // namespace weir::mds
