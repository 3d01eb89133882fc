#include "common/disk/block_device.h"

#include <algorithm>
#include <future>

namespace weir {
namespace {

// Runs an asynchronous call and waits for its Status.
template <typename Start>
Status Wait(Start start) {
  // Shared: the waiter may be gone before set_value returns.
  auto promise = std::make_shared<std::promise<Status>>();
  std::future<Status> future = promise->get_future();
  start([promise](Status status) { promise->set_value(std::move(status)); });
  return future.get();
}

}  // namespace

Status BlockDevice::Grow(uint64_t) {
  return {ErrorCode::kNotSupported, name() + ": only an image file can grow"};
}

Status BlockDevice::Check(uint64_t offset, const Buffer& buffer) const {
  if (offset % kBlockSize != 0 || buffer.size() % kBlockSize != 0 || !buffer.IsAligned()) {
    return {ErrorCode::kInvalid, name() + ": unaligned request of " +
                                     std::to_string(buffer.size()) + " bytes at " +
                                     std::to_string(offset)};
  }
  if (offset > size() || buffer.size() > size() - offset) {
    return {ErrorCode::kInvalid, name() + ": request of " + std::to_string(buffer.size()) +
                                     " bytes at " + std::to_string(offset) +
                                     " lies beyond its end " + std::to_string(size())};
  }
  return {};
}

Status BlockDevice::Count(Status status) {
  if (!status.ok()) ++counters_.errors;
  return status;
}

Status BlockDevice::CountWrite(Status status) {
  ++completed_writes_;
  return Count(std::move(status));
}

Status BlockDevice::CountFlush(Status status, uint64_t completed_before) {
  if (!status.ok()) flush_failed_ = true;
  uint64_t known = durable_writes_;
  while (!flush_failed_ && known < completed_before &&
         !durable_writes_.compare_exchange_weak(known, completed_before)) {
  }
  return Count(std::move(status));
}

void BlockDevice::ReadAsync(uint64_t offset, Buffer buffer, Done done) {
  if (Status status = Check(offset, buffer); !status.ok()) return done(Count(std::move(status)));
  counters_.reads.fetch_add(1, std::memory_order_relaxed);
  counters_.read_bytes.fetch_add(buffer.size(), std::memory_order_relaxed);
  DoRead(offset, std::move(buffer),
         [this, done = std::move(done)](Status status) { done(Count(std::move(status))); });
}

void BlockDevice::WriteAsync(uint64_t offset, Buffer buffer, Done done) {
  if (Status status = Check(offset, buffer); !status.ok()) return done(Count(std::move(status)));
  counters_.writes.fetch_add(1, std::memory_order_relaxed);
  counters_.write_bytes.fetch_add(buffer.size(), std::memory_order_relaxed);
  DoWrite(offset, std::move(buffer),
          [this, done = std::move(done)](Status status) { done(CountWrite(std::move(status))); });
}

void BlockDevice::FlushAsync(Done done) {
  counters_.flushes.fetch_add(1, std::memory_order_relaxed);
  DoFlush([this, before = completed_writes(), done = std::move(done)](Status status) {
    done(CountFlush(std::move(status), before));
  });
}

Status BlockDevice::Read(uint64_t offset, Buffer buffer) {
  if (Status status = Check(offset, buffer); !status.ok()) return Count(std::move(status));
  counters_.reads.fetch_add(1, std::memory_order_relaxed);
  counters_.read_bytes.fetch_add(buffer.size(), std::memory_order_relaxed);
  return Count(DoReadSync(offset, std::move(buffer)));
}

Status BlockDevice::Write(uint64_t offset, Buffer buffer) {
  if (Status status = Check(offset, buffer); !status.ok()) return Count(std::move(status));
  counters_.writes.fetch_add(1, std::memory_order_relaxed);
  counters_.write_bytes.fetch_add(buffer.size(), std::memory_order_relaxed);
  return CountWrite(DoWriteSync(offset, std::move(buffer)));
}

Status BlockDevice::Flush() {
  counters_.flushes.fetch_add(1, std::memory_order_relaxed);
  const uint64_t before = completed_writes();
  return CountFlush(DoFlushSync(), before);
}

Status BlockDevice::Discard(uint64_t offset, uint64_t length) {
  if (offset % kBlockSize != 0 || length % kBlockSize != 0 || offset > size() ||
      length > size() - offset) {
    return {ErrorCode::kInvalid, name() + ": cannot discard an unaligned or outside range"};
  }
  return Count(DoDiscard(offset, length));
}

Status BlockDevice::DoReadSync(uint64_t offset, Buffer buffer) {
  return Wait([&](Done done) { DoRead(offset, std::move(buffer), std::move(done)); });
}
Status BlockDevice::DoWriteSync(uint64_t offset, Buffer buffer) {
  return Wait([&](Done done) { DoWrite(offset, std::move(buffer), std::move(done)); });
}
Status BlockDevice::DoFlushSync() {
  return Wait([&](Done done) { DoFlush(std::move(done)); });
}

Status ZeroRange(BlockDevice& device, uint64_t offset, uint64_t length) {
  const Buffer zeros = Buffer::AlignedZeros(std::min<uint64_t>(length, 1 << 20));
  for (uint64_t done = 0; done < length; done += zeros.size()) {
    const uint64_t piece = std::min<uint64_t>(zeros.size(), length - done);
    WEIR_RETURN_IF_ERROR(device.Write(offset + done, zeros.Slice(0, piece)));
  }
  return {};
}

}  // namespace weir
