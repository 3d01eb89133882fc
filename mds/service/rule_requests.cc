// Questions about classes: whose class somebody would get, what each class asks of the MDS, and
// where its time goes.
#include <map>
#include <utility>
#include <vector>

#include "common/placement/flow_totals.h"
#include "common/placement/times_wire.h"
#include "mds/ns/class_space.h"
#include "mds/ns/find_path.h"
#include "mds/service/mds_core.h"

namespace weir::mds {

bool MdsCore::HandleRules(const Call& call) {
  switch (call->method()) {
    case wire::MDS_RULE_TEST:
      TestRule(call);
      return true;
    case wire::MDS_CLASS_LOAD:
      GetClassLoad(call);
      return true;
    case wire::MDS_WHY:
      GetWhy(call);
      return true;
    default:
      return false;
  }
}

void MdsCore::TestRule(const Call& call) {
  wire::RuleTestRequest request;
  if (!request.ParseFromString(call->body())) {
    call->Respond(Status(ErrorCode::kBadMessage, "RuleTestRequest does not parse"));
    return;
  }
  names_->Execute(
      {},
      [request](Operation& op) -> Result<std::string> {
        op.context.client = request.client();
        op.context.mount_class = request.mount_class();
        Result<Inode> inode = FindPath(op, request.path());
        if (!inode.ok()) return inode.status().Annotate("'" + request.path() + "'");
        op.SetCaller(request.who());
        wire::EffectiveClass answer;
        WEIR_ASSIGN_OR_RETURN(ResolvedClass resolved, op.context.classes.Resolve(op, *inode, true));
        answer.set_class_id(resolved.id);
        answer.set_reason(std::move(resolved.reason));
        answer.set_tagged(resolved.tagged);
        return answer.SerializeAsString();
      },
      [call](Status status, std::string body) {
        call->Respond(std::move(status), std::move(body), {});
      });
}

void MdsCore::GetClassLoad(const Call& call) {
  wire::ClassLoadRequest request;
  if (!request.ParseFromString(call->body())) {
    call->Respond(Status(ErrorCode::kBadMessage, "ClassLoadRequest does not parse"));
    return;
  }
  std::map<uint32_t, wire::ClassLoad> rows;
  for (const ClassOrder::Load& load : operations_.Loads()) {
    wire::ClassLoad& out = rows[load.class_id.value];
    out.set_operations(load.operations);
    out.set_queued(load.queued);
    out.set_delayed(load.delayed);
    out.set_limited(load.limited);
  }
  if (request.flows()) {
    for (const FairQueue::FlowsOfClass& flows : operations_.Flows(kFlowsTold)) {
      weir::ToWire(flows.report, rows[flows.class_id.value].mutable_flows());
    }
  }
  names_->Execute(
      {},
      [rows = std::move(rows),
       flows = request.flows()](Operation& op) mutable -> Result<std::string> {
        const std::string all = MakeKey(Table::kHeld);
        std::vector<uint32_t> holders;
        WEIR_RETURN_IF_ERROR(op.txn.Scan(all, PrefixEnd(all), [&](std::string_view key, auto) {
          holders.push_back(static_cast<uint32_t>(ReadBigEndian(key, kFirstNumber)));
          return true;
        }));
        for (const uint32_t id : holders) {
          WEIR_ASSIGN_OR_RETURN(const uint64_t held, HeldBy(op, id));
          rows[id].set_held_bytes(held);
        }
        wire::ClassLoadReply reply;
        reply.set_flows(flows);
        for (auto& [id, row] : rows) {
          row.set_class_id(id);
          *reply.add_classes() = std::move(row);
        }
        return reply.SerializeAsString();
      },
      [call](Status status, std::string body) {
        call->Respond(std::move(status), std::move(body), {});
      });
}

void MdsCore::GetWhy(const Call& call) {
  wire::ClassNameRequest request;
  if (!request.ParseFromString(call->body())) {
    call->Respond(Status(ErrorCode::kBadMessage, "ClassNameRequest does not parse"));
    return;
  }
  const auto id = keeper_->ClassIdOf(request.name());
  if (!id.has_value()) {
    call->Respond(Status(ErrorCode::kNotFound, "there is no class '" + request.name() + "'"));
    return;
  }
  wire::WhyReply reply;
  weir::ToWire(ClassId(*id), keeper_->times().Of(ClassId(*id), clock_.Now()), &reply);
  call->Respond(reply.SerializeAsString());
}

}  // namespace weir::mds
