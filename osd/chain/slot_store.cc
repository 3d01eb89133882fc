#include "osd/chain/slot_store.h"

namespace weir::osd {
namespace {

using replication::ObjectState;
using replication::Operation;
using replication::OpKind;
using replication::SessionIds;
using replication::Version;

void Remember(const Operation& operation, ObjectState* state) {
  SessionIds& ids = state->ids[operation.id.session];
  ids.floor = std::max(ids.floor, operation.floors.object);
  ids.done[operation.id.number] = {operation.version, operation.status, operation.offset};
  ids.done.erase(ids.done.begin(), ids.done.lower_bound(ids.floor));
}

void Carry(const Operation& operation, ObjectState* state) {
  state->version = operation.version;
  Remember(operation, state);
  if (operation.kind == OpKind::kRefusal) return;
  if (operation.kind == OpKind::kDelete) {
    state->exists = false;
    state->bytes.clear();
    state->data_version = {};
    return;
  }
  state->exists = true;
  state->data_version = operation.version;
  const uint64_t end = operation.offset + operation.bytes.size();
  if (state->bytes.size() < end) state->bytes.resize(end, '\0');
  state->bytes.replace(operation.offset, operation.bytes.size(), operation.bytes);
}

void ApplyTo(SlotState* slot, const Stage& stage) {
  const Operation& operation = stage.operation;
  slot->objects[operation.object].pending.push_back(operation);
  uint64_t& floor = slot->floors[operation.id.session];
  floor = std::max(floor, operation.floors.session);
  slot->highest = std::max(slot->highest, operation.version);
}

void ApplyTo(SlotState* slot, const Publish& publish) {
  ObjectRecord& record = slot->objects[publish.object];
  while (!record.pending.empty() && record.pending.front().version <= publish.up_to) {
    Carry(record.pending.front(), &record.readable);
    record.pending.pop_front();
  }
}

void ApplyTo(SlotState* slot, const replication::Drop& drop) {
  const auto found = slot->objects.find(drop.object);
  if (found == slot->objects.end()) return;
  auto& pending = found->second.pending;
  while (!pending.empty() && pending.back().version >= drop.from) pending.pop_back();
  if (pending.empty() && found->second.readable.version.none()) slot->objects.erase(found);
}

void ApplyTo(SlotState* slot, const replication::Install& install) {
  slot->objects.erase(install.object);
  if (!install.state.has_value()) return;
  slot->objects[install.object].readable = *install.state;
}

void ApplyTo(SlotState* slot, const Forget& forget) {
  slot->objects.erase(forget.object);
}

void ApplyTo(SlotState* slot, const RaiseFloors& raise) {
  for (const auto& [session, to] : raise.floors.of) {
    uint64_t& floor = slot->floors[session];
    floor = std::max(floor, to);
  }
}

void ApplyTo(SlotState* slot, const SetBase& set) {
  slot->base = set.base;
}

void ApplyTo(SlotState* slot, const SetHighest& set) {
  slot->highest = set.highest;
}

}  // namespace

NewestState Newest(const ObjectRecord* record) {
  NewestState newest;
  if (record == nullptr) return newest;
  const ObjectState& readable = record->readable;
  newest = {readable.exists, readable.bytes.size(), readable.version, readable.data_version};
  for (const Operation& operation : record->pending) {
    newest.version = operation.version;
    if (operation.kind == OpKind::kRefusal) continue;
    const bool write = operation.kind == OpKind::kWrite;
    newest.exists = write;
    newest.data_version = write ? operation.version : Version{};
    newest.size =
        write ? std::max<uint64_t>(newest.size, operation.offset + operation.bytes.size()) : 0;
  }
  return newest;
}

void SlotState::Apply(const Mutation& mutation) {
  std::visit([&](const auto& what) { ApplyTo(this, what); }, mutation);
}

uint64_t SlotState::FloorOf(uint64_t session) const {
  const auto found = floors.find(session);
  return found == floors.end() ? 0 : found->second;
}

}  // namespace weir::osd
