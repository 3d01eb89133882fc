// ObjectOp: one object operation on its way through the scheduler to the store and back.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/ids.h"
#include "common/base/result.h"
#include "common/qos/flow_meter.h"
#include "common/qos/flow_order.h"
#include "common/qos/lane.h"
#include "osd/qos/scheduler.h"
#include "osd/store/object_store.h"

namespace weir::osd {

enum class ObjectOpKind : uint8_t {
  kRead,
  kWrite,
  kTruncate,
  kDeleteInode,
  kStat,
  kPunch,
  kCopy,
  kExtents,
  kAllocate,
  kGiveBack,
  // I/O that whoever submits does itself: MayGo says when, Dispatcher::Ended that it is over.
  kBackgroundRead,
  kBackgroundWrite,
};

// What a truncate, punch, allocation or copy of shared blocks is charged, and a delete for each
// object: the metadata commit that it causes.
inline constexpr uint64_t kMetadataOpBytes = 4096;

struct ObjectOpResult {
  Status status;
  ObjectInfo info;                   // of writes, truncates and stats; what deletes freed
  Buffer data;                       // of reads
  std::optional<uint32_t> data_crc;  // where the store knows it
  uint64_t next_index = 0;           // of deletes: the first that is left; 0: none
  std::vector<ByteRange> extents;
  uint64_t next_object = UINT64_MAX;  // with want_next: the next of the inode; UINT64_MAX: none
};

// Derived by whoever submits; the Dispatcher owns it from Submit until some time after Done.
// Threads: all calls on the Dispatcher's loop.
class ObjectOp {
 public:
  virtual ~ObjectOp() = default;
  // Exactly once; must not block. What it keeps for the answer it lets go here: it may live on
  // until the turn's end.
  virtual void Done(ObjectOpResult result) = 0;
  // Of background I/O, once; must not block.
  virtual void MayGo() {}
  // Who `counted_for` is; also after Done.
  [[nodiscard]] virtual FlowOwner Owner() const { return {}; }

  ObjectOpKind kind = ObjectOpKind::kRead;
  ObjectId object;      // kDeleteInode: index is the first that goes
  uint64_t offset = 0;  // kTruncate: the new size; background: on the device
  uint64_t length = 0;  // of all on ranges; background: too; kDeleteInode: objects at most, 0: all
  CopySource source;    // of a copy
  bool want_next = false;            // kPunch, kExtents: answer next_object too
  bool zeros = false;                // kAllocate: the range becomes zeros
  Buffer data;                       // of a write
  std::optional<uint32_t> data_crc;  // its crc32c, to be held against what has come
  ChangeTerms terms;                 // of what changes one object
  uint32_t transaction = 0;          // of its class, ClassSpec::transactions: whose uid it is
  FlowKey flow;                      // whose it is, within its class
  FlowKey counted_for;               // the same user and opener, whatever kind of flows it has
  Lane lane = Lane::kUnknown;        // what the sender takes it for
  ClassId class_id;
  int64_t elsewhere = 0;  // DSFQ delay, in the unit of the cost
  Duration waited{0};     // the longest that its user waited for one from here lately; 0: not said

  // How long its class's own limit held it; in Done.
  [[nodiscard]] Duration held_by_limit() const { return request_.held_by_limit; }
  // It ran while somebody waited for each small request, on a disk without a head; in Done.
  [[nodiscard]] bool kept_short() const { return request_.kept_short; }

 private:
  friend class Dispatcher;
  qos::Request request_;
  bool bypasses_ = false;
  bool light_ = false;  // when it came, little of its flow was under way
  Duration patience_{0};
  TimePoint finished_;
};

}  // namespace weir::osd
