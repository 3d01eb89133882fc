#include "osd/qos/control/hit_window.h"

#include <algorithm>

#include "common/base/check.h"

namespace weir::osd::qos {

HitWindow::HitWindow(const Options& options, TimePoint now)
    : block_requests_(options.requests == 0 ? UINT64_MAX
                                            : std::max<uint64_t>(1, options.requests / kBlocks)),
      block_span_(options.span / static_cast<int64_t>(kBlocks)),
      span_(options.span) {
  OpenBlock(now);
}

void HitWindow::OpenBlock(TimePoint now) {
  if (used_ == kBlocks) DropOldest();
  newest_ = (newest_ + 1) % kBlocks;
  ++used_;
  blocks_[newest_] = Block{.end = now + block_span_};
}

void HitWindow::DropOldest() {
  const Block& oldest = blocks_[(newest_ + kBlocks + 1 - used_) % kBlocks];
  if (oldest.total == total_) Remember();  // the last thing known is better than nothing
  for (size_t k = 0; k < kTiersMax; ++k) count_[k] -= oldest.count[k];
  total_ -= oldest.total;
  --used_;
}

void HitWindow::Remember() {
  if (total_ == 0) return;
  for (size_t k = 0; k < kTiersMax; ++k) {
    fractions_[k] = static_cast<double>(count_[k]) / static_cast<double>(total_);
  }
}

void HitWindow::Forget(TimePoint now) {
  while (used_ > 0) {
    const Block& oldest = blocks_[(newest_ + kBlocks + 1 - used_) % kBlocks];
    if (oldest.end + (span_ - block_span_) > now) return;
    DropOldest();
  }
}

void HitWindow::Add(size_t tier, TimePoint now) {
  WEIR_CHECK(tier < kTiersMax, "a tier that does not exist");
  Forget(now);
  const bool full =
      used_ > 0 && (blocks_[newest_].total >= block_requests_ || blocks_[newest_].end <= now);
  if (used_ == 0 || full) OpenBlock(now);
  Block& block = blocks_[newest_];
  ++block.count[tier];
  ++block.total;
  ++count_[tier];
  ++total_;
}

uint64_t HitWindow::Samples(TimePoint now) {
  Forget(now);
  return total_;
}

const PerTier& HitWindow::Fractions(TimePoint now) {
  Forget(now);
  Remember();
  return fractions_;
}

}  // namespace weir::osd::qos
