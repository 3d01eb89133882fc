// Rules: who is charged to which class where no tag says so.
#include <algorithm>
#include <utility>

#include "mds/cluster/cluster_keeper.h"

namespace weir::mds {
namespace {

constexpr size_t kRulesMax = 1000;
constexpr size_t kWordMax = 4096;  // of a path

Status NoRule(uint32_t number) {
  return {ErrorCode::kNotFound,
          "there is no rule " + std::to_string(number) + " (osdctl rule ls shows what there is)"};
}

Status CheckRule(const wire::RuleInfo& rule, const ClusterMap& map) {
  if (!rule.has_uid() && !rule.has_gid() && rule.exe().empty() && rule.client().empty() &&
      rule.cgroup().empty()) {
    return {ErrorCode::kInvalid, "a rule names a uid, a gid, an executable, a cgroup or a client"};
  }
  if (!rule.cgroup().empty()) WEIR_RETURN_IF_ERROR(CheckCgroupPath(rule.cgroup()));
  if (rule.exe().size() > kWordMax || rule.client().size() > kWordMax) {
    return {ErrorCode::kInvalid, "the name of an executable or client has at most 4096 bytes"};
  }
  const ClassEntry* entry = map.FindClass(rule.class_name());
  if (entry == nullptr) {
    return {ErrorCode::kNotFound, "there is no class '" + rule.class_name() +
                                      "' (osdctl class create " + rule.class_name() + ")"};
  }
  const ClassId id = entry->spec.id;
  if (id != kBestEffort && id < kFirstUserClass) {
    return {ErrorCode::kInvalid, "'" + rule.class_name() + "' is WeirFS's own class"};
  }
  return Status::Ok();
}

auto Find(std::vector<ClassRule>& rules, uint32_t number) {
  return std::find_if(rules.begin(), rules.end(),
                      [number](const ClassRule& rule) { return rule.number == number; });
}

}  // namespace

Result<wire::RuleInfo> ClusterKeeper::AddRule(const wire::RuleAddRequest& request,
                                              const Asked& asked) {
  const std::lock_guard changing(changing_);
  ClusterMap next = *map();
  WEIR_RETURN_IF_ERROR(CheckRule(request.rule(), next));
  if (next.rules.size() >= kRulesMax) {
    return Status(ErrorCode::kNoSpace, "there are 1000 rules already, as many as may be");
  }
  auto place = next.rules.end();
  if (request.has_before()) {
    place = Find(next.rules, request.before());
    if (place == next.rules.end()) return NoRule(request.before());
  }
  Ids ids = ids_;
  wire::RuleInfo info = request.rule();
  info.set_number(ids.rule++);
  WEIR_ASSIGN_OR_RETURN(ClassRule rule, FromWire(info));
  next.rules.insert(place, std::move(rule));
  WEIR_RETURN_IF_ERROR(Commit(std::move(next), std::move(ids), {asked, info.SerializeAsString()}));
  return info;
}

Status ClusterKeeper::RemoveRule(uint32_t number, const Asked& asked) {
  const std::lock_guard changing(changing_);
  ClusterMap next = *map();
  const auto place = Find(next.rules, number);
  if (place == next.rules.end()) return NoRule(number);
  next.rules.erase(place);
  return CommitSame(std::move(next), {asked, {}});
}

}  // namespace weir::mds
