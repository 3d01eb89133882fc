// ClusterView: what the namespace asks of the cluster map. Implemented by cluster/ClusterKeeper and
// by fakes in tests. Threads: any; called under the NamespaceDb lock, so it never calls back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/placement/class_rules.h"
#include "mds/ns/credentials.h"

namespace weir::mds {

class LayoutRecord;

struct SpaceInfo {
  uint64_t capacity_bytes = 0;
  uint64_t free_bytes = 0;
};

// What the files of a class may hold.
struct ClassCapacity {
  std::string name;
  uint64_t bytes = 0;
};

class ClusterView {
 public:
  virtual ~ClusterView() = default;
  [[nodiscard]] virtual std::optional<uint32_t> ClassIdOf(std::string_view name) const = 0;
  // kInvalid: no such class; kPermission: its spec names others.
  virtual Status MayTag(std::string_view class_name, const Credentials& who) const = 0;
  // What no tag covers: by rule, else the class of the mount, else best-effort; and why, if asked.
  virtual uint32_t UntaggedClass(const RuleSubject& who, std::string* reason) const = 0;
  [[nodiscard]] virtual std::optional<uint32_t> PoolIdOf(std::string_view name) const = 0;
  [[nodiscard]] virtual std::string PoolNameOf(uint32_t pool) const = 0;
  // Whether an OSD of the pool has a tier of that name; otherwise kInvalid says which there are.
  virtual Status CheckTier(uint32_t pool, std::string_view tier) const = 0;
  // Makes sure, durably, that the chains of the pool stay where they are. kNoSpace: it has no OSD.
  virtual Status UsePool(uint32_t pool) = 0;
  // "0:osd.2 1:osd.0", one item per object of a file of this size, at most `max` of them.
  [[nodiscard]] virtual std::string DescribeObjects(uint64_t inode, const LayoutRecord& layout,
                                                    uint64_t size, size_t max) const = 0;
  [[nodiscard]] virtual SpaceInfo Space() const = 0;
  // What an OSD has said just now, and will say itself a little later.
  virtual void OsdUses(uint32_t /*osd*/, uint64_t /*used_bytes*/) {}
  // For people: how long the class was throttled lately, and who is to blame.
  [[nodiscard]] virtual std::string WhySlow(uint32_t class_id) const = 0;
  // What was written under an older map by a session that was evicted since.
  [[nodiscard]] virtual bool IsFenced(uint64_t /*session*/, uint64_t /*epoch*/) const {
    return false;
  }
  // None: the class has no capacity of its own, or does not exist.
  [[nodiscard]] virtual std::optional<ClassCapacity> CapacityOf(uint32_t class_id) const = 0;
};

}  // namespace weir::mds
