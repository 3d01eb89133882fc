#include "tools/osdctl/verify/closed_loop.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "common/base/crc32c.h"

namespace weir::osdctl {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);

Buffer RandomBytes(uint64_t bytes, Prng* prng) {
  Buffer buffer = Buffer::Aligned(bytes);
  for (uint64_t at = 0; at + sizeof(uint64_t) <= bytes; at += sizeof(uint64_t)) {
    const uint64_t word = prng->Next();
    std::memcpy(buffer.data() + at, &word, sizeof(word));
  }
  return buffer;
}

}  // namespace

ClosedLoop::ClosedLoop(client::ObjectIo& io, Clock& clock, Shape shape, uint64_t seed)
    : io_(io), clock_(clock), shape_(std::move(shape)), prng_(seed) {
  if (!shape_.write) return;
  payload_ = RandomBytes(shape_.bytes, &prng_);
  payload_crc_ = Crc32c(payload_.data(), payload_.size());
}

ClosedLoop::~ClosedLoop() {
  Stop();
}

void ClosedLoop::Start() {
  for (uint32_t i = 0; i < shape_.outstanding; ++i) SendOne();
}

bool ClosedLoop::failed() const {
  const std::lock_guard lock(mutex_);
  return !result_.status.ok();
}

void ClosedLoop::SendOne() {
  client::ObjectOp op;
  op.write = shape_.write;
  op.class_id = shape_.class_id;
  op.pool = shape_.pool;
  op.length = shape_.bytes;
  op.payload = payload_;
  op.payload_crc = payload_crc_;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || !result_.status.ok()) return;
    ++under_way_;
    op.object = shape_.objects[prng_.Uniform(0, shape_.objects.size() - 1)];
    op.offset = prng_.Uniform(0, shape_.object_bytes / shape_.bytes - 1) * shape_.bytes;
  }
  op.done = [this, sent = clock_.Now()](const weir::Result<client::ObjectOutcome>& outcome) {
    OnDone(sent, outcome.status());
  };
  io_.Submit(std::move(op));
}

void ClosedLoop::OnDone(TimePoint sent, const Status& status) {
  const Duration took = clock_.Now() - sent;
  {
    const std::lock_guard lock(mutex_);
    if (!status.ok() && result_.status.ok()) result_.status = status;
    if (status.ok() && !stopping_) {
      result_.bytes += shape_.bytes;
      result_.latencies_us.push_back(
          static_cast<uint32_t>(std::min<int64_t>(took.count() / 1000, UINT32_MAX)));
    }
  }
  SendOne();
  const std::lock_guard lock(mutex_);
  if (--under_way_ == 0) idle_.notify_all();
}

ClosedLoop::Result ClosedLoop::Stop() {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  while (!idle_.wait_for(lock, kTick, [this] { return under_way_ == 0; })) {
    lock.unlock();
    io_.Tick();  // ends what waits for an OSD that is lost
    lock.lock();
  }
  return result_;
}

Status WriteWhole(client::ObjectIo& io, const ClosedLoop::Shape& shape) {
  constexpr uint64_t kPiece = 1 << 20;
  Prng prng(1);
  const Buffer payload = RandomBytes(kPiece, &prng);
  const uint32_t crc = Crc32c(payload.data(), payload.size());
  struct Progress {
    std::mutex mutex;
    std::condition_variable done;
    uint64_t left = 0;
    Status first;
  };
  auto progress = std::make_shared<Progress>();
  progress->left = shape.objects.size() * (shape.object_bytes / kPiece);
  for (const ObjectId& object : shape.objects) {
    for (uint64_t offset = 0; offset < shape.object_bytes; offset += kPiece) {
      client::ObjectOp op;
      op.write = true;
      op.class_id = shape.class_id;
      op.pool = shape.pool;
      op.object = object;
      op.offset = offset;
      op.length = kPiece;
      op.payload = payload;
      op.payload_crc = crc;
      op.done = [progress](const weir::Result<client::ObjectOutcome>& outcome) {
        const std::lock_guard lock(progress->mutex);
        if (!outcome.ok() && progress->first.ok()) progress->first = outcome.status();
        if (--progress->left == 0) progress->done.notify_all();
      };
      io.Submit(std::move(op));
    }
  }
  std::unique_lock lock(progress->mutex);
  while (!progress->done.wait_for(lock, kTick, [&] { return progress->left == 0; })) {
    lock.unlock();
    io.Tick();
    lock.lock();
  }
  return progress->first;
}

}  // namespace weir::osdctl
