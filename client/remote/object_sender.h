// ObjectOp: one object request as the mount sees it. ObjectSender: whoever brings it to an OSD.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/ids.h"
#include "common/base/result.h"
#include "common/base/tier_name.h"
#include "common/base/time.h"
#include "common/placement/cluster_map.h"
#include "common/qos/flow_kind.h"
#include "common/qos/lane.h"
#include "common/replication/messages.h"

namespace weir::client {

struct ObjectOutcome {
  using Extents = std::vector<std::pair<uint64_t, uint64_t>>;  // offset and length
  Buffer payload;  // of a read: up to the length asked for, less where the object ends
  uint64_t object_size = 0;
  uint64_t window_bytes = 0;  // the OSD's grant for this class; 0: unchanged
  Duration server_time{0};    // between its arrival at the OSD and the answer; 0: not said
  Duration limit_time{0};     // of it: held back there by the class's own limit
  OsdId osd{};                // who answered
  Extents extents;  // of what is no hole; kAllocate: for what nothing was kept or taken before
  uint64_t freed_bytes = 0;  // by a hole
  // Blocks that take space and did not before; none: it is not known.
  std::optional<uint64_t> grown_bytes;
  uint64_t used_bytes = 0;             // kAllocate: of the OSD
  std::optional<uint64_t> free_bytes;  // with grown_bytes: what the disk still takes
  uint64_t next_object = UINT64_MAX;   // index of the next object of the inode that this OSD has
};
// Becomes true when nobody waits for an operation any more, since its process was killed. Null:
// somebody always does.
using Abandoned = std::shared_ptr<const std::atomic<bool>>;
using ObjectCallback = std::function<void(Result<ObjectOutcome>)>;

// Whose request it is, within its class.
struct Flow {
  uint32_t uid = 0;
  uint64_t opener = 0;  // thread group that opened the file; 0: none, or not to be seen
  FlowKind kind = FlowKind::kUser;
  std::shared_ptr<const std::string> cgroup = nullptr;  // its path, with kCgroup

  // As this mount tells it from others.
  [[nodiscard]] FlowKey key() const {
    return KeyOf({.kind = kind,
                  .uid = uid,
                  .opener = opener,
                  .cgroup = cgroup == nullptr ? std::string_view() : std::string_view(*cgroup)});
  }
};

struct ObjectOp {
  // kCopy: from an object that must lie on the same OSD.
  enum class Verb : uint8_t { kData, kPunch, kCopy, kExtents, kAllocate, kGiveBack };
  Verb verb = Verb::kData;
  bool write = false;  // changes something
  ClassId class_id;
  Flow flow{};
  bool background = false;  // nobody waits for it
  PoolId pool;
  TierName tier{};
  ObjectId object;
  uint64_t offset = 0;
  uint64_t length = 0;
  Buffer payload;            // of a write, `length` bytes
  uint32_t payload_crc = 0;  // its crc32c
  ObjectId source;           // of a copy
  uint64_t source_offset = 0;
  bool want_next = false;  // kPunch, kExtents: answer next_object
  bool zeros = false;      // kAllocate: the range becomes zeros
  ObjectCallback done;     // exactly once, on any thread, with no lock held
  Abandoned abandoned;
  Abandoned fenced;  // becomes true when the data may overwrite what others have written

  // About what the OSD charges for it.
  [[nodiscard]] uint64_t cost() const {
    if (verb == Verb::kData) return length;
    if (verb == Verb::kCopy && offset % kBlockSize != source_offset % kBlockSize) return 2 * length;
    return kBlockSize;
  }
  [[nodiscard]] Lane lane() const { return background ? Lane::kBackground : LaneOf(cost()); }
};

struct ObjectAnswer {
  Result<ObjectOutcome> result;
  std::optional<Chain> newer_chain = std::nullopt;  // of the object's slot, with kStaleEpoch
};

class ObjectSender {
 public:
  struct Stamp {
    OsdId osd;
    std::vector<uint64_t> delays;  // DSFQ, of each member that the request reaches, head first
    uint64_t epoch = 0;
    uint64_t cluster = 0;
    uint32_t slot = 0;           // of the object in its pool
    uint64_t chain_version = 0;  // of that slot, as it was when the OSD was chosen
    // Of what changes something; session 0: it has none.
    replication::OpId op;
    replication::IdFloors floors;
    Duration waited{0};  // the longest that a small one of the class took since; 0: not said
  };
  using Callback = std::function<void(ObjectAnswer)>;
  virtual ~ObjectSender() = default;
  // kUnreachable at once when the OSD is not known; kCancelled when its endpoint changed meanwhile.
  virtual void Send(const ObjectOp& op, const Stamp& stamp, Callback callback) = 0;
  [[nodiscard]] virtual bool Reachable(OsdId osd) const = 0;
};

}  // namespace weir::client
