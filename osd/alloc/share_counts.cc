#include "osd/alloc/share_counts.h"

#include <algorithm>
#include <iterator>

namespace weir::osd {

bool ShareCounts::IsShared(uint32_t place) const {
  const auto next = runs_.upper_bound(place);
  return next != runs_.begin() && place < std::prev(next)->second.end;
}

// Makes `place` the first block of a run if it lies in one.
void ShareCounts::SplitAt(uint32_t place) {
  const auto next = runs_.upper_bound(place);
  if (next == runs_.begin()) return;
  const auto run = std::prev(next);
  if (run->first == place || place >= run->second.end) return;
  runs_.emplace_hint(next, place, run->second);
  run->second.end = place;
}

void ShareCounts::JoinAround(uint32_t begin, uint32_t end) {
  auto run = runs_.lower_bound(begin);
  if (run != runs_.begin()) --run;
  while (run != runs_.end() && run->first <= end) {
    const auto next = std::next(run);
    if (next == runs_.end()) return;
    if (next->first != run->second.end || next->second.extra != run->second.extra) {
      run = next;
      continue;
    }
    run->second.end = next->second.end;
    runs_.erase(next);
  }
}

void ShareCounts::Add(Extent extent) {
  const uint32_t end = extent.place + extent.count;
  SplitAt(extent.place);
  SplitAt(end);
  for (uint32_t at = extent.place; at < end;) {
    const auto run = runs_.lower_bound(at);
    if (run != runs_.end() && run->first == at) {
      ++run->second.extra;
      at = run->second.end;
      continue;
    }
    const uint32_t gap_end = run == runs_.end() ? end : std::min(end, run->first);
    runs_.emplace_hint(run, at, Run{gap_end, 1});
    at = gap_end;
  }
  extra_ += extent.count;
  JoinAround(extent.place, end);
}

std::vector<Extent> ShareCounts::Remove(Extent extent) {
  const uint32_t end = extent.place + extent.count;
  std::vector<Extent> last;
  if (runs_.empty()) return {extent};
  SplitAt(extent.place);
  SplitAt(end);
  for (uint32_t at = extent.place; at < end;) {
    const auto run = runs_.lower_bound(at);
    if (run == runs_.end() || run->first != at) {
      const uint32_t gap_end = run == runs_.end() ? end : std::min(end, run->first);
      last.push_back({at, gap_end - at});
      at = gap_end;
      continue;
    }
    extra_ -= run->second.end - at;
    at = run->second.end;
    if (--run->second.extra == 0) runs_.erase(run);
  }
  JoinAround(extent.place, end);
  return last;
}

}  // namespace weir::osd
