// Throttles: what may hold surplus back although it is its class's turn. Each answers when it would
// let a request pass; the one with the latest answer is the one that blocks, and that `osdctl why`
// names. The class's own limit comes before them (a class at its limit is not in turn), room in
// the window and on the device behind them.
//
//   ceiling ─► [in turn] ─► root gate ─► bulk cap ─► window, device
//
// Pure. Units: bytes per second.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/base/time.h"

namespace weir::osd::qos {

// Why the head in turn does not go.
struct Blocked {
  enum class By : uint8_t { kNothing, kRoom, kRoot, kBulkCap };
  By by = By::kNothing;
  TimePoint until = TimePoint::Max();

  [[nodiscard]] bool by_rate() const { return by == By::kRoot || by == By::kBulkCap; }
};

// While the device is kept short, bulk passes the root in steps of this, as much as the bucket then
// covers: a few wake-ups instead of thousands, and between them the device and the processors are
// free for what is light. Nobody loses tokens, as the bucket holds 100 ms.
inline constexpr Duration kStep = std::chrono::milliseconds(2);

// BulkCap: surplus that is neither light nor of a class with a latency bound, all classes together,
// while the device is guarded. The rate is the governor's (control/bulk_governor.h).
class BulkCap {
 public:
  // Of what was not used while nobody asked.
  static constexpr Duration kSaved = std::chrono::milliseconds(2);

  // 0: none.
  void SetRate(uint64_t bytes_per_s, TimePoint now) {
    if (rate_ == 0) next_ = now;
    rate_ = bytes_per_s;
  }
  [[nodiscard]] uint64_t rate() const { return rate_; }
  [[nodiscard]] TimePoint PassesAt(TimePoint now) const {
    return rate_ == 0 ? now : std::max(next_, now);
  }
  // `counts`: the cap is in force.
  void Take(uint64_t bytes, bool counts, TimePoint now) {
    taken_ += bytes;
    if (!counts || rate_ == 0) return;
    next_ = std::max(next_, now - kSaved) +
            FromSeconds(static_cast<double>(bytes) / static_cast<double>(rate_));
  }
  // What passed since the beginning, capped or not.
  [[nodiscard]] uint64_t taken() const { return taken_; }

 private:
  uint64_t rate_ = 0;
  uint64_t taken_ = 0;
  TimePoint next_;  // when the next one may go
};

}  // namespace weir::osd::qos
