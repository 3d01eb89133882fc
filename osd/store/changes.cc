// Every change of one object, as the operation that stands in its queue.
#include "osd/store/extent_store.h"
#include "osd/store/object_bounds.h"

namespace weir::osd {
namespace {

using ChangeKind = ObjectChange::Kind;

StoreOp::Kind StoreKindOf(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::kWrite:
      return StoreOp::Kind::kWrite;
    case ChangeKind::kTruncate:
      return StoreOp::Kind::kTruncate;
    case ChangeKind::kPunch:
      return StoreOp::Kind::kPunch;
    case ChangeKind::kAllocate:
      return StoreOp::Kind::kAllocate;
    case ChangeKind::kGiveBack:
      return StoreOp::Kind::kGiveBack;
    case ChangeKind::kCopy:
      return StoreOp::Kind::kCopy;
  }
  return StoreOp::Kind::kWrite;
}

Status CheckChange(const ObjectChange& change) {
  switch (change.kind) {
    case ChangeKind::kWrite:
      return Fits(change.terms.append ? 0 : change.offset, change.data.size())
                 ? Status()
                 : BeyondObject("write");
    case ChangeKind::kTruncate:
      return Fits(change.offset, 0) ? Status() : BeyondObject("truncate");
    case ChangeKind::kPunch:
      return Fits(change.offset, change.length) ? Status() : BeyondObject("hole");
    case ChangeKind::kAllocate:
    case ChangeKind::kGiveBack:
      return Fits(change.offset, change.length) ? Status() : BeyondObject("allocation");
    case ChangeKind::kCopy:
      break;
  }
  const CopySource& from = change.source;
  if (!Fits(change.offset, change.length) || !Fits(from.offset, change.length)) {
    return BeyondObject("copy");
  }
  const bool overlaps = from.id == change.id && change.offset < from.offset + change.length &&
                        from.offset < change.offset + change.length;
  if (overlaps) return {ErrorCode::kInvalid, "copy of a range over itself"};
  return {};
}

Status CheckTerms(const ChangeTerms& terms) {
  const OpTerms& op = terms.op;
  if (op.session == 0) return {};
  if (op.number >= op.session_floor && op.number >= op.object_floor) return {};
  return {ErrorCode::kInvalid, "the number of the operation is below its own floor"};
}

}  // namespace

// For stores that know no terms.
void ObjectStore::Change(ObjectChange change, WriteDone done) {
  const ObjectId id = change.id;
  switch (change.kind) {
    case ChangeKind::kWrite:
      return Write(id, change.offset, std::move(change.data), change.hints, std::move(done));
    case ChangeKind::kTruncate:
      return Truncate(id, change.offset, std::move(done));
    case ChangeKind::kPunch:
      return Punch(id, change.offset, change.length, std::move(done));
    case ChangeKind::kAllocate:
      return Allocate(id, change.offset, change.length, change.zeros, std::move(done));
    case ChangeKind::kGiveBack:
      return GiveBack(id, change.offset, change.length, std::move(done));
    case ChangeKind::kCopy:
      return Copy(change.source, id, change.offset, change.length, std::move(done));
  }
}

void ExtentStore::Change(ObjectChange change, WriteDone done) {
  if (Status status = CheckChange(change); !status.ok()) return done(std::move(status));
  if (Status status = CheckTerms(change.terms); !status.ok()) return done(std::move(status));
  auto op = std::make_shared<StoreOp>();
  op->kind = StoreKindOf(change.kind);
  op->offset = change.offset;
  if (change.kind != ChangeKind::kWrite && change.kind != ChangeKind::kTruncate)
    op->length = change.length;
  op->zeros = change.zeros;
  if (change.kind == ChangeKind::kCopy) {
    op->source_offset = change.source.offset;
    op->source = Lookup(change.source.id);
  }
  op->data = std::move(change.data);
  op->patience = change.hints.patience;
  op->landed = std::move(change.hints.landed);
  op->expected_crc = change.hints.crc;
  op->terms = change.terms;
  op->done = std::move(done);
  op->object = Lookup(change.id);
  Enqueue(std::move(op));
}

void ExtentStore::Write(ObjectId id, uint64_t offset, Buffer data, const WriteHints& hints,
                        WriteDone done) {
  Change({.kind = ChangeKind::kWrite,
          .id = id,
          .offset = offset,
          .data = std::move(data),
          .hints = hints},
         std::move(done));
}

void ExtentStore::Truncate(ObjectId id, uint64_t size, WriteDone done) {
  Change({.kind = ChangeKind::kTruncate, .id = id, .offset = size}, std::move(done));
}

void ExtentStore::Punch(ObjectId id, uint64_t offset, uint64_t length, WriteDone done) {
  Change({.kind = ChangeKind::kPunch, .id = id, .offset = offset, .length = length},
         std::move(done));
}

void ExtentStore::Allocate(ObjectId id, uint64_t offset, uint64_t length, bool zeros,
                           WriteDone done) {
  Change(
      {.kind = ChangeKind::kAllocate, .id = id, .offset = offset, .length = length, .zeros = zeros},
      std::move(done));
}

void ExtentStore::GiveBack(ObjectId id, uint64_t offset, uint64_t length, WriteDone done) {
  Change({.kind = ChangeKind::kGiveBack, .id = id, .offset = offset, .length = length},
         std::move(done));
}

void ExtentStore::Copy(const CopySource& from, ObjectId to, uint64_t offset, uint64_t length,
                       WriteDone done) {
  Change({.kind = ChangeKind::kCopy, .id = to, .offset = offset, .length = length, .source = from},
         std::move(done));
}

}  // namespace weir::osd
