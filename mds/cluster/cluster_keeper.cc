#include "mds/cluster/cluster_keeper.h"

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/placement/near_full.h"
#include "mds/cluster/admission.h"
#include "mds/format/ns_keys_format.h"
#include "mds/format/ns_values_format.h"

namespace weir::mds {
namespace {
constexpr size_t kAppliedMax = 64;
}  // namespace

Result<std::unique_ptr<ClusterKeeper>> ClusterKeeper::Open(KvStore& store, Clock& clock,
                                                           const std::string& new_cluster_uuid) {
  std::unique_ptr<ClusterKeeper> keeper(new ClusterKeeper(store, clock));
  const Result<std::string> stored = store.Get(kClusterKey);
  if (!stored.ok() && stored.code() != ErrorCode::kNotFound) return stored.status();
  if (stored.ok()) {
    WEIR_ASSIGN_OR_RETURN(const ClusterRecord record, DecodeValue<ClusterRecord>(*stored));
    WEIR_RETURN_IF_ERROR(keeper->Load(record).Annotate("reading the cluster map"));
  } else {
    WEIR_RETURN_IF_ERROR(keeper->Found(new_cluster_uuid));
  }
  return keeper;
}

Status ClusterKeeper::Load(const ClusterRecord& record) {
  WEIR_ASSIGN_OR_RETURN(ClusterMap map, FromWire(record.map()));
  ids_.osd = record.next_osd();
  ids_.klass = record.next_class();
  ids_.pool = record.next_pool();
  ids_.rule = std::max<uint32_t>(record.next_rule(), 1);  // 0: of before there were rules
  for (const uint32_t id : record.joined_osds()) ids_.joined.emplace_back(id);
  for (const AppliedRecord& applied : record.applied()) {
    applied_.push_back({{applied.session(), applied.request_id()}, applied.body()});
  }
  // Each gets the full time to speak up again.
  for (const auto& [id, osd] : map.osds) {
    heard_[id] = {clock_.Now(), Epoch(0), osd.used_bytes, Epoch(0)};
  }
  map_ = std::make_shared<const ClusterMap>(std::move(map));
  return Status::Ok();
}

Status ClusterKeeper::Found(const std::string& uuid) {
  ClusterMap map;
  map.cluster_uuid = uuid;
  Pool pool;
  pool.id = PoolId(0);
  pool.name = "default";
  pool.all_osds = true;
  map.pools[pool.id] = std::move(pool);
  const std::pair<ClassId, const char*> reserved[] = {{kBestEffort, "best-effort"},
                                                      {kSystemCompaction, "system.compaction"},
                                                      {kSystemPurge, "system.purge"},
                                                      {kSystemRecovery, "system.recovery"},
                                                      {kSystemScrub, "system.scrub"}};
  for (const auto& [id, name] : reserved) {
    map.classes[id].spec.id = id;
    map.classes[id].spec.name = name;
  }
  const std::lock_guard changing(changing_);
  return CommitSame(std::move(map));
}

void ClusterKeeper::SetOnChange(OnChange on_change) {
  const std::lock_guard lock(mutex_);
  on_change_ = std::move(on_change);
}

std::shared_ptr<const ClusterMap> ClusterKeeper::map() const {
  const std::lock_guard lock(mutex_);
  return map_;
}

std::optional<std::string> ClusterKeeper::AnswerTo(const Asked& asked) const {
  const std::lock_guard changing(changing_);
  for (const Applied& applied : applied_) {
    const bool same = applied.asked.session == asked.session &&
                      applied.asked.request_id == asked.request_id && asked.request_id != 0;
    if (same) return applied.body;
  }
  return std::nullopt;
}

Status ClusterKeeper::Commit(ClusterMap next, Ids ids, const Applied& applied) {
  next.epoch = Epoch(next.epoch.value + 1);
  std::deque<Applied> all_applied = applied_;
  if (applied.asked.request_id != 0) all_applied.push_back(applied);
  if (all_applied.size() > kAppliedMax) all_applied.pop_front();
  ClusterRecord record;
  *record.mutable_map() = ToWire(next);
  record.set_next_osd(ids.osd);
  record.set_next_class(ids.klass);
  record.set_next_pool(ids.pool);
  record.set_next_rule(ids.rule);
  for (const OsdId id : ids.joined) record.add_joined_osds(id.value);
  for (const Applied& one : all_applied) {
    AppliedRecord* kept = record.add_applied();
    kept->set_session(one.asked.session);
    kept->set_request_id(one.asked.request_id);
    kept->set_body(one.body);
  }
  WriteBatch batch;
  batch.Put(kClusterKey, EncodeValue(record));
  WEIR_RETURN_IF_ERROR(
      store_.Apply(batch, Durability::kDurable).Annotate("writing the cluster map"));
  ids_ = std::move(ids);
  applied_ = std::move(all_applied);
  OnChange on_change;
  {
    const std::lock_guard lock(mutex_);
    map_ = std::make_shared<const ClusterMap>(std::move(next));
    on_change = on_change_;
  }
  if (on_change != nullptr) on_change();
  return Status::Ok();
}

bool ClusterKeeper::OsdHeard(OsdId osd, Epoch have_epoch, uint64_t used_bytes, Epoch fence_epoch) {
  const std::lock_guard lock(mutex_);
  const auto known = map_->osds.find(osd);
  if (known == map_->osds.end() || known->second.endpoint.empty()) return false;
  heard_[osd] = {clock_.Now(), have_epoch, used_bytes, fence_epoch};
  return true;
}

void ClusterKeeper::OsdUses(uint32_t osd, uint64_t used_bytes) {
  const std::lock_guard lock(mutex_);
  const auto heard = heard_.find(OsdId(osd));
  if (heard != heard_.end()) heard->second.used_bytes = used_bytes;
}

void ClusterKeeper::OsdFreed(OsdId osd, uint64_t freed_bytes) {
  const std::lock_guard lock(mutex_);
  const auto heard = heard_.find(osd);
  if (heard == heard_.end()) return;
  heard->second.used_bytes -= std::min(heard->second.used_bytes, freed_bytes);
}

void ClusterKeeper::OsdMeasured(OsdId osd, const wire::ServiceMeasures& measures) {
  auto kept = std::make_shared<OsdMeasures>();
  kept->stable = measures.stable();
  for (const uint32_t part : measures.service_parts()) kept->service_parts.push_back(part / 100.0);
  for (const uint64_t rate : measures.io_rates()) {
    kept->io_rates.push_back(static_cast<double>(rate));
  }
  for (const uint32_t id : measures.measured()) kept->measured.insert(ClassId(id));
  const std::lock_guard lock(mutex_);
  measures_[osd] = std::move(kept);
}

MeasuresByOsd ClusterKeeper::Measures() const {
  const std::lock_guard lock(mutex_);
  MeasuresByOsd all;
  for (const auto& [id, osd] : map_->osds) {
    const auto known = measures_.find(id);
    if (osd.up && known != measures_.end()) all[id] = *known->second;
  }
  return all;
}

bool ClusterKeeper::Obeyed(Epoch epoch) const {
  return NotObeying(epoch).empty();
}

std::vector<std::string> ClusterKeeper::NotObeying(Epoch epoch) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> late;
  for (const auto& [id, osd] : map_->osds) {
    if (!osd.up) continue;
    const auto heard = heard_.find(id);
    if (heard != heard_.end() && heard->second.epoch >= epoch) continue;
    late.push_back("osd." + std::to_string(id.value));
  }
  return late;
}

void ClusterKeeper::Tick() {
  const std::lock_guard changing(changing_);
  ClusterMap next = *map();
  bool changed = false;
  MarkLiveness(&next, &changed);
  EndReservations(&next, &changed);
  MarkNearFull(&next, &changed);
  if (!changed) return;
  const Status status = CommitSame(std::move(next));
  if (!status.ok()) WEIR_LOG_ERROR("the cluster map could not be written: {}", status.message());
}

void ClusterKeeper::MarkLiveness(ClusterMap* next, bool* changed) {
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_.Now();
  for (auto& [id, osd] : next->osds) {
    const auto heard = heard_.find(id);
    if (osd.endpoint.empty() || heard == heard_.end()) continue;
    osd.used_bytes = heard->second.used_bytes;
    const bool up = now - heard->second.when <= kOsdSilenceMax;
    if (!up) measures_.erase(id);
    if (up == osd.up) continue;
    WEIR_LOG_WARN("osd.{} is {}", LogOsd(id.value), up ? "up again" : "down: silent for 3 s");
    osd.up = up;
    *changed = true;
  }
}

void ClusterKeeper::EndReservations(ClusterMap* next, bool* changed) {
  const WallTime now = clock_.WallNow();
  for (auto& [id, entry] : next->classes) {
    auto& reservation = entry.spec.reservation;
    if (!reservation.has_value() || !reservation->ends.has_value()) continue;
    if (now < *reservation->ends) continue;
    WEIR_LOG_INFO("the reservation of class '{}' has ended", LogClass(entry.spec.name));
    reservation.reset();
    *changed = true;
  }
}

// After MarkLiveness, which writes down what is used.
void ClusterKeeper::MarkNearFull(ClusterMap* next, bool* changed) {
  const std::vector<OsdId> osds = NearFullOsds(*next);
  if (next->near_full == !osds.empty()) return;
  next->near_full = !osds.empty();
  if (next->near_full) {
    WEIR_LOG_WARN("osd.{} is nearly full: closes wait for the disks", LogOsd(osds.front().value));
  } else {
    WEIR_LOG_INFO("no OSD is nearly full any more");
  }
  *changed = true;
}

bool ClusterKeeper::NearFullMoves() const {
  const std::map<OsdId, uint64_t> used = UsedBytes();
  const auto map = this->map();
  return map->near_full == NearFullOsds(*map, used).empty();
}

std::vector<std::string> ClusterKeeper::Warnings() const {
  const std::shared_ptr<const ClusterMap> map = this->map();
  std::vector<std::string> warnings;
  for (const auto& [id, osd] : map->osds) {
    const std::string name = "osd." + std::to_string(id.value);
    const Status fits = AdmitOsdChange(*map, osd);
    if (!fits.ok()) warnings.push_back(name + " has promised more than its token rate");
  }
  for (const auto& [id, pool] : map->pools) {
    if (pool.chains.empty()) warnings.push_back("pool '" + pool.name + "' has no OSD");
  }
  return warnings;
}

}  // namespace weir::mds
