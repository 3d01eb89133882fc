// Ten classes with reservations, limits and weights on three OSDs: whatever OSDs each of them asks,
// its seconds are those of the oracle, and no second exceeds a limit. The twin on real processes is
// tests/acceptance/accuracy.py.
#include <gmock/gmock.h>

#include <array>

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

class TenClasses {
 public:
  explicit TenClasses(uint64_t block) : cluster_(kOsds, Config(), kRate * 4 * kMiB) {
    for (size_t c = 0; c < kClasses; ++c) {
      const Contract& contract = kContracts[c];
      ClassSpec spec = contract.reserved > 0
                           ? Reserved(IdOf(c), static_cast<uint64_t>(contract.reserved * kMiB),
                                      contract.weight, ReservationScope::kCluster)
                           : Spec(IdOf(c), contract.weight);
      if (contract.limit > 0) spec.limit_bytes_per_s = static_cast<uint64_t>(contract.limit * kMiB);
      cluster_.SetClass(spec);
      for (size_t osd = 0; osd < kOsds; ++osd) {
        loads_[c][osd] =
            cluster_.Start({.class_id = IdOf(c), .outstanding = 0, .bytes = block, .osd = osd});
      }
    }
    for (size_t phase = 0; phase < kPhases; ++phase) {
      cluster_.At(kPhase * static_cast<int64_t>(phase), [this, phase] { Enter(phase); });
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
           ToSeconds(to - from);
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
  static SchedulerConfig Config() {
    SchedulerConfig base;
    base.token_rate = static_cast<uint64_t>(kRate * kMiB);
    base.best_effort_min = 0;
    base = *ApplyProfile("unified", base);
    base.gate = GateKind::kStrict;
    return base;
  }

  void Enter(size_t phase) {
    for (size_t c = 0; c < kClasses; ++c) {
      for (size_t osd = 0; osd < kOsds; ++osd) {
        loads_[c][osd]->SetOutstanding((kSpread[phase][c] >> osd & 1) != 0 ? kOutstanding : 0);
      }
    }
  }

  void Log(size_t c) {
    std::vector<std::pair<TimePoint, uint64_t>> done;
    for (const Load* load : loads_[c]) {
      for (const sim::Completion& one : load->completions()) done.emplace_back(one.when, one.bytes);
    }
    std::sort(done.begin(), done.end());
    sums_[c].push_back(0);
    for (const auto& [when, bytes] : done) {
      times_[c].push_back(when);
      sums_[c].push_back(sums_[c].back() + static_cast<double>(bytes) / kMiB);
    }
  }

  Cluster cluster_;
  std::array<std::array<Load*, kOsds>, kClasses> loads_{};
  std::array<std::vector<TimePoint>, kClasses> times_;
  std::array<std::vector<double>, kClasses> sums_;
};

TEST(TenClassesTest, EverySecondIsTheOraclesAndNoLimitIsExceeded) {
  const std::array<double, kClasses> oracle = Oracle();
  const TenClasses run(32 * kKiB);
  for (size_t c = 0; c < kClasses; ++c) {
    for (size_t phase = 0; phase < kPhases; ++phase) {
      const double worst = run.WorstSecond(c, phase, oracle[c]);
      EXPECT_LE(std::abs(worst), 0.05) << "c" << c << " in phase " << phase + 1;
    }
    if (kContracts[c].limit > 0) {
      EXPECT_LE(run.MostInASecond(c), kContracts[c].limit * 1.02) << "c" << c;
    }
  }
}

}  // namespace
}  // namespace weir::osd::qos
