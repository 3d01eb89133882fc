// HitWindow: where a client's last requests went, as fractions of the tiers (BAA, FAST'14 §3.3,
// Algorithm 1 step 1). The window ends after so many requests or so much time, whichever is
// shorter (A32).
//
// It slides in blocks of a twentieth, so it costs O(1) per request and half a kilobyte per client;
// it covers between 19 and 20 twentieths of what was asked for. Threads: one owner. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <deque>

#include "common/base/time.h"
#include "osd/qos/control/tier_model.h"

namespace weir::osd::qos {

class HitWindow {
 public:
  struct Options {
    uint64_t requests = 1000;  // 0: only time bounds the window
    Duration span = std::chrono::seconds(60);
  };
  HitWindow(const Options& options, TimePoint now);

  // Requires: tier < kTiersMax.
  void Add(size_t tier, TimePoint now);

  // Requests in the window, after forgetting what is too old by now.
  uint64_t Samples(TimePoint now) {
    Forget(now);
    return total_;
  }
  // Fractions per tier of the requests in the window, or, when it is empty, those of the last time
  // it was not. Requires: Add was called.
  [[nodiscard]] const PerTier& Fractions(TimePoint now);

 private:
  static constexpr size_t kBlocks = 20;
  struct Block {
    std::array<uint32_t, kTiersMax> count{};
    uint32_t total = 0;
    TimePoint end{};  // a block holds what came before its end
  };

  void DropOldest();
  void Forget(TimePoint now);
  void Remember();

  uint64_t block_requests_;
  Duration block_span_;
  Duration span_;
  std::deque<Block> blocks_;  // the newest last
  std::array<uint64_t, kTiersMax> count_{};
  uint64_t total_ = 0;
  PerTier fractions_{};
};

}  // namespace weir::osd::qos
