// ExtentAllocator: which blocks of the data region are free. A pure object over a bitmap with a
// count per group of 32768 blocks (128 MiB), so that full groups are skipped.
//
// Large requests go on from where the last one ended (objects of a stream lie in a row). They sweep
// over a region that begins at the first block: at its end they return to the beginning if half of
// it is free, else it grows by a group. What is overwritten out of place again and again thus
// stays together: a head has short ways, an image does not grow to its full size. Small requests
// have a place of their own, so that they do not cut up the room of the large.
//
// For a disk with a head it matters more that what is written in a row lies in a row: it returns
// when three quarters are free, so that little of the last sweep is in its way (behind each piece
// that is, the head looks for its place anew), and what is cuts a request (into parts of an eighth
// of it at least) instead of making it skip free blocks.
//
// Blocks are also kept without a place: for data that waits for one, and for what was allocated and
// not written yet. `spare` blocks are never given for new data, only for the time in which data
// that is overwritten out of place takes twice its space.
//
// Freeing is immediate: the caller frees only what no durable record refers to any more. A block
// may have several references (copies of a file share it); it is free after as many calls of Free.
//
// Units:   blocks of kBlockSize, numbered from `first`.
// Threads: any; one mutex, held for microseconds.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "osd/alloc/share_counts.h"

namespace weir::osd {

class ExtentAllocator {
 public:
  enum class Medium { kFlash, kPlatter };
  ExtentAllocator(uint32_t first, uint32_t blocks, Medium medium = Medium::kFlash,
                  uint32_t spare = 0);

  // What a request has to itself: so many reserved blocks that it uses up, and so many of the spare
  // ones that it may take, since it frees as many when it is durable.
  struct Claim {
    uint32_t reserved = 0;
    uint32_t spare = 0;
  };
  // Exactly `blocks` blocks in as few extents as is cheap to find; empty when there is no room.
  [[nodiscard]] std::vector<Extent> Allocate(uint32_t blocks, Claim claim);
  [[nodiscard]] std::vector<Extent> Allocate(uint32_t blocks) { return Allocate(blocks, {0, 0}); }
  // Takes back an Allocate that used `reserved` blocks up: they are reserved again.
  void Return(const std::vector<Extent>& extents, uint32_t reserved);
  // One block that was reserved before: always succeeds.
  [[nodiscard]] uint32_t AllocateReserved();
  // Keeps blocks for a later AllocateReserved or Claim; false, with nothing kept, when there are
  // not so many.
  [[nodiscard]] bool Reserve(uint32_t blocks = 1, uint32_t of_spare = 0);
  void Unreserve(uint32_t blocks = 1);
  // Marks a range as taken while a store is opened; false if part of it is already, or lies
  // outside.
  [[nodiscard]] bool Take(Extent extent);
  // Requires: every block of it is taken.
  void Free(Extent extent);

  // One more reference to each block, which are taken already; false, with nothing changed, when
  // the list of shared blocks is so long that it should not grow.
  [[nodiscard]] bool Share(const std::vector<Extent>& extents);
  [[nodiscard]] bool IsShared(uint32_t place) const;
  [[nodiscard]] bool Contains(Extent extent) const;  // within the region
  // How many blocks more there would have to be if nothing were shared.
  [[nodiscard]] uint64_t shared_blocks() const;

  [[nodiscard]] uint64_t free_blocks() const;  // without the reserved ones, with the spare ones
  [[nodiscard]] uint64_t total_blocks() const { return blocks_; }
  [[nodiscard]] uint64_t spare_blocks() const { return spare_; }

 private:
  [[nodiscard]] bool IsTaken(uint32_t index) const {
    return (taken_[index / 64] >> (index % 64) & 1) != 0;
  }
  void Mark(uint32_t start, uint32_t count, bool taken);
  [[nodiscard]] bool HasRoom(uint32_t blocks, Claim claim) const;
  void FreeLocked(Extent extent);
  // A run of at least `least` blocks (cut at `most`) where the sweep is. False: none is left.
  bool FindInSweep(uint32_t least, uint32_t most, Extent* run);
  // Whether enough of the region of the sweep is free for another one.
  [[nodiscard]] bool IsWorthReturning() const;
  // Takes the run, moves the cursor behind it.
  Extent Give(Extent run, uint32_t* cursor);
  // The first free run of at least `least` blocks (cut at `most`) at or behind `from`, wrapping.
  bool FindRun(uint32_t from, uint32_t least, uint32_t most, Extent* run) const;
  bool FindRunUpTo(uint32_t end_group, uint32_t from, uint32_t least, uint32_t most,
                   Extent* run) const;
  bool FindRunIn(uint32_t begin, uint32_t end, uint32_t least, uint32_t most, Extent* run) const;

  mutable std::mutex mutex_;
  const uint32_t first_, blocks_, spare_;
  const Medium medium_;
  std::vector<uint64_t> taken_;
  std::vector<uint32_t> group_free_;
  ShareCounts shares_;
  uint64_t free_ = 0, reserved_ = 0;
  uint32_t large_cursor_ = 0, small_cursor_ = 0;
  uint32_t swept_groups_ = 0;  // the region of the sweep
};

}  // namespace weir::osd
