#include "osd/service/scrubber.h"

#include <fmt/format.h>

#include <future>

#include "common/net/rpc.h"
#include "common/wire/osd.pb.h"

namespace weir::osd {
namespace {

class ScrubRead final : public ObjectOp {
 public:
  explicit ScrubRead(std::promise<ObjectOpResult> result) : result_(std::move(result)) {}
  void Done(ObjectOpResult result) override { result_.set_value(std::move(result)); }

 private:
  std::promise<ObjectOpResult> result_;
};

bool IsDamage(const Status& status) {
  return status.code() == ErrorCode::kCorrupt || status.code() == ErrorCode::kIo;
}

}  // namespace

void Scrubber::Start() {
  const std::lock_guard starting(starting_);
  {
    const std::lock_guard lock(mutex_);
    if (progress_.running || ended_) return;
  }
  if (thread_.joinable()) thread_.join();  // all but gone
  const std::lock_guard lock(mutex_);
  progress_ = {.running = true, .runs = progress_.runs};
  for (const Disk& disk : disks_) progress_.objects_total += disk.store->Stats().objects;
  stop_ = false;
  thread_ = std::thread([this] { Run(); });
}

void Scrubber::Stop() {
  const std::lock_guard lock(mutex_);
  stop_ = true;
}

void Scrubber::Wait() {
  const std::lock_guard starting(starting_);
  if (thread_.joinable()) thread_.join();
}

void Scrubber::End() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = ended_ = true;
  }
  Wait();
}

ScrubProgress Scrubber::Progress() {
  const std::lock_guard lock(mutex_);
  return progress_;
}

bool Scrubber::stopping() {
  const std::lock_guard lock(mutex_);
  return stop_;
}

void Scrubber::Run() {
  Result<bool> to_the_end = true;
  for (const Disk& disk : disks_) {
    to_the_end = CheckDisk(disk);
    if (!to_the_end.ok() || !*to_the_end) break;
  }
  const bool ended = to_the_end.ok() && *to_the_end;
  if (!to_the_end.ok() && report_) report_("scrub ended early: " + to_the_end.status().message());
  const std::lock_guard lock(mutex_);
  progress_.running = false;
  progress_.runs += ended ? 1 : 0;
  if (!ended) progress_.error = to_the_end.ok() ? "stopped" : to_the_end.status().message();
}

Result<bool> Scrubber::CheckDisk(const Disk& disk) {
  ObjectId at;
  while (!stopping()) {
    WEIR_ASSIGN_OR_RETURN(const std::optional<ObjectId> next, disk.store->NextObject(at));
    if (!next.has_value()) return true;
    WEIR_RETURN_IF_ERROR(CheckObject(disk, *next));
    at = {next->inode, next->index + 1};
    const std::lock_guard lock(mutex_);
    ++progress_.objects;
  }
  return false;
}

Status Scrubber::CheckObject(const Disk& disk, ObjectId id) {
  bool end = false;
  for (uint64_t offset = 0; !end && offset < kMaxObjectSize; offset += kPieceBytes) {
    if (stopping()) return {};
    WEIR_RETURN_IF_ERROR(CheckPiece(disk, id, offset, &end));
  }
  return {};
}

// A piece that cannot be read is read again block by block, to tell what is damaged.
Status Scrubber::CheckPiece(const Disk& disk, ObjectId id, uint64_t offset, bool* end) {
  const Result<Buffer> piece = Read(disk, id, offset, kPieceBytes);
  if (piece.ok()) {
    *end = piece->size() < kPieceBytes;
    return {};
  }
  if (!IsDamage(piece.status())) return piece.status();
  for (uint64_t at = offset; at < offset + kPieceBytes && !*end; at += kBlockSize) {
    const Result<Buffer> block = Read(disk, id, at, kBlockSize);
    if (block.ok()) {
      *end = block->size() < kBlockSize;
      continue;
    }
    if (!IsDamage(block.status())) return block.status();
    if (report_) report_("scrub: " + block.status().message());
    const std::lock_guard lock(mutex_);
    ++progress_.damaged_blocks;
  }
  return {};
}

Result<Buffer> Scrubber::Read(const Disk& disk, ObjectId id, uint64_t offset, uint64_t length) {
  std::promise<ObjectOpResult> promise;
  std::future<ObjectOpResult> future = promise.get_future();
  auto op = std::make_unique<ScrubRead>(std::move(promise));
  op->kind = ObjectOpKind::kRead;
  op->object = id;
  op->offset = offset;
  op->length = length;
  op->class_id = kSystemScrub;
  disk.dispatcher->loop().Post(
      [disk, raw = op.release()] { disk.dispatcher->Submit(std::unique_ptr<ObjectOp>(raw)); });
  ObjectOpResult result = future.get();
  if (!result.status.ok()) return result.status;
  const std::lock_guard lock(mutex_);
  progress_.bytes += result.data.size();
  return std::move(result.data);
}

void Scrubber::Handle(net::IncomingCall& call, uint32_t osd_id) {
  wire::ScrubRequest request;
  if (!request.ParseFromString(call.body())) {
    call.Respond(
        {ErrorCode::kBadMessage, fmt::format("osd.{}: scrub request does not parse", osd_id)});
    return;
  }
  if (request.action() == wire::ScrubRequest::START) Start();
  if (request.action() == wire::ScrubRequest::STOP) Stop();
  const ScrubProgress progress = Progress();
  wire::ScrubReply reply;
  reply.set_running(progress.running);
  reply.set_runs(progress.runs);
  reply.set_objects(progress.objects);
  reply.set_objects_total(progress.objects_total);
  reply.set_bytes(progress.bytes);
  reply.set_damaged_blocks(progress.damaged_blocks);
  reply.set_error(progress.error);
  call.Respond(reply.SerializeAsString());
}

}  // namespace weir::osd
