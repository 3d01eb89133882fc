#include "common/disk/faulty_device.h"

#include <algorithm>

#include "common/base/prng.h"

namespace weir {
namespace {

constexpr size_t kSector = 512;
constexpr size_t kVersionsMax = 4;  // per block; more only cost memory

}  // namespace

FaultyDevice::FaultyDevice(std::unique_ptr<MemDevice> medium) : medium_(std::move(medium)) {}

void FaultyDevice::PowerLossAt(uint64_t nth) {
  std::lock_guard lock(mutex_);
  power_loss_at_ = mutations_ + nth;
}

bool FaultyDevice::powerless() const {
  std::lock_guard lock(mutex_);
  return powerless_;
}

uint64_t FaultyDevice::mutations() const {
  std::lock_guard lock(mutex_);
  return mutations_;
}

void FaultyDevice::IgnoreFlushes(bool ignore) {
  std::lock_guard lock(mutex_);
  ignore_flushes_ = ignore;
}

void FaultyDevice::FailAt(uint64_t nth, uint64_t period) {
  std::lock_guard lock(mutex_);
  fail_at_ = requests_ + nth;
  fail_period_ = period;
}

void FaultyDevice::ClearFaults() {
  std::lock_guard lock(mutex_);
  fail_at_ = power_loss_at_ = UINT64_MAX;
  ignore_flushes_ = false;
}

void FaultyDevice::PowerOn(uint64_t seed) {
  std::lock_guard lock(mutex_);
  Prng prng(seed);
  for (auto& [block, versions] : unflushed_) {
    Buffer result = Buffer::Aligned(kBlockSize);
    const size_t last = versions.size() - 1;
    const size_t base = prng.Uniform(0, last);
    std::memcpy(result.data(), versions[base].data(), kBlockSize);
    if (prng.Chance(0.25)) {
      for (size_t at = 0; at < kBlockSize; at += kSector) {
        std::memcpy(result.data() + at, versions[prng.Uniform(0, last)].data() + at, kSector);
      }
    }
    WEIR_CHECK(medium_->Write(block * kBlockSize, result).ok());
  }
  unflushed_.clear();
  powerless_ = ignore_flushes_ = false;
  fail_at_ = power_loss_at_ = UINT64_MAX;
}

void FaultyDevice::FlipBits(uint64_t offset, uint8_t mask) {
  std::lock_guard lock(mutex_);
  const uint64_t start = offset / kBlockSize * kBlockSize;
  Buffer block = Buffer::Aligned(kBlockSize);
  WEIR_CHECK(medium_->Read(start, block).ok());
  block.data()[offset - start] ^= mask;
  WEIR_CHECK(medium_->Write(start, block).ok());
}

void FaultyDevice::Stall() {
  std::lock_guard lock(mutex_);
  stalling_ = true;
}

size_t FaultyDevice::stalled() const {
  std::lock_guard lock(mutex_);
  return stalled_.size();
}

void FaultyDevice::ReleaseStalled() {
  std::vector<std::function<void()>> waiting;
  {
    std::lock_guard lock(mutex_);
    stalling_ = false;
    waiting.swap(stalled_);
  }
  for (auto& run : waiting) run();
}

bool FaultyDevice::StallThis(std::function<void()> run) {
  std::lock_guard lock(mutex_);
  if (!stalling_) return false;
  stalled_.push_back(std::move(run));
  return true;
}

Status FaultyDevice::Admit(bool mutation) {
  const uint64_t request = requests_++;
  if (mutation && mutations_++ >= power_loss_at_) powerless_ = true;
  if (powerless_) return {ErrorCode::kIo, name() + ": no power"};
  if (request >= fail_at_ &&
      (request == fail_at_ || (fail_period_ != 0 && (request - fail_at_) % fail_period_ == 0))) {
    return {ErrorCode::kIo, name() + ": injected error"};
  }
  return {};
}

Status FaultyDevice::ReadMedium(uint64_t offset, const Buffer& buffer) {
  std::lock_guard lock(mutex_);
  WEIR_RETURN_IF_ERROR(Admit(false));
  return medium_->Read(offset, buffer);
}

Status FaultyDevice::ApplyWrite(uint64_t offset, const Buffer& buffer) {
  std::lock_guard lock(mutex_);
  WEIR_RETURN_IF_ERROR(Admit(true));
  for (size_t at = 0; at < buffer.size(); at += kBlockSize) {
    std::vector<Block>& versions = unflushed_[(offset + at) / kBlockSize];
    if (versions.empty()) {
      Buffer old = Buffer::Aligned(kBlockSize);
      WEIR_RETURN_IF_ERROR(medium_->Read(offset + at, old));
      std::memcpy(versions.emplace_back().data(), old.data(), kBlockSize);
    }
    if (versions.size() == kVersionsMax) versions.erase(versions.begin() + 1);
    std::memcpy(versions.emplace_back().data(), buffer.data() + at, kBlockSize);
  }
  return medium_->Write(offset, buffer);
}

Status FaultyDevice::ApplyFlush() {
  std::lock_guard lock(mutex_);
  WEIR_RETURN_IF_ERROR(Admit(true));
  if (!ignore_flushes_) unflushed_.clear();
  return {};
}

Status FaultyDevice::Grow(uint64_t size) {
  const std::lock_guard lock(mutex_);
  WEIR_RETURN_IF_ERROR(Admit(true));
  return medium_->Grow(size);
}

void FaultyDevice::DoRead(uint64_t offset, Buffer buffer, Done done) {
  auto run = [this, offset, buffer, done] { done(ReadMedium(offset, buffer)); };
  if (!StallThis(run)) run();
}

void FaultyDevice::DoWrite(uint64_t offset, Buffer buffer, Done done) {
  auto run = [this, offset, buffer, done] { done(ApplyWrite(offset, buffer)); };
  if (!StallThis(run)) run();
}

void FaultyDevice::DoFlush(Done done) {
  auto run = [this, done] { done(ApplyFlush()); };
  if (!StallThis(run)) run();
}

}  // namespace weir
