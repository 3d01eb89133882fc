#include "common/disk/scratch_device.h"

#include <algorithm>
#include <mutex>

namespace weir {

bool ScratchDevice::ReadHere(uint64_t offset, const Buffer& buffer, Status* status) {
  const std::shared_lock lock(mutex_);
  if (kept_) return false;
  const uint64_t there = std::clamp(below_.size(), offset, offset + buffer.size()) - offset;
  std::memset(buffer.data() + there, 0, buffer.size() - there);
  if (there > 0) *status = below_.Read(offset, buffer.Slice(0, there));
  if (!status->ok()) return true;
  const uint64_t end = (offset + buffer.size()) / kBlockSize;
  for (auto it = written_.lower_bound(offset / kBlockSize); it != written_.end() && it->first < end;
       ++it) {
    std::memcpy(buffer.data() + (it->first * kBlockSize - offset), it->second.data(), kBlockSize);
  }
  return true;
}

bool ScratchDevice::NoteStep(Step step) {
  const std::unique_lock lock(mutex_);
  if (kept_) return false;
  if (step.kind == Step::kGrow) size_ = std::max(size_.load(), step.offset);
  if (step.kind == Step::kWrite) {
    const Buffer copy = Buffer::Aligned(step.buffer.size());  // the caller's is the caller's again
    std::memcpy(copy.data(), step.buffer.data(), copy.size());
    for (size_t at = 0; at < copy.size(); at += kBlockSize) {
      written_[(step.offset + at) / kBlockSize] = copy.Slice(at, kBlockSize);
    }
    step.buffer = copy;
  }
  steps_.push_back(std::move(step));
  return true;
}

Status ScratchDevice::Keep() {
  const std::unique_lock lock(mutex_);
  for (const Step& step : steps_) {
    switch (step.kind) {
      case Step::kWrite:
        WEIR_RETURN_IF_ERROR(below_.Write(step.offset, step.buffer));
        break;
      case Step::kFlush:
        WEIR_RETURN_IF_ERROR(below_.Flush());
        break;
      case Step::kGrow:
        WEIR_RETURN_IF_ERROR(below_.Grow(step.offset));
        break;
    }
  }
  steps_.clear();
  written_.clear();
  kept_ = true;
  return {};
}

Status ScratchDevice::Grow(uint64_t size) {
  if (!below_.is_image()) return BlockDevice::Grow(size);
  return NoteStep({Step::kGrow, size, {}}) ? Status() : below_.Grow(size);
}

Status ScratchDevice::DoReadSync(uint64_t offset, Buffer buffer) {
  Status status;
  if (!kept_ && ReadHere(offset, buffer, &status)) return status;
  return below_.Read(offset, std::move(buffer));
}

Status ScratchDevice::DoWriteSync(uint64_t offset, Buffer buffer) {
  if (!kept_ && NoteStep({Step::kWrite, offset, buffer})) return {};
  return below_.Write(offset, std::move(buffer));
}

Status ScratchDevice::DoFlushSync() {
  if (!kept_ && NoteStep({Step::kFlush, 0, {}})) return {};
  return below_.Flush();
}

void ScratchDevice::DoRead(uint64_t offset, Buffer buffer, Done done) {
  if (kept_) return below_.ReadAsync(offset, std::move(buffer), std::move(done));
  done(DoReadSync(offset, std::move(buffer)));
}

void ScratchDevice::DoWrite(uint64_t offset, Buffer buffer, Done done) {
  if (kept_) return below_.WriteAsync(offset, std::move(buffer), std::move(done));
  done(DoWriteSync(offset, std::move(buffer)));
}

void ScratchDevice::DoFlush(Done done) {
  if (kept_) return below_.FlushAsync(std::move(done));
  done(DoFlushSync());
}

Status ScratchDevice::DoDiscard(uint64_t offset, uint64_t length) {
  return kept_ ? below_.Discard(offset, length) : Status();
}

}  // namespace weir
