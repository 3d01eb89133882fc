// SlotStore: what a member of a chain keeps of one slot on its medium, and how a batch changes it.
//
// An object has a readable state and operations that are staged beside it, each building on the one
// before. Publishing moves the oldest ones into the state, dropping forgets the youngest.
// A batch is seen at once and durable later, all of it or nothing, batches in order.
// Threads: one.
#pragma once

#include <deque>
#include <variant>

#include "common/replication/messages.h"

namespace weir::osd {

struct ObjectRecord {
  replication::ObjectState readable;
  std::deque<replication::Operation> pending;
};

// An object as the next operation finds it.
struct NewestState {
  bool exists = false;
  uint64_t size = 0;
  replication::Version version;
  replication::Version data_version;
  // What `previous` of the next operation must say.
  [[nodiscard]] replication::Version Previous() const {
    return exists ? version : replication::Version{};
  }
};
NewestState Newest(const ObjectRecord* record);

struct Stage {
  replication::Operation operation;  // raises floors, too
};
struct Publish {
  ObjectId object;
  replication::Version up_to;
};
struct Forget {  // a tombstone
  ObjectId object;
};
struct RaiseFloors {
  replication::Floors floors;
};
struct SetBase {
  replication::Version base;
};
struct SetHighest {
  replication::Version highest;
};
using Mutation = std::variant<Stage, Publish, replication::Drop, replication::Install, Forget,
                              RaiseFloors, SetBase, SetHighest>;
using Batch = std::vector<Mutation>;

// All of a slot in memory.
struct SlotState {
  std::map<ObjectId, ObjectRecord> objects;
  std::map<uint64_t, uint64_t> floors;  // by session
  // Every operation up to `base` is resolved here, and this member had them all.
  replication::Version base;
  // Every operation of the chain up to `highest` was here. Right for who has been serving; who is
  // coming back learns it at the end.
  replication::Version highest;

  void Apply(const Mutation& mutation);
  [[nodiscard]] uint64_t FloorOf(uint64_t session) const;
};

class SlotStore {
 public:
  virtual ~SlotStore() = default;
  [[nodiscard]] virtual const SlotState& state() const = 0;
  [[nodiscard]] virtual bool HasRoom(const replication::Operation& operation) const = 0;
  // Its number; grows from 1. The owner tells the ChainMember when all up to a number are durable.
  virtual uint64_t Submit(Batch batch) = 0;
};

}  // namespace weir::osd
