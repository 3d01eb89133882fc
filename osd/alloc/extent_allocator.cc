#include "osd/alloc/extent_allocator.h"

#include <algorithm>
#include <bit>

#include "common/base/check.h"

namespace weir::osd {
namespace {

constexpr uint32_t kGroup = 32768;
constexpr uint32_t kSmall = 16;                    // blocks; below: from the small cursor
constexpr size_t kShareRunsMax = size_t{1} << 20;  // some 64 MiB of memory

}  // namespace

ExtentAllocator::ExtentAllocator(uint32_t first, uint32_t blocks, Medium medium, uint32_t spare)
    : first_(first),
      blocks_(blocks),
      spare_(spare),
      medium_(medium),
      taken_((blocks + 63) / 64),
      group_free_((blocks + kGroup - 1) / kGroup, kGroup),
      free_(blocks),
      small_cursor_(blocks / 4 * 3) {
  if (blocks % kGroup != 0) group_free_.back() = blocks % kGroup;
  for (uint64_t i = blocks; i < taken_.size() * 64; ++i) taken_[i / 64] |= uint64_t{1} << (i % 64);
}

uint64_t ExtentAllocator::free_blocks() const {
  std::lock_guard lock(mutex_);
  return free_ - reserved_;
}

void ExtentAllocator::Mark(uint32_t start, uint32_t count, bool taken) {
  for (uint32_t i = start; i < start + count;) {
    const uint32_t bit = i % 64;
    const uint32_t n = std::min(64 - bit, start + count - i);
    const uint64_t mask = (n == 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1) << bit;
    uint64_t& word = taken_[i / 64];
    WEIR_CHECK((word & mask) == (taken ? 0 : mask), "a block is taken or freed twice");
    word ^= mask;
    group_free_[i / kGroup] += taken ? -n : n;
    i += n;
  }
  free_ += taken ? -uint64_t{count} : uint64_t{count};
}

bool ExtentAllocator::FindRunIn(uint32_t begin, uint32_t end, uint32_t least, uint32_t most,
                                Extent* run) const {
  uint32_t start = begin, length = 0;
  for (uint32_t i = begin; i < end;) {
    const uint32_t bit = i % 64;
    const uint64_t rest = taken_[i / 64] >> bit;
    if ((rest & 1) != 0) {  // skip the taken ones
      if (length >= least) break;
      length = 0;
      i += std::min<uint32_t>(std::countr_one(rest), 64 - bit);
      start = i;
      continue;
    }
    const uint32_t n = std::min<uint32_t>(rest == 0 ? 64 : std::countr_zero(rest), 64 - bit);
    length += n;
    i += n;
    if (length >= most) break;
  }
  length = std::min({length, most, end - std::min(start, end)});
  if (length < least || length == 0) return false;
  *run = {start, length};
  return true;
}

bool ExtentAllocator::FindRunUpTo(uint32_t end_group, uint32_t from, uint32_t least, uint32_t most,
                                  Extent* run) const {
  for (uint32_t group = from / kGroup; group < end_group; ++group) {
    if (group_free_[group] < least) continue;
    const uint32_t begin = group * kGroup;
    const uint32_t end = std::min(blocks_, begin + kGroup);
    if (FindRunIn(std::max(begin, from), end, least, most, run)) return true;
  }
  return false;
}

bool ExtentAllocator::FindRun(uint32_t from, uint32_t least, uint32_t most, Extent* run) const {
  const auto groups = static_cast<uint32_t>(group_free_.size());
  return FindRunUpTo(groups, from, least, most, run) ||
         FindRunUpTo(std::min(groups, from / kGroup + 1), 0, least, most, run);
}

bool ExtentAllocator::IsWorthReturning() const {
  uint64_t free = 0;
  for (uint32_t group = 0; group < swept_groups_; ++group) free += group_free_[group];
  const uint64_t all = uint64_t{swept_groups_} * kGroup;
  return medium_ == Medium::kPlatter ? free >= all / 4 * 3 : free >= all / 2;
}

bool ExtentAllocator::FindInSweep(uint32_t least, uint32_t most, Extent* run) {
  bool returned = false;
  while (!FindRunUpTo(swept_groups_, large_cursor_, least, most, run)) {
    if (!returned && IsWorthReturning()) {
      returned = true;
      large_cursor_ = 0;
    } else if (swept_groups_ < group_free_.size()) {
      large_cursor_ = swept_groups_++ * kGroup;
    } else {
      return false;
    }
  }
  return true;
}

Extent ExtentAllocator::Give(Extent run, uint32_t* cursor) {
  Mark(run.place, run.count, true);
  *cursor = run.place + run.count < blocks_ ? run.place + run.count : 0;
  return {first_ + run.place, run.count};
}

bool ExtentAllocator::HasRoom(uint32_t blocks, Claim claim) const {
  const uint32_t fresh = blocks - std::min(blocks, claim.reserved);
  const uint32_t instead = std::min(fresh, claim.spare);
  // Whoever adds something leaves the spare ones alone.
  const uint32_t untouched = fresh > instead ? spare_ - std::min(spare_, instead) : 0;
  return free_ >= reserved_ + fresh + untouched;
}

std::vector<Extent> ExtentAllocator::Allocate(uint32_t blocks, Claim claim) {
  std::lock_guard lock(mutex_);
  WEIR_CHECK(claim.reserved <= reserved_);
  std::vector<Extent> result;
  if (blocks == 0 || !HasRoom(blocks, claim)) return result;
  reserved_ -= claim.reserved;
  uint32_t left = blocks;
  Extent run;
  if (blocks >= kSmall) {
    const uint32_t part = medium_ == Medium::kPlatter ? std::max(kSmall, blocks / 8) : blocks;
    while (left > 0 && FindInSweep(std::min(part, left), left, &run)) {
      result.push_back(Give(run, &large_cursor_));
      left -= run.count;
    }
  }
  uint32_t& cursor = blocks < kSmall ? small_cursor_ : large_cursor_;
  // Whole, else in pieces of an eighth, else in whatever there is.
  uint32_t least = blocks;
  while (left > 0) {
    if (!FindRun(cursor, std::min(least, left), left, &run)) {
      WEIR_CHECK(least > 1, "the free count and the bitmap disagree");
      least = least == blocks ? std::max(1u, blocks / 8) : 1;
      continue;
    }
    result.push_back(Give(run, &cursor));
    left -= run.count;
  }
  return result;
}

void ExtentAllocator::Return(const std::vector<Extent>& extents, uint32_t reserved) {
  std::lock_guard lock(mutex_);
  for (const Extent& extent : extents) FreeLocked(extent);
  reserved_ += reserved;
}

bool ExtentAllocator::Reserve(uint32_t blocks, uint32_t of_spare) {
  std::lock_guard lock(mutex_);
  if (!HasRoom(blocks, {0, of_spare})) return false;
  reserved_ += blocks;
  return true;
}

void ExtentAllocator::Unreserve(uint32_t blocks) {
  std::lock_guard lock(mutex_);
  WEIR_CHECK(reserved_ >= blocks);
  reserved_ -= blocks;
}

uint32_t ExtentAllocator::AllocateReserved() {
  std::lock_guard lock(mutex_);
  WEIR_CHECK(reserved_ > 0);
  --reserved_;
  Extent run;
  WEIR_CHECK(FindRun(small_cursor_, 1, 1, &run), "a reserved block is gone");
  return Give(run, &small_cursor_).place;
}

bool ExtentAllocator::Take(Extent extent) {
  if (!Contains(extent)) return false;
  std::lock_guard lock(mutex_);
  const uint32_t start = extent.place - first_;
  for (uint32_t i = 0; i < extent.count; ++i) {
    if (IsTaken(start + i)) return false;
  }
  Mark(start, extent.count, true);
  return true;
}

void ExtentAllocator::Free(Extent extent) {
  std::lock_guard lock(mutex_);
  FreeLocked(extent);
}

void ExtentAllocator::FreeLocked(Extent extent) {
  for (const Extent& last : shares_.Remove(extent)) Mark(last.place - first_, last.count, false);
}

bool ExtentAllocator::Contains(Extent extent) const {
  return extent.place >= first_ && extent.place - first_ <= blocks_ &&
         extent.count <= blocks_ - (extent.place - first_);
}

bool ExtentAllocator::Share(const std::vector<Extent>& extents) {
  std::lock_guard lock(mutex_);
  if (shares_.runs() + 2 * extents.size() > kShareRunsMax) return false;
  for (const Extent& extent : extents) {
    for (uint32_t i = 0; i < extent.count; ++i) {
      WEIR_CHECK(IsTaken(extent.place - first_ + i), "a free block is shared");
    }
    shares_.Add(extent);
  }
  return true;
}

bool ExtentAllocator::IsShared(uint32_t place) const {
  std::lock_guard lock(mutex_);
  return shares_.IsShared(place);
}

uint64_t ExtentAllocator::shared_blocks() const {
  std::lock_guard lock(mutex_);
  return shares_.extra_blocks();
}

}  // namespace weir::osd
