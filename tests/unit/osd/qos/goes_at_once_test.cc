// Property: a request of which GoesAtOnce says so is what the Pull of that time gives, told late
// and after others that went the same way, in every configuration and after any traffic.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <random>
#include <vector>

#include "osd/qos/scheduler.h"

namespace weir::osd::qos {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kKiB = 1 << 10, kMiB = 1 << 20;
constexpr ClassId kPlain{16}, kReserved{17}, kLimited{18}, kBounded{19}, kDisk{20};
constexpr std::array kClasses{kBestEffort, kPlain, kReserved,   kLimited,
                              kBounded,    kDisk,  kSystemScrub};

class Traffic {
 public:
  explicit Traffic(uint64_t seed)
      : random_(seed), slow_(Below(3) == 0), most_(1 + Below(8)), scheduler_(RandomConfig(), now_) {
    for (const ClassId id : kClasses) {
      if (Below(3) > 0) SetClass(id);
    }
  }

  void Step() {
    now_ = now_ + Duration(Below(slow_ ? 20'000'000 : 300'000));
    switch (Below(12)) {
      case 0:
        return Tell(), scheduler_.Tick(now_);
      case 1:
        if (Below(20) > 0) return;
        return Tell(), SetClass(kClasses[Below(kClasses.size())]);
      case 2:
        if (Below(100) > 0) return;
        return Tell(), scheduler_.Configure(RandomConfig(), now_);
      case 3:
      case 4:
      case 5:
      case 6:
        return told_ < most_ ? Add() : Complete();
      default:
        return Complete();
    }
  }

  // Everything that is there ends.
  void Finish() {
    for (int i = 0; i < 100'000 && !AllEnded(); ++i) {
      now_ = now_ + 1ms;
      Complete();
      if (i % 8 == 0) Tell(), scheduler_.Tick(now_), PullAll();
    }
    Tell();
  }

  size_t went_ahead = 0;
  size_t longest_chain = 0;

 private:
  struct Ahead {
    Request* request;
    TimePoint since;
    std::optional<TimePoint> done;
  };

  uint64_t Below(uint64_t n) { return std::uniform_int_distribution<uint64_t>(0, n - 1)(random_); }

  SchedulerConfig RandomConfig() {
    static constexpr std::array<uint32_t, 6> kDepths{0, 0, 0, 1, 2, 8};
    SchedulerConfig config;
    config.guarantee = Below(4) == 0 ? GuaranteeKind::kNone : GuaranteeKind::kHtb;
    config.surplus = Below(6) == 0 ? SurplusKind::kFcfs : SurplusKind::kDsfq;
    config.gate = Below(6) == 0 ? GateKind::kStrict : GateKind::kConserving;
    config.dispatch = Below(3) == 0 ? DispatchKind::kCscan : DispatchKind::kCvc;
    config.cost = Below(3) == 0 ? CostKind::kDeviceTime : CostKind::kBytes;
    config.anticipation = Below(6) == 0;
    config.depth = kDepths[Below(kDepths.size())];
    config.token_rate = Below(4) == 0 ? 0 : 20 * kMiB;
    return config;
  }

  void SetClass(ClassId id) {
    ClassSpec spec;
    spec.id = id;
    spec.name = "class" + std::to_string(id.value);
    spec.weight = static_cast<double>(1 + Below(8));
    spec.min_weight = 1;
    if (id == kReserved) {
      spec.reservation = Reservation{4 * kMiB, ReservationScope::kOsd, {}};
      if (Below(2) == 0) spec.reservation_ends = now_ + Duration(Below(2'000'000'000));
    }
    if (id == kLimited) spec.limit_bytes_per_s = kMiB;
    if (id == kBounded) spec.service.bound = 5ms;
    scheduler_.SetClass(spec, now_);
  }

  void Add() {
    Request* request = &requests_.emplace_back();
    request->class_id = kClasses[Below(kClasses.size())];
    request->op = Below(4) == 0 ? OpKind::kWrite : OpKind::kRead;
    request->bytes = Below(4) == 0 ? 1 + Below(kMiB) : 512 + Below(60 * kKiB);
    request->lba = Below(1 << 30);
    request->elsewhere = Below(4) == 0 ? static_cast<int64_t>(Below(1000)) : 0;
    const bool all_ended = ahead_.empty() || ahead_.back().done;
    if (told_ == 0 && all_ended && scheduler_.GoesAtOnce(*request, now_)) {
      ahead_.push_back({request, now_, {}});
      ++went_ahead;
      longest_chain = std::max(longest_chain, ahead_.size());
      return;
    }
    Tell();
    ++told_;
    scheduler_.Enqueue(request, now_);
    PullAll();
  }

  void Complete() {
    if (!ahead_.empty() && !ahead_.back().done) {
      ahead_.back().done = now_;
      return;
    }
    if (device_.empty()) return;
    Tell();
    const auto which = device_.begin() + static_cast<std::ptrdiff_t>(Below(device_.size()));
    Request* request = *which;
    device_.erase(which);
    --told_;
    scheduler_.Completed(request, now_);
    PullAll();
  }

  void Tell() {
    for (const Ahead& one : ahead_) {
      scheduler_.Enqueue(one.request, one.since);
      ASSERT_EQ(scheduler_.Pull(one.since).request, one.request);
      if (one.done) {
        scheduler_.Completed(one.request, *one.done);
      } else {
        device_.push_back(one.request);
        ++told_;
      }
    }
    ahead_.clear();
  }

  void PullAll() {
    while (Request* request = scheduler_.Pull(now_).request) device_.push_back(request);
  }

  [[nodiscard]] bool AllEnded() const {
    return told_ == 0 && (ahead_.empty() || ahead_.back().done);
  }

  std::mt19937_64 random_;
  const bool slow_;    // a disk with a head, or so it seems
  const size_t most_;  // at a time, so that all is often done
  TimePoint now_{0};
  std::deque<Request> requests_;
  std::vector<Ahead> ahead_;      // and the scheduler is yet to be told
  std::vector<Request*> device_;  // told
  size_t told_ = 0;               // and not done
  Scheduler scheduler_;
};

TEST(GoesAtOnceTest, WhatGoesAtOnceIsPulledHoweverLateTheSchedulerIsTold) {
  size_t went_ahead = 0, longest_chain = 0;
  for (uint64_t seed = 1; seed <= 300 && !::testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Traffic traffic(seed);
    for (int i = 0; i < 1500; ++i) traffic.Step();
    traffic.Finish();
    went_ahead += traffic.went_ahead;
    longest_chain = std::max(longest_chain, traffic.longest_chain);
  }
  EXPECT_GT(went_ahead, 1000u);
  EXPECT_GE(longest_chain, 4u);
}

TEST(GoesAtOnceTest, WhatALimitAGateOrAnotherRequestHoldsBackDoesNot) {
  const auto goes = [](const SchedulerConfig& config, const ClassSpec& spec, uint64_t bytes) {
    Scheduler scheduler(config, TimePoint{0});
    scheduler.SetClass(spec, TimePoint{0});
    Request request;
    request.class_id = spec.id;
    request.bytes = bytes;
    return scheduler.GoesAtOnce(request, TimePoint{0});
  };
  ClassSpec plain;
  plain.id = kPlain;
  plain.name = "plain";
  SchedulerConfig config;
  EXPECT_TRUE(goes(config, plain, 4 * kKiB));
  EXPECT_FALSE(goes(config, plain, kMiB));
  ClassSpec limited = plain;
  limited.limit_bytes_per_s = kMiB;
  EXPECT_FALSE(goes(config, limited, 4 * kKiB));
  ClassSpec background = plain;
  background.id = kSystemScrub;
  EXPECT_FALSE(goes(config, background, 4 * kKiB));
  config.token_rate = kMiB;
  config.gate = GateKind::kStrict;
  EXPECT_FALSE(goes(config, plain, 4 * kKiB));

  Scheduler busy({}, TimePoint{0});
  Request first, second;
  first.bytes = second.bytes = 4 * kKiB;
  busy.Enqueue(&first, TimePoint{0});
  EXPECT_FALSE(busy.GoesAtOnce(second, TimePoint{0}));
  ASSERT_EQ(busy.Pull(TimePoint{0}).request, &first);
  EXPECT_FALSE(busy.GoesAtOnce(second, TimePoint{0}));
  busy.Completed(&first, TimePoint{1000});
  EXPECT_TRUE(busy.GoesAtOnce(second, TimePoint{1000}));
}

}  // namespace
}  // namespace weir::osd::qos
