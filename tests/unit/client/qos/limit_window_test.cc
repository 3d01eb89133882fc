#include "client/qos/limit_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <numeric>
#include <vector>

#include "common/base/prng.h"
#include "common/testing/seed.h"

namespace weir::client {
namespace {

using namespace std::chrono_literals;

constexpr OsdId kOsd{1};

LimitWindow Fresh(uint64_t bytes_per_s) {
  return {bytes_per_s, 0, TimePoint{0}};
}

TEST(LimitWindowTest, PacesWhatLeavesAndSavesUpALittle) {
  LimitWindow window = Fresh(1000);
  const TimePoint now = TimePoint{0} + 5s;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(window.Admits(kOsd, now)) << i;
    window.Sent(10, now);
  }
  EXPECT_TRUE(window.Admits(kOsd, now));
  window.Sent(10, now);
  EXPECT_FALSE(window.Admits(kOsd, now)) << "a fifth of a second's worth";
  EXPECT_EQ(window.AdmitsAt(), now + 10ms);
  EXPECT_TRUE(window.Admits(kOsd, now + 10ms));
}

TEST(LimitWindowTest, LetsASecondsWorthGoAndThenWhatTheSecondForgets) {
  LimitWindow window = Fresh(1000);  // 1005 in a second, and one request
  TimePoint now{0};
  std::vector<TimePoint> left;
  for (; now < TimePoint{0} + 1500ms; now += 1ms) {
    if (!window.Admits(kOsd, now)) continue;
    window.Sent(100, now);
    left.push_back(now);
  }
  ASSERT_EQ(left.size(), 11u);
  for (size_t i = 0; i < 11; ++i) {
    window.Answered(100, left[i], now + static_cast<int64_t>(i) * 10ms);
  }
  EXPECT_FALSE(window.Admits(kOsd, now + 999ms));
  EXPECT_EQ(window.AdmitsAt(), now + 1s);
  EXPECT_TRUE(window.Admits(kOsd, now + 1s));
  window.Sent(100, now + 1s);
  EXPECT_FALSE(window.Admits(kOsd, now + 1s));
  EXPECT_EQ(window.AdmitsAt(), now + 1010ms);
}

// A request that leaves now is answered in 40 ms at the soonest, of which three quarters count.
TEST(LimitWindowTest, AnswersThatWillBeOverWhenItsOwnComesDoNotCount) {
  LimitWindow window = Fresh(1000);
  const TimePoint later = TimePoint{0} + 5s;
  for (int i = 0; i < 11; ++i) window.Sent(100, later - 1s);
  for (int i = 0; i < 11; ++i) window.Answered(100, later - 1s, later);
  for (int i = 0; i < 20; ++i) window.Took(kOsd, 40ms, later + i * 40ms);
  EXPECT_FALSE(window.Admits(kOsd, later + 969ms));
  EXPECT_EQ(window.AdmitsAt(), later + 970ms);
  EXPECT_FALSE(window.Admits(OsdId(2), later + 970ms)) << "of which nothing is known";
  EXPECT_TRUE(window.Admits(kOsd, later + 970ms));
  window.Took(kOsd, 20ms, later + 970ms);
  EXPECT_FALSE(window.Admits(kOsd, later + 970ms)) << "it may be answered sooner than was known";
  EXPECT_EQ(window.AdmitsAt(), later + 985ms);
  EXPECT_TRUE(window.Admits(kOsd, later + 985ms));
}

TEST(LimitWindowTest, WhatFailedWasNotServed) {
  LimitWindow window(1000, 2000, TimePoint{5});  // it had so much under way when the limit came
  EXPECT_FALSE(window.Admits(kOsd, TimePoint{5}));
  window.Failed(1500, TimePoint{3});
  EXPECT_TRUE(window.Admits(kOsd, TimePoint{5}));
}

TEST(LimitWindowTest, AChangedLimitHoldsFromNowOn) {
  LimitWindow window = Fresh(1000);
  window.Sent(2000, TimePoint{0});
  EXPECT_FALSE(window.Admits(kOsd, TimePoint{0}));
  window.SetRate(4000, TimePoint{0});
  EXPECT_FALSE(window.Admits(kOsd, TimePoint{0}));
  EXPECT_EQ(window.AdmitsAt(), TimePoint{0} + 500ms) << "its pace, too";
  EXPECT_TRUE(window.Admits(kOsd, TimePoint{0} + 500ms));
  window.SetRate(1000, TimePoint{0} + 500ms);
  EXPECT_FALSE(window.Admits(kOsd, TimePoint{0} + 500ms));
}

TEST(LimitWindowTest, WhoseLimitIsLoweredGoesOnAtTheNewOneWithoutAStandstill) {
  LimitWindow window = Fresh(10'000);
  TimePoint now{0};
  for (int i = 0; i < 100; ++i, now += 10ms) {
    ASSERT_TRUE(window.Admits(kOsd, now));
    window.Sent(100, now);
    window.Answered(100, now, now);
  }
  window.SetRate(1000, now);
  int sent = 0;
  for (int i = 0; i < 50; ++i, now += 10ms) {
    if (!window.Admits(kOsd, now)) continue;
    ++sent;
    window.Sent(100, now);
    window.Answered(100, now, now);
  }
  EXPECT_NEAR(sent, 5, 1) << "in half a second";
}

// Goal: two mounts between which parts move are answered no more than the limit in any second.
TEST(LimitWindowTest, AnotherPartHoldsAsIfItHadHeldBefore) {
  LimitWindow window = Fresh(1000);
  TimePoint now{0};
  const auto send = [&](uint64_t bytes) {
    window.Sent(bytes, now);
    window.Answered(bytes, now, now);
  };
  for (int i = 0; i < 10; ++i, now += 100ms) send(100);
  window.SetRate(2000, now);
  send(100);
  uint64_t sent = 100;
  while (window.Admits(kOsd, now)) {
    send(100);
    sent += 100;
  }
  EXPECT_LE(sent, 400u) << "a tenth of a second's worth and what is over, not half a second's";
}

// Prevents: a mount with a tiny part stands still for up to a second when it gets a good one, as
// what was one large request is counted as if it had been so many times as large.
TEST(LimitWindowTest, APartThatGrowsFromTinyBeginsAtOnce) {
  constexpr uint64_t kBytes = 64 << 10, kRate = 10 << 20;
  for (const Duration after : {Duration(1ms), Duration(50ms), Duration(400ms)}) {
    LimitWindow window = Fresh(2 << 10);
    TimePoint now{0};
    window.Sent(kBytes, now);
    window.Answered(kBytes, now, now);
    now += after;
    window.SetRate(kRate / 2, now);
    now += 10ms;
    window.SetRate(kRate, now);
    const TimePoint grown = now;
    uint64_t sent = 0;
    std::array<uint64_t, 20> by_tenth{};
    for (; now < grown + 2s; now += 1ms) {
      while (window.Admits(kOsd, now)) {
        window.Sent(kBytes, now);
        window.Answered(kBytes, now, now);
        sent += kBytes;
        by_tenth[static_cast<size_t>((now - grown) / 100ms)] += kBytes;
      }
    }
    EXPECT_GE(by_tenth[0], kRate / 10 - kBytes) << after.count();
    for (size_t i = 0; i + 10 < by_tenth.size(); ++i) {
      const uint64_t second = std::accumulate(&by_tenth[i], &by_tenth[i] + 10, uint64_t{0});
      EXPECT_LE(second, kRate + kRate / 200 + kBytes) << after.count() << ", tenth " << i;
      EXPECT_GE(second, kRate * 97 / 100) << after.count() << ", tenth " << i;
    }
  }
}

// Nor does a part that was none for a moment make it forget.
TEST(LimitWindowTest, WhoHasNothingSendsOneRequestASecondAndKeepsCount) {
  LimitWindow window = Fresh(1000);
  TimePoint now{0};
  for (int i = 0; i < 10; ++i, now += 100ms) {
    window.Sent(100, now);
    window.Answered(100, now, now);
  }
  window.SetRate(0, now);
  EXPECT_FALSE(window.Admits(kOsd, now));
  window.SetRate(1000, now);
  int sent = 0;
  for (; window.Admits(kOsd, now); ++sent) window.Sent(100, now);
  EXPECT_LE(sent, 1);
  window.SetRate(0, now);
  now += 10s;
  ASSERT_TRUE(window.Admits(kOsd, now));
  window.Sent(100, now);
  window.Answered(100, now, now);
  EXPECT_FALSE(window.Admits(kOsd, now + 900ms));
  EXPECT_TRUE(window.Admits(kOsd, now + 1s));
}

TEST(LimitWindowTest, ARequestLargerThanTheLimitGoesWhenNothingElseDoes) {
  LimitWindow window = Fresh(10);
  EXPECT_TRUE(window.Admits(kOsd, TimePoint{0}));
  window.Sent(1000, TimePoint{0});
  EXPECT_FALSE(window.Admits(kOsd, TimePoint{0}));
  window.Answered(1000, TimePoint{0}, TimePoint{0});
  EXPECT_EQ(window.AdmitsAt(), TimePoint{0} + 100s) << "which it is worth";
}

TEST(LimitWindowTest, AnOsdThatAnswersNothingHoldsUpTheOthersForTwoSeconds) {
  LimitWindow window = Fresh(1000);
  const TimePoint left{1000};
  window.Sent(600, left);
  window.Sent(600, left + 100ms);
  EXPECT_FALSE(window.Admits(kOsd, left + 100ms));
  EXPECT_EQ(window.AdmitsAt(), left + 2s);
  EXPECT_TRUE(window.Admits(kOsd, left + 2s));
  window.Sent(600, left + 2s);
  EXPECT_FALSE(window.Admits(kOsd, left + 2s));
  window.Answered(600, left, left + 2s);  // it is back, and answers
  EXPECT_FALSE(window.Admits(kOsd, left + 2s + 500ms)) << "600 each answered and under way";
  window.Failed(600, left + 2s);
  EXPECT_TRUE(window.Admits(kOsd, left + 2s + 500ms));
  EXPECT_TRUE(window.Admits(kOsd, left + 10s));
  window.Sent(900, left + 10s);
  EXPECT_TRUE(window.Admits(kOsd, left + 12s));
  window.Sent(1100, left + 12s);
  window.Failed(900, left + 10s);  // counts no more since it is overdue
  EXPECT_FALSE(window.Admits(kOsd, left + 12s));
}

// A mount in virtual time that keeps some requests under way or waiting, of a class whose OSDs hold
// no limit at all.
class Mount {
 public:
  static constexpr uint64_t kLimit = 4 << 20, kBytes = 16 << 10;
  struct Answer {
    Duration after;
    Duration held{0};  // of it, for the limit
  };
  using Latency = std::function<Answer(OsdId osd, TimePoint now)>;
  using Route = std::function<OsdId()>;

  explicit Mount(
      Latency latency, Route route = [] { return kOsd; })
      : latency_(std::move(latency)), route_(std::move(route)), next_(route_()) {}

  void At(TimePoint when, std::function<void()> action) {
    events_.emplace(when, std::move(action));
  }
  // Requests that are asked for again whenever they are answered.
  void Ask(int count) {
    waiting_ += count;
    Send();
  }
  // Everything at once is answered at once, every second anew, and says little of latencies.
  void AskSlowly() {
    for (int i = 0; i < 500; ++i) {
      At(TimePoint{0} + i * 2ms, [this] { Ask(1); });
    }
  }
  void AskOnce(int count) {
    once_ += count;
    Ask(count);
  }
  void StopAsking() {
    waiting_ = 0;
    once_ = flying_;
  }
  void RunTo(TimePoint end) {
    while (!events_.empty() && events_.begin()->first <= end) {
      const auto event = events_.extract(events_.begin());
      now_ = event.key();
      event.mapped()();
    }
    now_ = end;
  }

  [[nodiscard]] TimePoint now() const { return now_; }
  [[nodiscard]] int flying() const { return flying_; }
  [[nodiscard]] int waiting() const { return waiting_; }
  [[nodiscard]] Duration longest_held() const { return longest_held_; }
  // Of any second, in limits.
  [[nodiscard]] double Most() const {
    size_t last = 0, most = 0;
    for (size_t first = 0; first < answers_.size(); ++first) {
      while (last < answers_.size() && answers_[last] < answers_[first] + 1s) ++last;
      most = std::max(most, last - first);
    }
    return static_cast<double>(most * kBytes) / kLimit;
  }
  // Answered in [from, to), in limits.
  [[nodiscard]] double Share(TimePoint from, TimePoint to) const {
    const auto count = std::lower_bound(answers_.begin(), answers_.end(), to) -
                       std::lower_bound(answers_.begin(), answers_.end(), from);
    return static_cast<double>(count) * kBytes / (ToSeconds(to - from) * kLimit);
  }

 private:
  void Send() {
    GiveAnswers();
    while (waiting_ > 0 && window_.Admits(next_, now_)) {
      --waiting_;
      ++flying_;
      window_.Sent(kBytes, now_);
      const Answer answer = latency_(next_, now_);
      At(now_ + answer.after,
         [this, osd = next_, left = now_, answer] { Back(osd, left, answer); });
      next_ = route_();
    }
    if (waiting_ == 0 && held_.empty()) return;
    TimePoint next = waiting_ > 0 ? window_.AdmitsAt() : TimePoint::Max();
    if (!held_.empty()) next = std::min(next, window_.AdmitsAnswerAt(held_.front().arrived));
    ASSERT_GT(next, now_);
    if (wakes_at_ > now_ && wakes_at_ <= next) return;
    wakes_at_ = next;
    At(next, [this] { Send(); });
  }
  void Back(OsdId osd, TimePoint left, const Answer& answer) {
    window_.Took(osd, now_ - left - answer.held, now_);
    held_.push_back({left, now_});
    Send();
  }
  void GiveAnswers() {
    for (; !held_.empty() && window_.AdmitsAnswer(held_.front().arrived, now_); held_.pop_front()) {
      longest_held_ = std::max(longest_held_, now_ - held_.front().arrived);
      --flying_;
      window_.Answered(kBytes, held_.front().left, now_);
      answers_.push_back(now_);
      once_ > 0 ? --once_ : ++waiting_;
    }
  }

  Latency latency_;
  Route route_;
  OsdId next_;
  LimitWindow window_ = Fresh(kLimit);
  TimePoint now_{0}, wakes_at_{0};
  std::multimap<TimePoint, std::function<void()>> events_;
  struct Held {
    TimePoint left, arrived;
  };
  std::deque<Held> held_;
  Duration longest_held_{0};
  std::vector<TimePoint> answers_;  // that were given
  int waiting_ = 0, flying_ = 0;
  int once_ = 0;  // so many answers bring no new request
};

constexpr double kOneMore = static_cast<double>(Mount::kBytes) / Mount::kLimit;
constexpr double kMost = 1.005 + kOneMore;

Duration UpTo(Prng* prng, Duration most) {
  return Duration(static_cast<int64_t>(prng->Uniform(0, static_cast<uint64_t>(most.count()))));
}

// Goal: what is under way takes nothing of the limit when latencies are steady.
TEST(LimitWindowTest, ASteadyLatencyTakesNothing) {
  for (const Duration latency : {Duration(0), Duration(1ms), Duration(20ms), Duration(50ms)}) {
    Mount mount([latency](OsdId, TimePoint) { return Mount::Answer{latency}; });
    mount.AskSlowly();
    mount.RunTo(TimePoint{0} + 20s);
    EXPECT_GE(mount.Share(TimePoint{0} + 2s, mount.now()), 0.99) << latency.count();
    EXPECT_LE(mount.Most(), kMost) << latency.count();
  }
}

// Goal: however late, bunched or from whichever OSD answers come, and however the class begins,
// pauses and moves, no second has more than the limit, a two-hundredth and one request.
// Method: three OSDs, each with a least latency of its own, that vary, and stand still now and then
// to answer all that came meanwhile at once; the class asks other OSDs and in other numbers every
// few seconds.
TEST(LimitWindowTest, NoSecondOfAnswersHasMore) {
  struct Osd {
    Duration least, spread, stall;
    TimePoint stalls_at, stalled_until;
  };
  Prng prng(weir::testing::TestSeed());
  for (int run = 0; run < 40; ++run) {
    std::array<Osd, 3> osds{};
    for (Osd& osd : osds) osd.least = UpTo(&prng, prng.Chance(0.5) ? 2ms : 60ms);
    unsigned asked = 7;
    const auto move = [&] {
      asked = static_cast<unsigned>(prng.Uniform(1, 7));
      for (Osd& osd : osds) {
        osd.spread = UpTo(&prng, 40ms);
        osd.stall = UpTo(&prng, prng.Chance(0.5) ? 10ms : 150ms);
      }
    };
    const auto latency = [&](OsdId id, TimePoint now) {
      Osd& osd = osds[id.value];
      if (now >= osd.stalls_at) {
        osd.stalled_until = now + UpTo(&prng, osd.stall);
        osd.stalls_at = now + UpTo(&prng, 500ms);
      }
      const TimePoint when = now + osd.least + UpTo(&prng, osd.spread);
      return Mount::Answer{std::max(when, osd.stalled_until) - now};
    };
    const auto route = [&] {
      auto osd = static_cast<uint32_t>(prng.Uniform(0, 2));
      while ((asked >> osd & 1) == 0) osd = (osd + 1) % 3;
      return OsdId(osd);
    };
    Mount mount(latency, route);
    TimePoint next{0};
    for (int phase = 0; phase < 10; ++phase) {
      mount.At(next, [&] {
        move();
        mount.StopAsking();
        if (prng.Chance(0.8)) mount.Ask(static_cast<int>(prng.Uniform(1, 600)));
      });
      next += 50ms + UpTo(&prng, 6s);
    }
    mount.RunTo(next);
    EXPECT_LE(mount.Most(), kMost) << "run " << run;
  }
}

// A queue at an OSD that ends answers all that stood in it at once, sooner than was counted on:
// what the second has no room for is held back, but never for longer than was counted on.
TEST(LimitWindowTest, ALatencyThatFallsLetsNothingPass) {
  for (const Duration low : {Duration(1ms), Duration(15ms), Duration(25ms), Duration(40ms)}) {
    Duration latency = 50ms;
    Mount mount([&latency](OsdId, TimePoint) { return Mount::Answer{latency}; });
    mount.AskSlowly();
    for (int i = 1; i < 8; ++i) {
      mount.RunTo(TimePoint{0} + i * 3s + 7ms);
      latency = i % 2 == 0 ? Duration(50ms) : low;
    }
    mount.RunTo(TimePoint{0} + 60s);
    EXPECT_LE(mount.Most(), kMost) << low.count();
    EXPECT_LE(mount.longest_held(), 38ms) << "three quarters of the latency";
    EXPECT_GE(mount.Share(TimePoint{0} + 40s, mount.now()), 0.99) << "which it forgets";
  }
}

// Goal: who lost his part has the answers to what he had asked for soon.
TEST(LimitWindowTest, NoAnswerIsHeldForLongerThanAQuarterOfASecond) {
  LimitWindow window = Fresh(1000);
  const TimePoint now{0};
  window.Sent(100, now);
  window.Answered(100, now, now);
  window.Sent(100, now);
  window.SetRate(0, now);
  EXPECT_FALSE(window.AdmitsAnswer(now + 10ms, now + 10ms));
  EXPECT_EQ(window.AdmitsAnswerAt(now + 10ms), now + 260ms);
  EXPECT_TRUE(window.AdmitsAnswer(now + 10ms, now + 260ms));
  EXPECT_EQ(window.AdmitsAnswerAt(now + 900ms), now + 1s) << "nothing was answered for a second";
}

// Goal: OSDs that hold the limit to the byte do not collect what the mount lets go beyond it.
TEST(LimitWindowTest, WhatWaitsAtTheOsdsForTheLimitDoesNotGrow) {
  TimePoint free{0};
  Mount mount([&free](OsdId, TimePoint now) {
    const TimePoint arrives = now + 5ms;
    free =
        std::max(free, arrives) + FromSeconds(static_cast<double>(Mount::kBytes) / Mount::kLimit);
    return Mount::Answer{free - now, free - arrives};
  });
  mount.Ask(1000);
  mount.RunTo(TimePoint{0} + 120s);
  EXPECT_LE(mount.flying() * kOneMore, 0.02) << "of a second";
  EXPECT_GE(mount.Share(TimePoint{0} + 2s, mount.now()), 0.999);
}

// Goal: whoever asks for less than the limit is never delayed, at whatever latency.
TEST(LimitWindowTest, WhoAsksForLessNeverWaits) {
  Prng prng(weir::testing::TestSeed());
  const Duration gap = FromSeconds(static_cast<double>(Mount::kBytes) / (0.95 * Mount::kLimit));
  for (const Duration latency : {Duration(1ms), Duration(50ms), Duration(200ms)}) {
    Mount mount([&](OsdId, TimePoint) { return Mount::Answer{latency + UpTo(&prng, 5ms)}; });
    int delayed = 0;
    TimePoint when{0};
    for (; when < TimePoint{0} + 10s; when += gap) {
      mount.At(when, [&] {
        mount.AskOnce(1);
        if (mount.now() > TimePoint{0} + 2s) delayed += mount.waiting();
      });
    }
    mount.RunTo(when);
    EXPECT_EQ(delayed, 0) << latency.count();
  }
}

}  // namespace
}  // namespace weir::client
