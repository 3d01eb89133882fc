// OSDs: joining and being configured.
#include <algorithm>
#include <utility>

#include "common/base/good_name.h"
#include "common/base/log.h"
#include "mds/cluster/admission.h"
#include "mds/cluster/cluster_keeper.h"

namespace weir::mds {
namespace {

constexpr double kBytesPerTib = 1099511627776.0;
constexpr uint32_t kDepthMax = 4096;
constexpr uint64_t kAllocationTimeMin = 1'000'000'000;
constexpr uint64_t kAllocationTimeMax = 3600 * kAllocationTimeMin;
constexpr uint64_t kServiceEstimateMin = 1'000;
constexpr uint64_t kServiceEstimateMax = 10'000'000'000;

OsdEntry* FindByUuid(ClusterMap* map, const std::string& uuid) {
  for (auto& [id, osd] : map->osds) {
    if (osd.uuid == uuid) return &osd;
  }
  return nullptr;
}

// The chains of a pool that may still change, over all its OSDs.
void Recompute(const ClusterMap& map, Pool* pool) {
  std::vector<PlacementCandidate> candidates;
  for (const OsdId id : pool->osds) candidates.push_back({id, map.osds.at(id).placement_weight});
  const uint32_t slots =
      pool->chains.empty() ? kDefaultSlots : static_cast<uint32_t>(pool->chains.size());
  if (candidates.size() < pool->replicas) return;
  ReplaceChains(&pool->chains, ComputeChains(pool->id, slots, pool->replicas, candidates));
}

void Join(ClusterMap* map, OsdId osd) {
  for (auto& [id, pool] : map->pools) {
    if (!pool.all_osds) continue;
    if (pool.in_use) {
      WEIR_LOG_WARN("osd.{} does not serve pool '{}': that is in use already", LogOsd(osd.value),
                    pool.name);
      continue;
    }
    pool.osds.push_back(osd);
    Recompute(*map, &pool);
  }
}

Status ApplyPieces(const wire::SetOsdRequest& request, SchedulerConfig* config) {
  if (request.has_profile()) {
    WEIR_ASSIGN_OR_RETURN(*config, ApplyProfile(request.profile(), *config));
  }
  if (request.has_surplus()) {
    WEIR_ASSIGN_OR_RETURN(config->surplus, ParseSurplus(request.surplus()));
  }
  if (request.has_sharing()) {
    WEIR_ASSIGN_OR_RETURN(config->sharing, ParseSharing(request.sharing()));
  }
  if (request.has_gate()) {
    WEIR_ASSIGN_OR_RETURN(config->gate, ParseGate(request.gate()));
  }
  if (request.has_dispatch()) {
    WEIR_ASSIGN_OR_RETURN(config->dispatch, ParseDispatch(request.dispatch()));
  }
  if (request.has_cost()) {
    WEIR_ASSIGN_OR_RETURN(config->cost, ParseCost(request.cost()));
  }
  if (request.has_maximizer()) config->maximizer = request.maximizer();
  if (request.has_depth()) config->depth = request.depth();
  if (request.has_token_rate()) config->token_rate = request.token_rate();
  if (request.has_best_effort_min()) config->best_effort_min = request.best_effort_min();
  if (request.has_iops_max()) config->iops_max = request.iops_max();
  AllocationConfig& allocation = config->allocation;
  if (request.has_allocation()) {
    WEIR_ASSIGN_OR_RETURN(allocation.kind, ParseAllocation(request.allocation()));
  }
  if (request.has_allocation_period_ns()) {
    allocation.period = Duration(static_cast<int64_t>(request.allocation_period_ns()));
  }
  if (request.has_allocation_window_ns()) {
    allocation.window = Duration(static_cast<int64_t>(request.allocation_window_ns()));
  }
  if (request.has_allocation_alarm()) allocation.alarm = request.allocation_alarm();
  if (request.has_anticipation()) config->anticipation = request.anticipation();
  if (request.has_processor_pressure()) {
    const uint32_t percent = request.processor_pressure();
    config->processor_pressure = percent > 0 ? percent : SchedulerConfig::kDefaultPressure;
  }
  if (request.has_service_estimate_ns()) {
    config->cvc.fixed_estimate = Duration(static_cast<int64_t>(request.service_estimate_ns()));
  }
  return Status::Ok();
}

Status CheckPieces(const wire::SetOsdRequest& request) {
  if (request.has_cost() && !request.osds().empty()) {
    return {ErrorCode::kInvalid, "the cost is one for the whole cluster: set it on 'all'"};
  }
  if (request.has_depth() && request.depth() > kDepthMax) {
    return {ErrorCode::kInvalid, "a depth is from 1 to 4096, or auto"};
  }
  if (request.processor_pressure() > SchedulerConfig::kAnyPressure) {
    return {ErrorCode::kInvalid, "a processor pressure is from 1 to 100 percent"};
  }
  if (request.has_token_rate() && (request.token_rate() == 0 || request.token_rate() > INT64_MAX)) {
    return {ErrorCode::kInvalid, "a token rate is more than 0 and less than 8EiB/s"};
  }
  if (request.has_best_effort_min() && request.best_effort_min() > INT64_MAX) {
    return {ErrorCode::kInvalid, "a best-effort minimum is less than 8EiB/s"};
  }
  if (request.has_iops_max() && request.iops_max() > 1'000'000'000) {
    return {ErrorCode::kInvalid, "at most 1000000000 requests per second"};
  }
  if (const uint64_t ns = request.service_estimate_ns();
      ns != 0 && (ns < kServiceEstimateMin || ns > kServiceEstimateMax)) {
    return {ErrorCode::kInvalid, "an estimate of the service time is from 1 us to 10 s"};
  }
  for (const uint64_t ns : {request.allocation_period_ns(), request.allocation_window_ns()}) {
    if (ns == 0 || (ns >= kAllocationTimeMin && ns <= kAllocationTimeMax)) continue;
    return {ErrorCode::kInvalid, "an allocation's period and window are from 1 s to 1 h"};
  }
  return Status::Ok();
}

}  // namespace

Result<OsdId> ClusterKeeper::RegisterOsd(const wire::RegisterOsdRequest& request) {
  const std::lock_guard changing(changing_);
  ClusterMap next = *map();
  const std::string& uuid = request.cluster_uuid();
  if (!uuid.empty() && uuid != next.cluster_uuid) {
    return Status(ErrorCode::kWrongCluster,
                  "the OSD belongs to cluster " + uuid + ", this is cluster " + next.cluster_uuid);
  }
  Ids ids = ids_;
  WEIR_ASSIGN_OR_RETURN(const OsdId id, IdOf(request, &ids));
  OsdEntry& osd = next.osds[id];
  osd.id = id;
  osd.uuid = request.osd_uuid();
  if (request.capacity_bytes() > 0) {
    osd.capacity_bytes = request.capacity_bytes();
    osd.placement_weight = static_cast<double>(osd.capacity_bytes) / kBytesPerTib;
  }
  osd.tiers.clear();
  for (const wire::TierInfo& tier : request.tiers()) {
    WEIR_ASSIGN_OR_RETURN(const TierName name, TierName::Parse(tier.name()));
    osd.tiers.push_back({name, tier.capacity_bytes()});
  }
  // What an operator has set stays.
  if (osd.qos.token_rate == 0) osd.qos.token_rate = request.token_rate();
  if (!request.endpoint().empty()) {
    osd.endpoint = request.endpoint();
    osd.up = true;
    if (std::find(ids.joined.begin(), ids.joined.end(), id) == ids.joined.end()) {
      ids.joined.push_back(id);
      Join(&next, id);
    }
    const std::lock_guard lock(mutex_);
    heard_[id] = {clock_.Now(), Epoch(0), osd.used_bytes};
    lives_[id] = request.life();
  }
  WEIR_RETURN_IF_ERROR(Commit(std::move(next), std::move(ids)));
  if (request.endpoint().empty()) {
    WEIR_LOG_INFO("osd.{} is the number of a new OSD, which does not serve yet", LogOsd(id.value));
  } else {
    WEIR_LOG_INFO("osd.{} registered at '{}'", LogOsd(id.value), request.endpoint());
  }
  return id;
}

uint64_t ClusterKeeper::LifeOf(OsdId osd) const {
  const std::lock_guard lock(mutex_);
  const auto life = lives_.find(osd);
  return life == lives_.end() ? 0 : life->second;
}

Result<OsdId> ClusterKeeper::IdOf(const wire::RegisterOsdRequest& request, Ids* ids) const {
  if (request.osd_uuid().empty()) return Status(ErrorCode::kInvalid, "an OSD needs a uuid");
  ClusterMap known = *map();
  if (const OsdEntry* same = FindByUuid(&known, request.osd_uuid()); same != nullptr) {
    if (!request.has_osd_id() || request.osd_id() == same->id.value) return same->id;
    return Status(ErrorCode::kInvalid, "OSD " + request.osd_uuid() + " is osd." +
                                           std::to_string(same->id.value) + ", not osd." +
                                           std::to_string(request.osd_id()));
  }
  if (request.cluster_uuid().empty()) return OsdId(ids->osd++);
  return Status(ErrorCode::kNotFound, "this cluster does not know OSD " + request.osd_uuid() +
                                          " (weir-osd --mkfs makes a new one)");
}

Result<std::vector<OsdId>> ClusterKeeper::Named(const wire::SetOsdRequest& request) const {
  const auto map = this->map();
  std::vector<OsdId> osds;
  for (const uint32_t id : request.osds()) {
    if (!map->osds.contains(OsdId(id))) {
      return Status(ErrorCode::kNotFound, "there is no osd." + std::to_string(id));
    }
    osds.emplace_back(id);
  }
  if (!request.osds().empty()) return osds;
  for (const auto& [id, osd] : map->osds) osds.push_back(id);
  if (osds.empty()) return Status(ErrorCode::kNotFound, "the cluster has no OSD yet");
  return osds;
}

Status ClusterKeeper::SetOsd(const wire::SetOsdRequest& request, const Asked& asked) {
  const std::lock_guard changing(changing_);
  WEIR_RETURN_IF_ERROR(CheckPieces(request));
  WEIR_ASSIGN_OR_RETURN(const std::vector<OsdId> osds, Named(request));
  const auto now = map();
  ClusterMap next = *now;
  for (const OsdId id : osds) {
    OsdEntry& osd = next.osds.at(id);
    WEIR_RETURN_IF_ERROR(ApplyPieces(request, &osd.qos));
    const bool moves_ledger =
        request.has_token_rate() || request.has_best_effort_min() || request.has_iops_max();
    if (!moves_ledger) continue;
    WEIR_RETURN_IF_ERROR(AdmitOsdChange(*now, osd));
  }
  return CommitSame(std::move(next), {asked, {}});
}

Result<wire::PoolInfo> ClusterKeeper::CreatePool(const wire::PoolCreateRequest& request,
                                                 const Asked& asked) {
  const std::lock_guard changing(changing_);
  ClusterMap next = *map();
  const std::string what = "cannot create pool '" + request.name() + "': ";
  if (!IsGoodName(request.name())) {
    return Status(ErrorCode::kInvalid, what + "a name has " + std::string(kGoodName));
  }
  if (next.FindPool(request.name()) != nullptr) {
    return Status(ErrorCode::kExists, what + "it exists already");
  }
  Ids ids = ids_;
  Pool pool;
  pool.id = PoolId(ids.pool++);
  pool.name = request.name();
  pool.replicas = std::max(request.replicas(), 1u);
  for (const uint32_t id : request.osds()) {
    const OsdId osd(id);
    if (!next.osds.contains(osd)) {
      return Status(ErrorCode::kNotFound, what + "there is no osd." + std::to_string(id));
    }
    if (std::find(pool.osds.begin(), pool.osds.end(), osd) == pool.osds.end()) {
      pool.osds.push_back(osd);
    }
  }
  if (pool.osds.empty()) return Status(ErrorCode::kInvalid, what + "name its OSDs");
  if (pool.replicas > 1) {
    return Status(ErrorCode::kInvalid, what + "this version keeps one replica only");
  }
  const uint32_t slots = request.slots() == 0 ? kDefaultSlots : request.slots();
  if (slots > kMaxSlots) return Status(ErrorCode::kInvalid, what + "at most 65536 slots");
  pool.chains.resize(slots);
  Recompute(next, &pool);
  const PoolId id = pool.id;
  next.pools[id] = std::move(pool);
  wire::PoolInfo made;
  const wire::ClusterMap shown = ToWire(next);
  for (const wire::PoolInfo& info : shown.pools()) {
    if (info.id() == id.value) made = info;
  }
  WEIR_RETURN_IF_ERROR(Commit(std::move(next), std::move(ids), {asked, made.SerializeAsString()}));
  return made;
}

Status ClusterKeeper::RemovePool(const std::string& name, const Asked& asked) {
  const std::lock_guard changing(changing_);
  ClusterMap next = *map();
  const Pool* pool = next.FindPool(name);
  if (pool == nullptr) return {ErrorCode::kNotFound, "there is no pool '" + name + "'"};
  if (pool->all_osds) {
    return {ErrorCode::kInvalid, "pool '" + name + "' always exists"};
  }
  if (pool->in_use) {
    return {ErrorCode::kBusy, "cannot remove pool '" + name + "': files have been laid out in it"};
  }
  next.pools.erase(pool->id);
  return CommitSame(std::move(next), {asked, {}});
}

}  // namespace weir::mds
