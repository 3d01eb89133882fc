#include "client/qos/osd_turns.h"

#include <algorithm>

#include "common/base/check.h"

namespace weir::client {

size_t NextOsdTurn(std::span<const OsdTurn> turns) {
  WEIR_CHECK(!turns.empty(), "nobody has a turn");
  const uint64_t least =
      std::min_element(turns.begin(), turns.end(), [](const OsdTurn& a, const OsdTurn& b) {
        return a.flying_bytes < b.flying_bytes;
      })->flying_bytes;
  const OsdTurn* next = nullptr;
  for (const OsdTurn& one : turns) {
    const bool slow = one.flying_bytes > 2 * (least + one.next_bytes);
    if (!slow && (next == nullptr || one.last <= next->last)) next = &one;
  }
  return static_cast<size_t>(next - turns.data());
}

}  // namespace weir::client
