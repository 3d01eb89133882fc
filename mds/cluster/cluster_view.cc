// What the namespace asks of the map.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "common/placement/striper.h"
#include "mds/cluster/admission.h"
#include "mds/cluster/cluster_keeper.h"
#include "mds/format/ns_values.pb.h"

namespace weir::mds {

std::optional<uint32_t> ClusterKeeper::ClassIdOf(std::string_view name) const {
  const auto map = this->map();
  const ClassEntry* entry = map->FindClass(name);
  if (entry == nullptr) return std::nullopt;
  return entry->spec.id.value;
}

Status ClusterKeeper::MayTag(std::string_view class_name, const Credentials& who) const {
  const auto map = this->map();
  const ClassEntry* entry = map->FindClass(class_name);
  if (entry == nullptr) {
    return {ErrorCode::kInvalid, "there is no class '" + std::string(class_name) +
                                     "' (osdctl class create " + std::string(class_name) + ")"};
  }
  if (IsSystemClass(entry->spec)) {
    return {ErrorCode::kPermission, "'" + entry->spec.name + "' is WeirFS's own class"};
  }
  if (who.IsRoot() || (entry->users.empty() && entry->groups.empty())) return Status::Ok();
  const auto& users = entry->users;
  if (std::find(users.begin(), users.end(), who.uid) != users.end()) return Status::Ok();
  for (const uint32_t group : entry->groups) {
    if (who.InGroup(group)) return Status::Ok();
  }
  return {ErrorCode::kPermission,
          "uid " + std::to_string(who.uid) + " may not use class '" + entry->spec.name + "'"};
}

uint32_t ClusterKeeper::UntaggedClass(const RuleSubject& who, std::string* reason) const {
  return weir::UntaggedClass(*map(), who, reason).value;
}

std::optional<uint32_t> ClusterKeeper::PoolIdOf(std::string_view name) const {
  const auto map = this->map();
  const Pool* pool = map->FindPool(name);
  if (pool == nullptr) return std::nullopt;
  return pool->id.value;
}

std::string ClusterKeeper::PoolNameOf(uint32_t pool) const {
  const auto map = this->map();
  const auto found = map->pools.find(PoolId(pool));
  return found == map->pools.end() ? "pool " + std::to_string(pool) : found->second.name;
}

Status ClusterKeeper::CheckTier(uint32_t pool, std::string_view tier) const {
  WEIR_ASSIGN_OR_RETURN(const TierName wanted, TierName::Parse(tier));
  const auto map = this->map();
  const auto found = map->pools.find(PoolId(pool));
  std::set<std::string> known;
  for (const OsdId id : found == map->pools.end() ? std::vector<OsdId>() : found->second.osds) {
    for (const TierEntry& entry : map->osds.at(id).tiers) {
      if (entry.name == wanted) return Status::Ok();
      known.insert(entry.name.ToString());
    }
  }
  std::string text;
  for (const std::string& name : known) text += (text.empty() ? "; there is " : ", ") + name;
  if (known.empty()) text = ": its OSDs have one disk each (--tier-disk gives one several)";
  return {ErrorCode::kInvalid, "no OSD of pool '" + PoolNameOf(pool) + "' has a tier '" +
                                   wanted.ToString() + "'" + text};
}

Status ClusterKeeper::UsePool(uint32_t pool) {
  const auto usable = [pool](const ClusterMap& map, bool* in_use) -> Status {
    const auto found = map.pools.find(PoolId(pool));
    if (found == map.pools.end()) {
      return {ErrorCode::kNoSpace,
              "pool " + std::to_string(pool) + " of the layout does not exist any more"};
    }
    if (found->second.chains.empty()) {
      return {ErrorCode::kNoSpace,
              "pool '" + found->second.name + "' has no OSD yet (start a weir-osd)"};
    }
    *in_use = found->second.in_use;
    return Status::Ok();
  };
  bool in_use = false;
  WEIR_RETURN_IF_ERROR(usable(*map(), &in_use));
  if (in_use) return Status::Ok();
  const std::lock_guard changing(changing_);
  ClusterMap next = *map();
  WEIR_RETURN_IF_ERROR(usable(next, &in_use));
  if (in_use) return Status::Ok();
  next.pools.at(PoolId(pool)).in_use = true;
  return CommitSame(std::move(next));
}

std::string ClusterKeeper::DescribeObjects(uint64_t inode, const LayoutRecord& layout,
                                           uint64_t size, size_t max) const {
  const auto map = this->map();
  FileLayout file;
  file.stripe_unit = layout.stripe_unit();
  file.stripe_count = layout.stripe_count();
  file.object_size = layout.object_size();
  file.pool = PoolId(layout.pool());
  const uint64_t first_gone = PlanTruncate(file, size).first_gone;
  std::string text;
  for (uint64_t index = 0; index < first_gone; ++index) {
    if (index == max) return text + " ...";
    const Chain* chain = map->ChainOf(file.pool, {InodeId(inode), index});
    if (index > 0) text += ' ';
    text += std::to_string(index) + ":";
    if (chain == nullptr) {
      text += "none";
      continue;
    }
    for (size_t i = 0; i < chain->members.size(); ++i) {
      text += (i == 0 ? "osd." : ",osd.") + std::to_string(chain->members[i].osd.value);
    }
  }
  return text;
}

std::string ClusterKeeper::WhySlow(uint32_t class_id) const {
  const Verdict verdict = Judge(times_.Of(ClassId(class_id), clock_.Now()), ClassId(class_id));
  const auto map = this->map();
  const auto neighbour = map->classes.find(verdict.neighbour);
  return fmt::format(
      "throttled {:.0f} ms of the last {:.0f} s; to blame: {}",
      1000 * verdict.limited_part * verdict.seconds, verdict.seconds,
      WhoIsToBlame(verdict, neighbour == map->classes.end() ? "" : neighbour->second.spec.name));
}

std::map<OsdId, uint64_t> ClusterKeeper::UsedBytes() const {
  const std::lock_guard lock(mutex_);
  std::map<OsdId, uint64_t> used;
  for (const auto& [id, osd] : map_->osds) {
    const auto heard = heard_.find(id);
    used[id] = heard == heard_.end() ? osd.used_bytes : heard->second.used_bytes;
  }
  return used;
}

SpaceInfo ClusterKeeper::Space() const {
  const auto map = this->map();
  SpaceInfo space;
  for (const auto& [id, used] : UsedBytes()) {
    const auto osd = map->osds.find(id);
    if (osd == map->osds.end()) continue;  // joined in between
    space.capacity_bytes += osd->second.capacity_bytes;
    space.free_bytes += osd->second.capacity_bytes - std::min(osd->second.capacity_bytes, used);
  }
  const uint64_t being_freed = being_freed_ ? being_freed_() : 0;
  space.free_bytes += std::min(space.capacity_bytes - space.free_bytes, being_freed);
  return space;
}

std::optional<ClassCapacity> ClusterKeeper::CapacityOf(uint32_t class_id) const {
  const auto map = this->map();
  const auto found = map->classes.find(ClassId(class_id));
  if (found == map->classes.end() || found->second.capacity_bytes == 0) return std::nullopt;
  return ClassCapacity{found->second.spec.name, found->second.capacity_bytes};
}

}  // namespace weir::mds
