// ClusterMap: the shared view of OSDs, pools, chains and classes, in the form that code uses.
// Decoded from wire::ClusterMap; immutable once made, replaced as a whole by a newer epoch.
//
// Placement (decided in the design): object -> slot = hash(inode, index) mod slots(pool) ->
// chain[slot]. Threads: const; share freely through shared_ptr<const ClusterMap>.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/result.h"
#include "common/base/tier_name.h"
#include "common/placement/class_rules.h"
#include "common/qos/flow_kind.h"
#include "common/qos/qos_config.h"
#include "common/replication/chain.h"

namespace weir {

namespace wire {
class Chain;
class ClusterMap;
class QosConfig;
class ClassInfo;
class RuleInfo;
}  // namespace wire

struct TierEntry {
  TierName name;
  uint64_t capacity_bytes = 0;
};

struct OsdEntry {
  OsdId id;
  std::string uuid;
  std::string endpoint;
  bool up = false;
  uint64_t capacity_bytes = 0;
  uint64_t used_bytes = 0;
  double placement_weight = 1;
  SchedulerConfig qos;
  std::vector<TierEntry> tiers;  // the first is the default; empty: one disk
};

// Who holds the objects of a slot. Serving members first, then at most one that is syncing, then
// those that are offline; see common/replication/chain.h. Life 0: of any process of that OSD.
struct Chain {
  uint64_t version = 1;  // grows with every change of the members
  std::vector<replication::Member> members;

  [[nodiscard]] bool empty() const { return members.empty(); }
  // Who orders what changes an object. Requires: !empty().
  [[nodiscard]] OsdId head() const { return members.front().osd; }
  [[nodiscard]] bool Has(OsdId osd) const;
  friend bool operator==(const Chain&, const Chain&) = default;
};

struct Pool {
  PoolId id;
  std::string name;
  std::vector<OsdId> osds;
  uint32_t replicas = 1;
  uint32_t min_replicas = 1;  // of members that serve, below which writes wait
  std::vector<Chain> chains;  // one per slot; empty while the pool has no OSD
  bool in_use = false;
  bool all_osds = false;
};

struct ClassEntry {
  ClassSpec spec;
  std::vector<uint32_t> users;
  std::vector<uint32_t> groups;
  uint64_t capacity_bytes = 0;      // that its files may hold; 0: as much as there is
  FlowKind flow = FlowKind::kUser;  // between whom it is fair
  uint64_t limit_names_per_s = 0;   // operations on names, at the MDS; 0: none
};

struct ClusterMap {
  Epoch epoch;
  uint64_t term = 0;  // of the leader who published it; 0: there is but one MDS
  uint64_t tag_epoch = 0;
  std::string cluster_uuid;
  bool near_full = false;  // some OSD is (near_full.h): mounts store before they answer close(2)
  std::map<OsdId, OsdEntry> osds;
  std::map<PoolId, Pool> pools;
  std::map<ClassId, ClassEntry> classes;
  std::vector<ClassRule> rules;  // in the order in which they are tried
  // Sessions that were evicted: what they ask to change under an older epoch is refused.
  std::map<uint64_t, Epoch> fences;

  // Null when there is none of that name or id.
  [[nodiscard]] const ClassEntry* FindClass(std::string_view name) const;
  [[nodiscard]] const Pool* FindPool(std::string_view name) const;
  // The slot of an object in its pool; none when the pool is unknown or has no OSD.
  [[nodiscard]] std::optional<uint32_t> SlotOf(PoolId pool, ObjectId object) const;
  // The chain of that slot, which holds the object; null likewise.
  [[nodiscard]] const Chain* ChainOf(PoolId pool, ObjectId object) const;
  // Identifies the cluster in every object request.
  [[nodiscard]] uint64_t ClusterHash() const;
};

// kBadMessage names the field that is out of its range.
Result<ClusterMap> FromWire(const wire::ClusterMap& message);
wire::ClusterMap ToWire(const ClusterMap& map);
// Whether the OSDs exist is the map's business.
Result<Chain> FromWire(const wire::Chain& message);
wire::Chain ToWire(const Chain& chain);
Result<SchedulerConfig> FromWire(const wire::QosConfig& message);
wire::QosConfig ToWire(const SchedulerConfig& config);
wire::ClassInfo ToWire(const ClassEntry& entry);
Result<ClassEntry> FromWire(const wire::ClassInfo& message);
// kBadMessage for a rule that names nobody.
Result<ClassRule> FromWire(const wire::RuleInfo& message);
wire::RuleInfo ToWire(const ClassRule& rule);

inline constexpr uint32_t kDefaultSlots = 256;
inline constexpr uint32_t kMaxSlots = 65536;

// Chains of `replicas` OSDs for every slot by weighted rendezvous hashing: adding or removing an
// OSD moves only its share. All serve, in any life, at version 1. Requires: 1 <= replicas <=
// candidates.size(), weights > 0.
struct PlacementCandidate {
  OsdId osd;
  double weight;
};
std::vector<Chain> ComputeChains(PoolId pool, uint32_t slots, uint32_t replicas,
                                 const std::vector<PlacementCandidate>& candidates);
// The members of `next`, under versions that follow those of `chains`: one whose OSDs are the same
// stays as it is.
void ReplaceChains(std::vector<Chain>* chains, std::vector<Chain> next);

}  // namespace weir
