#include "common/placement/cluster_map.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "common/wire/map.pb.h"

namespace weir {
namespace {

constexpr uint32_t kMostReplicas = 16;

using replication::MemberState;

MemberState StateFromWire(wire::ChainMember::State state) {
  switch (state) {
    case wire::ChainMember::SERVING:
      return MemberState::kServing;
    case wire::ChainMember::SYNCING:
      return MemberState::kSyncing;
    default:
      return MemberState::kOffline;
  }
}

wire::ChainMember::State ToWire(MemberState state) {
  switch (state) {
    case MemberState::kServing:
      return wire::ChainMember::SERVING;
    case MemberState::kSyncing:
      return wire::ChainMember::SYNCING;
    case MemberState::kOffline:
      break;
  }
  return wire::ChainMember::OFFLINE;
}

Status Bad(const std::string& what) {
  return {ErrorCode::kBadMessage, "cluster map: " + what};
}

template <typename T, typename U>
Status Assign(Result<T> parsed, U& to) {
  if (!parsed.ok()) return {ErrorCode::kBadMessage, parsed.status().message()};
  to = *parsed;
  return Status::Ok();
}

template <typename Strong>
std::vector<Strong> ToIds(const google::protobuf::RepeatedField<uint32_t>& values) {
  std::vector<Strong> ids;
  ids.reserve(values.size());
  for (const uint32_t value : values) ids.emplace_back(value);
  return ids;
}

Result<OsdEntry> OsdFromWire(const wire::OsdInfo& message) {
  const std::string name = "osd." + std::to_string(message.id());
  if (!std::isfinite(message.weight()) || message.weight() < 0) {
    return Bad(name + ": placement weight is not a number from 0 on");
  }
  OsdEntry osd{.id = OsdId(message.id()),
               .uuid = message.uuid(),
               .endpoint = message.endpoint(),
               .up = message.up(),
               .capacity_bytes = message.capacity_bytes(),
               .used_bytes = message.used_bytes(),
               .placement_weight = message.weight(),
               .qos = {},
               .tiers = {}};
  auto qos = FromWire(message.qos());
  if (!qos.ok()) return qos.status().Annotate(name);
  osd.qos = *std::move(qos);
  for (const wire::TierInfo& tier : message.tiers()) {
    auto parsed = TierName::Parse(tier.name());
    if (!parsed.ok()) return Bad(name + ": " + parsed.status().message());
    osd.tiers.push_back({*parsed, tier.capacity_bytes()});
  }
  return osd;
}

Result<Chain> ChainFromWire(const wire::Chain& message, const ClusterMap& map) {
  WEIR_ASSIGN_OR_RETURN(Chain chain, FromWire(message));
  for (const replication::Member& member : chain.members) {
    if (!map.osds.contains(member.osd)) return Bad("a chain names an unknown OSD");
  }
  return chain;
}

Result<Pool> PoolFromWire(const wire::PoolInfo& message, const ClusterMap& map) {
  const std::string name = "pool " + std::to_string(message.id());
  Pool pool{.id = PoolId(message.id()),
            .name = message.name(),
            .osds = ToIds<OsdId>(message.osds()),
            .replicas = message.replicas(),
            .min_replicas = message.has_min_replicas() ? message.min_replicas() : 1,
            .chains = {},
            .in_use = message.in_use(),
            .all_osds = message.all_osds()};
  if (pool.replicas < 1 || pool.replicas > kMostReplicas) {
    return Bad(name + ": replicas must be between 1 and 16");
  }
  if (pool.min_replicas < 1 || pool.min_replicas > pool.replicas) {
    return Bad(name + ": min_replicas must be between 1 and replicas");
  }
  if (static_cast<uint32_t>(message.chains_size()) > kMaxSlots) {
    return Bad(name + ": more than 65536 chains");
  }
  for (const OsdId osd : pool.osds) {
    if (!map.osds.contains(osd)) return Bad(name + ": names an unknown OSD");
  }
  pool.chains.reserve(message.chains_size());
  for (const wire::Chain& chain : message.chains()) {
    auto decoded = ChainFromWire(chain, map);
    if (!decoded.ok()) return decoded.status().Annotate(name);
    pool.chains.push_back(*std::move(decoded));
  }
  return pool;
}

Result<Reservation> ReservationFromWire(const wire::ReservationInfo& message) {
  Reservation reservation{.bytes_per_s = message.bytes_per_s(), .scope = {}, .ends = {}};
  WEIR_RETURN_IF_ERROR(Assign(ParseScope(message.scope()), reservation.scope));
  reservation.iops = message.iops();
  if (!message.admission().empty()) {
    WEIR_RETURN_IF_ERROR(Assign(ParseAdmission(message.admission()), reservation.admission));
  }
  if (message.has_ends_wall_ns()) reservation.ends = WallTime{message.ends_wall_ns()};
  if (message.leeway() != 0) reservation.leeway = message.leeway();
  if (!std::isfinite(reservation.leeway) || reservation.leeway < 1) {
    return Bad("leeway is not a number from 1 on");
  }
  for (const auto& user : message.users()) {
    reservation.users.push_back({.uid = user.uid(), .bytes_per_s = user.bytes_per_s()});
  }
  return reservation;
}

// The bound belongs to the virtual disk of type latency, else to the class itself.
Status ContractFromWire(const wire::ClassInfo& message, ClassSpec* spec) {
  VirtualDisk& disk = spec->disk;
  ServiceContract& service = spec->service;
  if (!message.type().empty()) {
    WEIR_RETURN_IF_ERROR(Assign(ParseClassType(message.type()), disk.type));
  }
  disk.peak = message.peak();
  disk.peak_bytes_per_s = message.peak_bytes_per_s();
  disk.throughput_bytes_per_s = message.throughput_bytes_per_s();
  if (message.has_tolerance()) disk.tolerance = message.tolerance();
  if (message.latency_part() != 0) service.probability = message.latency_part();
  if (message.has_max_pending()) service.max_pending = message.max_pending();
  if (message.latency_ns() > INT64_MAX) return {ErrorCode::kBadMessage, "latency out of range"};
  const Duration bound(static_cast<int64_t>(message.latency_ns()));
  (disk.type == ClassType::kLatency ? disk.latency : service.bound) = bound;
  if (!message.admission().empty()) {
    WEIR_RETURN_IF_ERROR(Assign(ParseAdmission(message.admission()), spec->admission));
  }
  for (const Status& checked : {CheckVirtualDisk(disk), CheckContract(service)}) {
    if (!checked.ok()) return {ErrorCode::kBadMessage, checked.message()};
  }
  return Status::Ok();
}

Result<ClassEntry> ClassFromWire(const wire::ClassInfo& message) {
  const std::string name = "class " + std::to_string(message.id());
  if (!std::isfinite(message.weight()) || message.weight() <= 0) {
    return Bad(name + ": weight is not a positive number");
  }
  if (!std::isfinite(message.min_weight()) || message.min_weight() < 0) {
    return Bad(name + ": min_weight is not a number from 0 on");
  }
  ClassEntry entry{.spec = {.id = ClassId(message.id()),
                            .name = message.name(),
                            .weight = message.weight(),
                            .min_weight = message.min_weight(),
                            .limit_bytes_per_s = {},
                            .reservation = {},
                            .reservation_ends = {}},
                   .users = {message.users().begin(), message.users().end()},
                   .groups = {message.groups().begin(), message.groups().end()},
                   .capacity_bytes = message.capacity_bytes(),
                   .limit_names_per_s = message.limit_names_per_s()};
  if (message.has_limit_bytes_per_s()) entry.spec.limit_bytes_per_s = message.limit_bytes_per_s();
  if (message.has_reservation()) {
    auto reservation = ReservationFromWire(message.reservation());
    if (!reservation.ok()) return reservation.status().Annotate(name);
    entry.spec.reservation = *reservation;
  }
  if (!message.flow().empty()) {
    WEIR_RETURN_IF_ERROR(Assign(ParseFlowKind(message.flow()), entry.flow));
  }
  const Status contract = ContractFromWire(message, &entry.spec);
  if (!contract.ok()) return contract.Annotate(name);
  return entry;
}

// Ids are the keys of the maps, names are what people type: neither may stand twice.
template <typename Map, typename Entry>
Status Insert(Map& map, std::set<std::string>& names, typename Map::key_type id,
              const std::string& name, Entry entry, const char* kind) {
  if (!names.insert(name).second) return Bad(std::string(kind) + " '" + name + "' stands twice");
  if (!map.emplace(id, std::move(entry)).second) {
    return Bad(std::string(kind) + " " + std::to_string(id.value) + " stands twice");
  }
  return Status::Ok();
}

}  // namespace

const ClassEntry* ClusterMap::FindClass(std::string_view name) const {
  for (const auto& [id, entry] : classes) {
    if (entry.spec.name == name) return &entry;
  }
  return nullptr;
}

const Pool* ClusterMap::FindPool(std::string_view name) const {
  for (const auto& [id, pool] : pools) {
    if (pool.name == name) return &pool;
  }
  return nullptr;
}

std::optional<uint32_t> ClusterMap::SlotOf(PoolId pool, ObjectId object) const {
  const auto it = pools.find(pool);
  if (it == pools.end() || it->second.chains.empty()) return std::nullopt;
  const uint64_t slots = it->second.chains.size();
  return static_cast<uint32_t>(MixHash(object.inode.value, object.index) % slots);
}

const Chain* ClusterMap::ChainOf(PoolId pool, ObjectId object) const {
  const std::optional<uint32_t> slot = SlotOf(pool, object);
  return slot.has_value() ? &pools.at(pool).chains[*slot] : nullptr;
}

bool Chain::Has(OsdId osd) const {
  return std::any_of(members.begin(), members.end(),
                     [osd](const replication::Member& member) { return member.osd == osd; });
}

uint64_t ClusterMap::ClusterHash() const {
  uint64_t hash = cluster_uuid.size();
  for (const char c : cluster_uuid) hash = MixHash(hash, static_cast<uint8_t>(c));
  return hash;
}

Result<ClusterMap> FromWire(const wire::ClusterMap& message) {
  ClusterMap map;
  map.epoch = Epoch(message.epoch());
  map.term = message.term();
  map.tag_epoch = message.tag_epoch();
  map.cluster_uuid = message.cluster_uuid();
  map.near_full = message.near_full();
  std::set<std::string> osd_names, pool_names, class_names;
  for (const wire::OsdInfo& info : message.osds()) {
    WEIR_ASSIGN_OR_RETURN(OsdEntry osd, OsdFromWire(info));
    const OsdId id = osd.id;
    WEIR_RETURN_IF_ERROR(
        Insert(map.osds, osd_names, id, std::to_string(id.value), std::move(osd), "osd"));
  }
  for (const wire::PoolInfo& info : message.pools()) {
    WEIR_ASSIGN_OR_RETURN(Pool pool, PoolFromWire(info, map));
    WEIR_RETURN_IF_ERROR(
        Insert(map.pools, pool_names, PoolId(info.id()), info.name(), std::move(pool), "pool"));
  }
  for (const wire::ClassInfo& info : message.classes()) {
    WEIR_ASSIGN_OR_RETURN(ClassEntry entry, ClassFromWire(info));
    WEIR_RETURN_IF_ERROR(Insert(map.classes, class_names, ClassId(info.id()), info.name(),
                                std::move(entry), "class"));
  }
  for (const wire::FenceInfo& fence : message.fences()) {
    map.fences[fence.session()] = Epoch(fence.epoch());
  }
  std::set<std::string> rule_names;
  for (const wire::RuleInfo& info : message.rules()) {
    WEIR_ASSIGN_OR_RETURN(ClassRule rule, FromWire(info));
    if (!rule_names.insert(std::to_string(rule.number)).second) {
      return Bad("rule " + std::to_string(rule.number) + " stands twice");
    }
    map.rules.push_back(std::move(rule));
  }
  return map;
}

Result<Chain> FromWire(const wire::Chain& message) {
  Chain chain;
  chain.version = std::max<uint64_t>(message.version(), 1);
  for (const wire::ChainMember& member : message.members()) {
    if (!wire::ChainMember::State_IsValid(member.state()))
      return Bad("a chain has a member of no state");
    chain.members.push_back({OsdId(member.osd()), member.life(), StateFromWire(member.state())});
  }
  if (chain.empty()) {
    for (const uint32_t osd : message.osds()) {
      chain.members.push_back({OsdId(osd), 0, MemberState::kServing});
    }
  }
  const auto& members = chain.members;
  if (members.empty()) return Bad("a chain is empty");
  if (members.size() > kMostReplicas) return Bad("a chain is longer than 16");
  if (members.front().state != MemberState::kServing) return Bad("nobody serves in a chain");
  for (size_t i = 1; i < members.size(); ++i) {
    const MemberState before = members[i - 1].state;
    const MemberState state = members[i].state;
    if (state < before || (state == before && state == MemberState::kSyncing)) {
      return Bad("a chain's members serve first, then one is syncing, then some are offline");
    }
    for (size_t other = 0; other < i; ++other) {
      if (members[other].osd == members[i].osd) return Bad("a chain names an OSD twice");
    }
  }
  return chain;
}

wire::Chain ToWire(const Chain& chain) {
  wire::Chain message;
  message.set_version(chain.version);
  for (const replication::Member& member : chain.members) {
    wire::ChainMember* to = message.add_members();
    to->set_osd(member.osd.value);
    to->set_life(member.life);
    to->set_state(ToWire(member.state));
  }
  return message;
}

Result<ClassEntry> FromWire(const wire::ClassInfo& message) {
  return ClassFromWire(message);
}

Result<ClassRule> FromWire(const wire::RuleInfo& message) {
  ClassRule rule;
  rule.number = message.number();
  if (message.has_uid()) rule.uid = message.uid();
  if (message.has_gid()) rule.gid = message.gid();
  rule.exe = message.exe();
  rule.client = message.client();
  rule.cgroup = message.cgroup();
  rule.class_name = message.class_name();
  if (!rule.uid && !rule.gid && rule.exe.empty() && rule.client.empty() && rule.cgroup.empty()) {
    return Bad("rule " + std::to_string(rule.number) + " names nobody");
  }
  if (rule.class_name.empty()) return Bad("rule " + std::to_string(rule.number) + " has no class");
  return rule;
}

wire::RuleInfo ToWire(const ClassRule& rule) {
  wire::RuleInfo message;
  message.set_number(rule.number);
  if (rule.uid.has_value()) message.set_uid(*rule.uid);
  if (rule.gid.has_value()) message.set_gid(*rule.gid);
  message.set_exe(rule.exe);
  message.set_client(rule.client);
  message.set_cgroup(rule.cgroup);
  message.set_class_name(rule.class_name);
  return message;
}

Result<SchedulerConfig> FromWire(const wire::QosConfig& message) {
  SchedulerConfig config;
  config.profile = message.profile();
  config.guarantee = message.guarantee_htb() ? GuaranteeKind::kHtb : GuaranteeKind::kNone;
  WEIR_RETURN_IF_ERROR(Assign(ParseSurplus(message.surplus()), config.surplus));
  WEIR_RETURN_IF_ERROR(Assign(ParseSharing(message.sharing()), config.sharing));
  WEIR_RETURN_IF_ERROR(Assign(ParseGate(message.gate()), config.gate));
  WEIR_RETURN_IF_ERROR(Assign(ParseDispatch(message.dispatch()), config.dispatch));
  WEIR_RETURN_IF_ERROR(Assign(ParseCost(message.cost()), config.cost));
  config.maximizer = message.maximizer();
  config.depth = message.depth();
  config.token_rate = message.token_rate();
  if (message.has_best_effort_min()) config.best_effort_min = message.best_effort_min();
  config.iops_max = message.iops_max();
  if (!message.allocation().empty()) {
    WEIR_RETURN_IF_ERROR(Assign(ParseAllocation(message.allocation()), config.allocation.kind));
  }
  config.allocation.period = Duration(static_cast<int64_t>(message.allocation_period_ns()));
  config.allocation.window = Duration(static_cast<int64_t>(message.allocation_window_ns()));
  if (message.has_allocation_alarm()) config.allocation.alarm = message.allocation_alarm();
  config.anticipation = message.anticipation();
  if (message.processor_pressure() > SchedulerConfig::kAnyPressure) {
    return {ErrorCode::kBadMessage, "a processor pressure is a percentage"};
  }
  if (message.processor_pressure() > 0) config.processor_pressure = message.processor_pressure();
  config.cvc.fixed_estimate = Duration(static_cast<int64_t>(message.service_estimate_ns()));
  return config;
}

wire::QosConfig ToWire(const SchedulerConfig& config) {
  wire::QosConfig message;
  message.set_profile(config.profile);
  message.set_guarantee_htb(config.guarantee == GuaranteeKind::kHtb);
  message.set_surplus(std::string(ToText(config.surplus)));
  message.set_sharing(std::string(ToText(config.sharing)));
  message.set_gate(std::string(ToText(config.gate)));
  message.set_dispatch(std::string(ToText(config.dispatch)));
  message.set_cost(std::string(ToText(config.cost)));
  message.set_maximizer(config.maximizer);
  message.set_depth(config.depth);
  message.set_token_rate(config.token_rate);
  if (config.best_effort_min) message.set_best_effort_min(*config.best_effort_min);
  message.set_iops_max(config.iops_max);
  const AllocationConfig& allocation = config.allocation;
  message.set_allocation(std::string(ToText(allocation.kind)));
  message.set_allocation_period_ns(static_cast<uint64_t>(allocation.period.count()));
  message.set_allocation_window_ns(static_cast<uint64_t>(allocation.window.count()));
  message.set_allocation_alarm(allocation.alarm);
  message.set_anticipation(config.anticipation);
  message.set_processor_pressure(config.processor_pressure);
  message.set_service_estimate_ns(static_cast<uint64_t>(config.cvc.fixed_estimate.count()));
  return message;
}

namespace {

void ContractToWire(const ClassSpec& spec, wire::ClassInfo* message) {
  const VirtualDisk& disk = spec.disk;
  const Duration bound = disk.type == ClassType::kLatency ? disk.latency : spec.service.bound;
  message->set_type(std::string(ToText(disk.type)));
  message->set_peak(disk.peak);
  message->set_peak_bytes_per_s(disk.peak_bytes_per_s);
  message->set_throughput_bytes_per_s(disk.throughput_bytes_per_s);
  message->set_tolerance(disk.tolerance);
  message->set_latency_ns(static_cast<uint64_t>(bound.count()));
  message->set_latency_part(spec.service.probability);
  message->set_max_pending(spec.service.max_pending);
  message->set_admission(std::string(ToText(spec.admission)));
}

}  // namespace

wire::ClassInfo ToWire(const ClassEntry& entry) {
  wire::ClassInfo message;
  message.set_id(entry.spec.id.value);
  message.set_name(entry.spec.name);
  message.set_weight(entry.spec.weight);
  message.set_min_weight(entry.spec.min_weight);
  if (entry.spec.limit_bytes_per_s) {
    message.set_limit_bytes_per_s(*entry.spec.limit_bytes_per_s);
  }
  if (const auto& reservation = entry.spec.reservation) {
    auto* to = message.mutable_reservation();
    to->set_bytes_per_s(reservation->bytes_per_s);
    to->set_scope(std::string(ToText(reservation->scope)));
    if (reservation->ends) to->set_ends_wall_ns(reservation->ends->ns);
    to->set_iops(reservation->iops);
    to->set_admission(std::string(ToText(reservation->admission)));
    if (reservation->leeway != kLeeway) to->set_leeway(reservation->leeway);
    for (const UserPart& user : reservation->users) {
      auto* part = to->add_users();
      part->set_uid(user.uid);
      part->set_bytes_per_s(user.bytes_per_s);
    }
  }
  ContractToWire(entry.spec, &message);
  message.mutable_users()->Assign(entry.users.begin(), entry.users.end());
  message.mutable_groups()->Assign(entry.groups.begin(), entry.groups.end());
  message.set_capacity_bytes(entry.capacity_bytes);
  message.set_flow(std::string(ToText(entry.flow)));
  message.set_limit_names_per_s(entry.limit_names_per_s);
  return message;
}

wire::ClusterMap ToWire(const ClusterMap& map) {
  wire::ClusterMap message;
  message.set_epoch(map.epoch.value);
  message.set_term(map.term);
  message.set_tag_epoch(map.tag_epoch);
  message.set_cluster_uuid(map.cluster_uuid);
  message.set_near_full(map.near_full);
  for (const auto& [id, osd] : map.osds) {
    auto* to = message.add_osds();
    to->set_id(id.value);
    to->set_uuid(osd.uuid);
    to->set_endpoint(osd.endpoint);
    to->set_up(osd.up);
    to->set_capacity_bytes(osd.capacity_bytes);
    to->set_used_bytes(osd.used_bytes);
    to->set_weight(osd.placement_weight);
    for (const TierEntry& tier : osd.tiers) {
      wire::TierInfo* info = to->add_tiers();
      info->set_name(tier.name.ToString());
      info->set_capacity_bytes(tier.capacity_bytes);
    }
    *to->mutable_qos() = ToWire(osd.qos);
  }
  for (const auto& [id, pool] : map.pools) {
    auto* to = message.add_pools();
    to->set_id(id.value);
    to->set_name(pool.name);
    for (const OsdId osd : pool.osds) to->add_osds(osd.value);
    to->set_replicas(pool.replicas);
    to->set_in_use(pool.in_use);
    to->set_all_osds(pool.all_osds);
    to->set_min_replicas(pool.min_replicas);
    for (const Chain& chain : pool.chains) *to->add_chains() = ToWire(chain);
  }
  for (const auto& [id, entry] : map.classes) *message.add_classes() = ToWire(entry);
  for (const ClassRule& rule : map.rules) *message.add_rules() = ToWire(rule);
  for (const auto& [session, epoch] : map.fences) {
    wire::FenceInfo* fence = message.add_fences();
    fence->set_session(session);
    fence->set_epoch(epoch.value);
  }
  return message;
}

}  // namespace weir
