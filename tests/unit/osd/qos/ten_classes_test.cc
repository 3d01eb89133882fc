// Ten classes with reservations, limits and weights on three OSDs: whatever OSDs each of them asks,
// its seconds are those of the oracle, and no second exceeds a limit. The twin on real processes is
// tests/acceptance/accuracy.py.
#include <gmock/gmock.h>

#include <array>
#include <bit>
#include <cmath>

#include "common/testing/seed.h"
#include "tests/unit/osd/qos/virtual_device.h"

namespace weir::osd::qos {
namespace {

using namespace std::chrono_literals;
using testing::Cluster;
using testing::kKiB;
using testing::kMiB;
using testing::Load;
using testing::Reserved;
using testing::Spec;

constexpr size_t kOsds = 3, kClasses = 10, kPhases = 3;
constexpr double kRate = 60;     // MiB/s of an OSD
constexpr int kOutstanding = 6;  // of a class on an OSD
constexpr Duration kPhase = 12s, kSettle = 2s;

struct Contract {
  double weight, reserved, limit;  // MiB/s; limit 0: none
};
constexpr std::array<Contract, kClasses> kContracts = {{{1, 40, 0},
                                                        {1, 25, 0},
                                                        {1, 10, 0},
                                                        {4, 0, 0},
                                                        {2, 0, 0},
                                                        {1, 0, 0},
                                                        {1, 0, 0},
                                                        {8, 0, 15},
                                                        {4, 5, 10},
                                                        {1, 0, 8}}};
// Which OSDs a class asks, as bits: everywhere, skewed, shifted.
constexpr std::array<std::array<unsigned, kClasses>, kPhases> kSpread = {
    {{7, 7, 7, 7, 7, 7, 7, 7, 7, 7},
     {1, 7, 7, 6, 7, 3, 7, 2, 4, 7},
     {4, 3, 3, 3, 7, 7, 2, 3, 7, 4}}};

// x = min(limit, max(reserved, weight * level)), level such that the sum is what the OSDs can do.
std::array<double, kClasses> Oracle() {
  std::array<double, kClasses> share{};
  double low = 0, high = 1000;
  for (int i = 0; i < 100; ++i) {
    const double level = (low + high) / 2;
    double sum = 0;
    for (size_t c = 0; c < kClasses; ++c) {
      const Contract& contract = kContracts[c];
      share[c] = std::max(contract.reserved, contract.weight * level);
      if (contract.limit > 0) share[c] = std::min(share[c], contract.limit);
      sum += share[c];
    }
    (sum < kOsds * kRate ? low : high) = level;
  }
  return share;
}

ClassId IdOf(size_t index) {
  return ClassId(static_cast<uint32_t>(16 + index));
}

// What a daemon that others keep off the processor looks like: moves so many bytes per second, and
// once in a while nothing for some milliseconds.
class Stalling final : public sim::Device {
 public:
  Stalling(sim::EventQueue* events, double rate, Duration longest, Prng prng)
      : Device(events), rate_(rate), longest_(longest), prng_(prng) {}

  void Submit(sim::Job* job) override {
    const TimePoint now = events().now();
    if (now >= stalls_at_) {
      free_at_ = std::max(free_at_, now) + RandomUpTo(longest_);
      stalls_at_ = now + RandomUpTo(400ms);
    }
    const Duration time = FromSeconds(static_cast<double>(job->io.bytes) / rate_);
    free_at_ = std::max(free_at_, now) + time;
    FinishAt(free_at_, time, job);
  }

 private:
  Duration RandomUpTo(Duration most) {
    return Duration(static_cast<int64_t>(static_cast<double>(most.count()) * prng_.Real()));
  }

  const double rate_;
  const Duration longest_;
  Prng prng_;
  TimePoint free_at_{0}, stalls_at_{0};
};

struct Setting {
  uint64_t block = 32 * kKiB;
  uint64_t limited_block = 32 * kKiB;
  Duration longest_stall{0};
  bool hold_limits = false;
  double scale = 1;   // of all rates
  Duration queue{0};  // of its share that a class has under way at an OSD; 0: kOutstanding
  Duration pause{0};  // without any demand, when a phase begins
  Duration apart{0};  // a class enters a phase at an OSD up to so much later
  uint64_t seed = weir::testing::TestSeed();
};

class TenClasses {
 public:
  explicit TenClasses(const Setting& setting)
      : setting_(setting), cluster_(setting.seed), prng_(setting.seed) {
    cluster_.HoldLimits(setting.hold_limits);
    for (size_t osd = 0; osd < kOsds; ++osd) {
      cluster_.AddOsd(Config(setting.scale), [&](sim::EventQueue* events, Prng prng) {
        return std::make_unique<Stalling>(events, setting.scale * kRate * 4 * kMiB,
                                          setting.longest_stall, prng);
      });
    }
    for (size_t c = 0; c < kClasses; ++c) {
      const Contract& contract = kContracts[c];
      ClassSpec spec =
          contract.reserved > 0
              ? Reserved(IdOf(c), static_cast<uint64_t>(setting.scale * contract.reserved * kMiB),
                         contract.weight, ReservationScope::kCluster)
              : Spec(IdOf(c), contract.weight);
      if (contract.limit > 0)
        spec.limit_bytes_per_s = static_cast<uint64_t>(setting.scale * contract.limit * kMiB);
      cluster_.SetClass(spec);
      for (size_t osd = 0; osd < kOsds; ++osd) {
        for (size_t phase = 0; phase < kPhases; ++phase) {
          loads_[phase][c][osd] =
              cluster_.Start({.class_id = IdOf(c),
                              .outstanding = 0,
                              .bytes = contract.limit > 0 ? setting.limited_block : setting.block,
                              .osd = osd});
        }
      }
    }
    for (size_t phase = 0; phase < kPhases; ++phase) {
      const Duration begin = kPhase * static_cast<int64_t>(phase);
      if (setting.pause > Duration(0)) cluster_.At(begin, [this] { Pause(); });
      cluster_.At(begin + setting.pause, [this, phase] { Enter(phase); });
    }
    cluster_.RunTo(kPhase * static_cast<int64_t>(kPhases));
    for (size_t c = 0; c < kClasses; ++c) Log(c);
  }

  // MiB/s that the class was served in [from, to), by completions at the OSDs.
  [[nodiscard]] double Served(size_t c, Duration from, Duration to) const {
    const auto at = [&](Duration when) {
      return std::lower_bound(times_[c].begin(), times_[c].end(), TimePoint{0} + when) -
             times_[c].begin();
    };
    return (sums_[c][static_cast<size_t>(at(to))] - sums_[c][static_cast<size_t>(at(from))]) /
           ToSeconds(to - from) / setting_.scale;
  }

  // The second that differs most from the oracle, as a part of it.
  [[nodiscard]] double WorstSecond(size_t c, size_t phase, double share) const {
    const Duration begin = kPhase * static_cast<int64_t>(phase) + kSettle;
    double worst = 0;
    for (Duration at = begin; at + 1s <= begin - kSettle + kPhase; at += 50ms) {
      const double part = Served(c, at, at + 1s) / share - 1;
      if (std::abs(part) > std::abs(worst)) worst = part;
    }
    return worst;
  }

  // The most of any second of the whole run, start and shifts included.
  [[nodiscard]] double MostInASecond(size_t c) const {
    double most = 0;
    for (const TimePoint at : times_[c]) {
      const Duration from = at - TimePoint{0};
      most = std::max(most, Served(c, from, from + 1s));
    }
    return most;
  }

 private:
  static SchedulerConfig Config(double scale) {
    SchedulerConfig base;
    base.token_rate = static_cast<uint64_t>(scale * kRate * kMiB);
    base.best_effort_min = 0;
    base = *ApplyProfile("unified", base);
    base.gate = GateKind::kStrict;
    return base;
  }

  void Enter(size_t phase) {
    for (size_t c = 0; c < kClasses; ++c) {
      for (size_t osd = 0; osd < kOsds; ++osd) {
        const bool asks = (kSpread[phase][c] >> osd & 1) != 0;
        if (phase > 0) SetLater(loads_[phase - 1][c][osd], 0);
        if (asks) SetLater(loads_[phase][c][osd], Outstanding(phase, c));
      }
    }
  }
  void SetLater(Load* load, int outstanding) {
    const auto later = static_cast<double>(setting_.apart.count()) * prng_.Real();
    cluster_.At(cluster_.now() + Duration(static_cast<int64_t>(later)),
                [load, outstanding] { load->SetOutstanding(outstanding); });
  }
  void Pause() {
    for (const auto& phase : loads_) {
      for (const auto& loads : phase) {
        for (Load* load : loads) load->SetOutstanding(0);
      }
    }
  }
  [[nodiscard]] int Outstanding(size_t phase, size_t c) const {
    if (setting_.queue == Duration(0)) return kOutstanding;
    const uint64_t block = kContracts[c].limit > 0 ? setting_.limited_block : setting_.block;
    const double share = setting_.scale * Oracle()[c] / std::popcount(kSpread[phase][c]) * kMiB;
    return static_cast<int>(
        std::ceil(share * ToSeconds(setting_.queue) / static_cast<double>(block)));
  }

  void Log(size_t c) {
    std::vector<std::pair<TimePoint, uint64_t>> done;
    for (const auto& phase : loads_) {
      for (const Load* load : phase[c]) {
        for (const sim::Completion& one : load->completions()) {
          done.emplace_back(one.when, one.bytes);
        }
      }
    }
    std::sort(done.begin(), done.end());
    sums_[c].push_back(0);
    for (const auto& [when, bytes] : done) {
      times_[c].push_back(when);
      sums_[c].push_back(sums_[c].back() + static_cast<double>(bytes) / kMiB);
    }
  }

  const Setting setting_;
  Cluster cluster_;
  Prng prng_;
  // The threads of each phase: those of the last are still answered while the next begin.
  std::array<std::array<std::array<Load*, kOsds>, kClasses>, kPhases> loads_{};
  std::array<std::vector<TimePoint>, kClasses> times_;
  std::array<std::vector<double>, kClasses> sums_;
};

// The OSDs alone hear of each other one request late, and let some more pass while others begin.
TEST(TenClassesTest, EverySecondIsTheOraclesAndNoLimitIsExceeded) {
  const std::array<double, kClasses> oracle = Oracle();
  const TenClasses run(Setting{.hold_limits = true}), alone(Setting{});
  for (size_t c = 0; c < kClasses; ++c) {
    for (size_t phase = 0; phase < kPhases; ++phase) {
      const double worst = run.WorstSecond(c, phase, oracle[c]);
      EXPECT_LE(std::abs(worst), 0.05) << "c" << c << " in phase " << phase + 1;
    }
    if (kContracts[c].limit > 0) {
      EXPECT_LE(run.MostInASecond(c), kContracts[c].limit * 1.02) << "c" << c;
      EXPECT_LE(alone.MostInASecond(c), kContracts[c].limit * 1.07) << "c" << c;
    }
  }
}

// Goal: however the OSDs stutter, no second of what the coordinator is answered has more than the
// limit, 0.5 % of it and two requests: the one that goes beyond it, and one more as what is
// answered within a millisecond counts as one. The OSDs by themselves miss that: each hears of the
// others one request late.
TEST(TenClassesTest, ACoordinatorThatSeesAllAnswersHoldsLimitsExactly) {
  const TenClasses run({.limited_block = 16 * kKiB, .longest_stall = 10ms, .hold_limits = true});
  for (size_t c = 0; c < kClasses; ++c) {
    if (kContracts[c].limit == 0) continue;
    EXPECT_LE(run.MostInASecond(c), kContracts[c].limit * 1.005 + 2 * 16. / 1024) << "c" << c;
  }
  const TenClasses alone({.limited_block = 16 * kKiB, .longest_stall = 10ms});
  EXPECT_GT(alone.MostInASecond(7), kContracts[7].limit * 1.01) << "nothing to hold";
}

TEST(TenClassesTest, HoldingLimitsTakesNothingFromAnybody) {
  const std::array<double, kClasses> oracle = Oracle();
  const TenClasses run({.limited_block = 16 * kKiB, .hold_limits = true});
  for (size_t c = 0; c < kClasses; ++c) {
    for (size_t phase = 0; phase < kPhases; ++phase) {
      EXPECT_LE(std::abs(run.WorstSecond(c, phase, oracle[c])), 0.05)
          << "c" << c << " in phase " << phase + 1;
    }
  }
}

// Goal: OSDs do not take turns in serving a class that moves to them with much under way, or hold
// back what it was never denied: at each it would wait for the others, and what waits counts
// against the limit. Method: the settings of tests/acceptance/accuracy.py, with and without pauses.
TEST(TenClassesTest, AClassThatMovesHasItsLimitAtOnce) {
  const std::array<double, kClasses> oracle = Oracle();
  for (const Duration pause : {Duration(0), Duration(200ms)}) {
    for (const Duration stall : {Duration(0), Duration(10ms)}) {
      const TenClasses run({.limited_block = 16 * kKiB,
                            .longest_stall = stall,
                            .hold_limits = true,
                            .scale = 0.4,
                            .queue = 250ms,
                            .pause = pause});
      // Any second, wherever it begins, may have one request more at its edge.
      constexpr double kBlock = 16.0 / 1024;
      for (size_t c = 0; c < kClasses; ++c) {
        const double limit = kContracts[c].limit;
        for (size_t phase = 0; phase < kPhases; ++phase) {
          const double worst = run.WorstSecond(c, phase, oracle[c]);
          EXPECT_LE(std::abs(worst), limit > 0 ? 0.03 : 0.045)
              << "c" << c << " in phase " << phase + 1;
        }
        if (limit > 0) {
          EXPECT_LE(run.MostInASecond(c), limit * 1.02 + kBlock) << "c" << c;
        }
      }
    }
  }
}

// Goal: two seconds after demand has moved everybody has his share, in whichever order the classes
// moved. Whoever moves first has an OSD to himself for a moment; what he gets there keeps him away
// from others afterwards. Method: the settings of tests/acceptance/accuracy.py, where threads of
// one process begin within some milliseconds of each other.
TEST(TenClassesTest, SharesSettleWithinTwoSecondsWhoeverMovesFirst) {
  const std::array<double, kClasses> oracle = Oracle();
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const TenClasses run({.limited_block = 16 * kKiB,
                          .hold_limits = true,
                          .scale = 0.4,
                          .queue = 250ms,
                          .apart = 20ms,
                          .seed = seed});
    for (size_t c = 0; c < kClasses; ++c) {
      for (size_t phase = 0; phase < kPhases; ++phase) {
        const double worst = run.WorstSecond(c, phase, oracle[c]);
        EXPECT_LE(std::abs(worst), 0.05) << "c" << c << " in phase " << phase + 1 << ", " << seed;
      }
    }
  }
}

// A device that takes 50 ms for everything, however much.
class Far final : public sim::Device {
 public:
  using Device::Device;
  void Submit(sim::Job* job) override { FinishAt(events().now() + 50ms, 50ms, job); }
};

// Goal: a promise as high as the limit is kept where answers take long, beside others who take what
// they get. Method: three OSDs, with 50 ms of what is under way.
TEST(TenClassesTest, AReservationAsHighAsTheLimitIsKeptAtAnyLatency) {
  constexpr ClassId kGold{16}, kHog{17};
  constexpr uint64_t kPromise = 12 * kMiB;
  Cluster cluster(weir::testing::TestSeed());
  cluster.HoldLimits(true);
  SchedulerConfig config;
  config.token_rate = 30 * kMiB;
  config.best_effort_min = 0;
  config = *ApplyProfile("unified", config);
  config.gate = GateKind::kStrict;
  config.depth = 128;
  for (size_t osd = 0; osd < kOsds; ++osd) {
    cluster.AddOsd(config,
                   [](sim::EventQueue* events, Prng) { return std::make_unique<Far>(events); });
  }
  ClassSpec gold = Reserved(kGold, kPromise, 1, ReservationScope::kCluster);
  gold.limit_bytes_per_s = kPromise;
  cluster.SetClass(gold);
  cluster.SetClass(Spec(kHog, 8));
  std::array<Load*, kOsds> loads{};
  for (size_t osd = 0; osd < kOsds; ++osd) {
    loads[osd] =
        cluster.Start({.class_id = kGold, .outstanding = 32, .bytes = 16 * kKiB, .osd = osd});
    cluster.Start({.class_id = kHog, .outstanding = 128, .bytes = 64 * kKiB, .osd = osd});
  }
  cluster.RunTo(20s);
  double served = 0;
  for (const Load* load : loads) served += load->Rate(3s, 20s);
  EXPECT_GE(served, 0.99 * kPromise);
  EXPECT_LE(served, 1.01 * kPromise);
}

// Goal: OSDs that learn of each other from what stands behind a long queue do not take turns in
// serving a promise. Method: three OSDs, a quarter of a second of the promise queued at each.
TEST(TenClassesTest, APromiseDoesNotSwingBetweenItsOsds) {
  constexpr ClassId kGold{16}, kHog{17};
  constexpr uint64_t kPromise = 18 * kMiB, kBytes = 32 * kKiB;
  Cluster cluster(weir::testing::TestSeed());
  SchedulerConfig config;
  config.token_rate = 24 * kMiB;
  config.best_effort_min = 0;
  config = *ApplyProfile("unified", config);
  config.gate = GateKind::kStrict;
  for (size_t osd = 0; osd < kOsds; ++osd) {
    cluster.AddOsd(config, [&](sim::EventQueue* events, Prng prng) {
      return std::make_unique<Stalling>(events, kRate * 4 * kMiB, 10ms, prng);
    });
  }
  cluster.SetClass(Reserved(kGold, kPromise, 1, ReservationScope::kCluster));
  cluster.SetClass(Spec(kHog, 16));
  std::array<Load*, kOsds> loads{};
  for (size_t osd = 0; osd < kOsds; ++osd) {
    const auto depth = static_cast<int>(kPromise / kOsds / 4 / kBytes);
    loads[osd] =
        cluster.Start({.class_id = kGold, .outstanding = depth, .bytes = kBytes, .osd = osd});
    cluster.Start({.class_id = kHog, .outstanding = 128, .bytes = kBytes, .osd = osd});
  }
  cluster.RunTo(30s);
  constexpr Duration kSlice = 50ms;
  constexpr double kShare = static_cast<double>(kPromise) / kOsds;
  double squares = 0;
  int slices = 0;
  for (Duration from = 2s; from < 30s; from += kSlice) {
    for (const Load* load : loads) {
      const double off = load->Rate(from, from + kSlice) / kShare - 1;
      squares += off * off;
      ++slices;
    }
  }
  EXPECT_LE(std::sqrt(squares / slices),
            0.15);  // 0.11; 0.19 if all that is told of is taken at once
}

}  // namespace
}  // namespace weir::osd::qos
