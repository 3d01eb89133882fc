// DiskEstimate: what the disk gives lately, and whether that is less than what was promised of it.
//
// Only a second in which the disk was what everybody waited for says how much it can do; of AQuA's
// three cases (bandwidth_maximizer.h) that is A < G. Such seconds are samples. One in which the
// depth was kept short for light requests, or the device run empty to see how long one takes alone,
// or in which too little was asked, still shows that the disk can do as much as it did, and counts
// while that is more than was thought.
//
// The unit is that of the promises: bytes, a small request being worth as many as admission books
// for one (SchedulerConfig::RequestUnit). So small requests do not look like a slow disk.
//
//   estimate    mean of the last 16 samples, give or take two standard errors
//   slow        five samples or more, and even with what may be missing
//               below 3/4 of the token rate G0, or below the sum of what is promised
//   slow ends   three seconds in a row gave 9/10 of G0 and all that is promised; or these became
//               less; or nothing was learned for ten minutes
//
// Pure. Units: bytes per second. Threads: the scheduler's owner.
#pragma once

#include <cstdint>
#include <deque>

#include "common/base/time.h"

namespace weir::osd::qos {

class DiskEstimate {
 public:
  static constexpr size_t kSamples = 16;
  static constexpr size_t kEnough = 5;
  static constexpr int kRecovered = 3;
  static constexpr Duration kForget = std::chrono::minutes(10);

  // What the disk is held to.
  struct Promise {
    uint64_t token_rate = 0;  // G0; 0: not known
    uint64_t promised = 0;    // to classes, of it
  };
  struct View {
    uint64_t bytes_per_s = 0;  // 0: not known
    uint64_t give_or_take = 0;
    uint32_t samples = 0;
    bool slow = false;
    uint64_t alarms = 0;  // how often it became slow
  };

  explicit DiskEstimate(TimePoint now) : second_start_(now), observed_(now) {}

  enum class State : uint8_t { kIdle, kShort, kLimits };
  // From now on the disk is what requests wait for; or also, but kept at a small depth.
  void Observe(State state, TimePoint now);
  // A request is done that is worth so many bytes.
  void Done(double worth) { worth_ += worth; }
  // Ends a second, or more.
  void CloseSecond(const Promise& promise, TimePoint now);

  [[nodiscard]] View Now() const;

 private:
  void Judge(const Promise& promise, double rate, TimePoint now);
  [[nodiscard]] double Mean() const;
  [[nodiscard]] double GiveOrTake() const;

  double worth_ = 0;  // of this second
  Duration limited_{0};
  TimePoint second_start_;
  TimePoint observed_;
  State state_ = State::kIdle;
  std::deque<double> samples_;
  TimePoint learned_;  // when the last one came
  int good_seconds_ = 0;
  bool slow_ = false;
  uint64_t alarms_ = 0;
};

}  // namespace weir::osd::qos
