// PiecewiseIo: the device requests of one large read or write, whole or in pieces.
//
// Unless the device is kept short (osd/qos/device), all of an operation goes to the device at once.
// When the scheduler wants pieces (Scheduler::Advise, by way of ObjectStore::SetPieceBytes), a
// round of at most one piece goes there, and the next one only when all of it is done, so that a
// small request of somebody else gets in between. The size is looked up before each round: an
// operation that was begun in pieces goes on whole when that is over. What is on the device already
// is not interrupted.
//
// Units:   bytes; offsets and lengths are multiples of kBlockSize.
// Threads: begins on the caller's; goes on, and calls `done`, on the device's completion thread.
// Errors:  after a failed request nothing more is issued; `done` gets its error once everything
//          that was issued has returned.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "common/disk/block_device.h"

namespace weir::osd {

class PiecewiseIo : public std::enable_shared_from_this<PiecewiseIo> {
 public:
  enum class Kind : uint8_t { kRead, kWrite };
  struct Range {
    uint64_t offset;  // on the device
    Buffer bytes;
  };

  // `done` exactly once, after everything has landed; inside the call if the device is that fast.
  // `device` and `piece_bytes` must outlive the operation. piece_bytes: UINT64_MAX: whole; others
  // are cut to whole blocks, at least one.
  static void Run(BlockDevice& device, Kind kind, std::vector<Range> ranges,
                  const std::atomic<uint64_t>& piece_bytes, BlockDevice::Done done);

  // What a piece of this size may hold: whole blocks, at least one.
  static uint64_t BytesPerPiece(uint64_t piece_bytes);

 private:
  PiecewiseIo(BlockDevice& device, Kind kind, std::vector<Range> ranges,
              const std::atomic<uint64_t>& piece_bytes, BlockDevice::Done done);
  // Issues rounds until one is still on the device. One thread at a time: the one that saw `left_`
  // fall to 0.
  void Go();
  void IssueRound();
  void Issue(uint64_t offset, Buffer bytes);
  // A request, or the issuing of a round, is done. True: the round is.
  bool Landed(Status status);

  BlockDevice& device_;
  const Kind kind_;
  const std::vector<Range> ranges_;
  const std::atomic<uint64_t>& piece_bytes_;
  BlockDevice::Done done_;
  size_t range_ = 0;  // the next byte to be issued is at `at_` in this range
  size_t at_ = 0;
  std::atomic<size_t> left_{0};  // requests of this round, and one while they are being issued
  std::mutex mutex_;
  Status failure_;  // the first one; guarded by mutex_ while requests are on the device
};

}  // namespace weir::osd
