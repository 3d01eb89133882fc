#include "osd/store/piecewise_io.h"

#include <algorithm>
#include <utility>

namespace weir::osd {

void PiecewiseIo::Run(BlockDevice& device, Kind kind, std::vector<Range> ranges,
                      const std::atomic<uint64_t>& piece_bytes, BlockDevice::Done done) {
  const std::shared_ptr<PiecewiseIo> io(
      new PiecewiseIo(device, kind, std::move(ranges), piece_bytes, std::move(done)));
  io->Go();
}

PiecewiseIo::PiecewiseIo(BlockDevice& device, Kind kind, std::vector<Range> ranges,
                         const std::atomic<uint64_t>& piece_bytes, BlockDevice::Done done)
    : device_(device),
      kind_(kind),
      ranges_(std::move(ranges)),
      piece_bytes_(piece_bytes),
      done_(std::move(done)) {}

uint64_t PiecewiseIo::BytesPerPiece(uint64_t piece_bytes) {
  return std::max<uint64_t>(piece_bytes / kBlockSize, 1) * kBlockSize;
}

// A loop, not a recursion from the completions: a device may complete inside the call.
void PiecewiseIo::Go() {
  while (range_ < ranges_.size() && failure_.ok()) {
    left_ = 1;
    IssueRound();
    if (!Landed({})) return;
  }
  BlockDevice::Done done = std::move(done_);
  done(std::move(failure_));
}

// A round may span ranges: on a fragmented device a piece is many small requests at once.
void PiecewiseIo::IssueRound() {
  uint64_t room = BytesPerPiece(piece_bytes_.load(std::memory_order_relaxed));
  while (range_ < ranges_.size() && room > 0) {
    const Range& range = ranges_[range_];
    const uint64_t offset = range.offset + at_;
    Buffer bytes = range.bytes.Slice(at_, std::min<uint64_t>(range.bytes.size() - at_, room));
    room -= bytes.size();
    at_ += bytes.size();
    if (at_ == range.bytes.size()) {
      ++range_;
      at_ = 0;
    }
    Issue(offset, std::move(bytes));
  }
}

void PiecewiseIo::Issue(uint64_t offset, Buffer bytes) {
  ++left_;
  BlockDevice::Done landed = [io = shared_from_this()](Status status) {
    if (io->Landed(std::move(status))) io->Go();
  };
  if (kind_ == Kind::kRead) {
    device_.ReadAsync(offset, std::move(bytes), std::move(landed));
  } else {
    device_.WriteAsync(offset, std::move(bytes), std::move(landed));
  }
}

bool PiecewiseIo::Landed(Status status) {
  if (!status.ok()) {
    std::lock_guard lock(mutex_);
    if (failure_.ok()) failure_ = std::move(status);
  }
  return --left_ == 0;
}

}  // namespace weir::osd
