#include "osd/qos/control/hit_window.h"

#include <algorithm>

#include "common/base/check.h"

namespace weir::osd::qos {

HitWindow::HitWindow(const Options& options, TimePoint now)
    : block_requests_(options.requests == 0 ? UINT64_MAX
                                            : std::max<uint64_t>(1, options.requests / kBlocks)),
      block_span_(options.span / static_cast<int64_t>(kBlocks)),
      span_(options.span),
      blocks_{{.end = now + block_span_}} {}

void HitWindow::DropOldest() {
  const Block& oldest = blocks_.front();
  if (oldest.total == total_) Remember();  // the last thing known is better than nothing
  for (size_t k = 0; k < kTiersMax; ++k) count_[k] -= oldest.count[k];
  total_ -= oldest.total;
  blocks_.pop_front();
}

void HitWindow::Remember() {
  if (total_ == 0) return;
  for (size_t k = 0; k < kTiersMax; ++k) {
    fractions_[k] = static_cast<double>(count_[k]) / static_cast<double>(total_);
  }
}

void HitWindow::Forget(TimePoint now) {
  while (!blocks_.empty() && blocks_.front().end + (span_ - block_span_) <= now) DropOldest();
}

void HitWindow::Add(size_t tier, TimePoint now) {
  WEIR_CHECK(tier < kTiersMax, "a tier that does not exist");
  Forget(now);
  if (blocks_.empty() || blocks_.back().total >= block_requests_ || blocks_.back().end <= now) {
    if (blocks_.size() == kBlocks) DropOldest();
    blocks_.push_back({.end = now + block_span_});
  }
  Block& block = blocks_.back();
  ++block.count[tier];
  ++block.total;
  ++count_[tier];
  ++total_;
}

const PerTier& HitWindow::Fractions(TimePoint now) {
  Forget(now);
  Remember();
  return fractions_;
}

}  // namespace weir::osd::qos
