// Goal: the parts of a limit never sum up to more than it, whatever is late, lost or dead, and
// follow what is asked for.
#include "common/qos/limit_divider.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <numeric>

#include "common/base/prng.h"
#include "common/testing/seed.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

constexpr ClassId kClass{16};
constexpr uint64_t kRate = 20 << 20;

// Mounts that ask for so much each, in virtual time: what one may be served is what its part has
// let flow in, of which it saves up 10 ms.
class World {
 public:
  World(size_t mounts, uint64_t seed) : prng_(seed), mounts_(mounts) {
    for (size_t i = 0; i < mounts; ++i) Start(i);
    NewDivider();
    Run(LimitDivider::kForgotten);
  }

  void Run(Duration time) {
    for (const TimePoint end = now_ + time; now_ < end; now_ += kStep) Step();
  }
  void Ask(size_t mount, double part_of_limit) { mounts_[mount].asked = part_of_limit; }
  void AskInBursts(size_t mount, double part_of_limit, Duration busy, Duration pause) {
    mounts_[mount].asked = part_of_limit;
    mounts_[mount].busy = busy;
    mounts_[mount].pause = pause;
  }
  void Lose(double chance) { lost_ = chance; }
  void Delay(Duration most) { delay_ = most; }
  // Its messages are lost.
  void CutOff(size_t mount, bool is) { mounts_[mount].cut_off = is; }
  // It is silent.
  void Kill(size_t mount) { mounts_[mount].alive = false; }
  void EndSession(size_t mount) { divider_->Gone(mounts_[mount].session); }
  void Start(size_t mount) {
    mounts_[mount] = {};
    mounts_[mount].session = ++sessions_;
    mounts_[mount].share = std::make_unique<LimitShare>(0);
    mounts_[mount].reports_at = now_ + Duration(static_cast<int64_t>(prng_.Uniform(0, 99'000'000)));
  }
  void NewDivider() {
    divider_ = std::make_unique<LimitDivider>(now_);
    divider_->SetLimits({{kClass, kRate}});
    divider_began_ = now_;
  }
  void StopDivider() { divider_.reset(); }

  [[nodiscard]] double PartOf(size_t mount) const {
    return mounts_[mount].share->PartOf(kClass, now_);
  }
  // Of all that are alive, without those that have heard nothing for longer than parts last.
  [[nodiscard]] double Sum() const {
    double sum = 0;
    for (size_t i = 0; i < mounts_.size(); ++i) {
      if (mounts_[i].alive && now_ < mounts_[i].lasts_until) sum += PartOf(i);
    }
    return sum;
  }
  // Of all that are alive.
  [[nodiscard]] double Obeyed() const {
    double sum = 0;
    for (size_t i = 0; i < mounts_.size(); ++i) sum += mounts_[i].alive ? PartOf(i) : 0;
    return sum;
  }
  // What was served in the last so much time, as a part of the limit.
  [[nodiscard]] double Served(Duration lately) const {
    const auto steps = std::min<size_t>(static_cast<size_t>(lately / kStep), served_.size());
    const auto begin = served_.end() - static_cast<ptrdiff_t>(steps);
    return std::accumulate(begin, served_.end(), 0.0) / ToSeconds(lately);
  }
  [[nodiscard]] double ServedOf(size_t mount, Duration lately) const {
    const auto& all = mounts_[mount].served_by;
    const auto steps = std::min<size_t>(static_cast<size_t>(lately / kStep), all.size() - 1);
    return (all.back() - all[all.size() - 1 - steps]) / ToSeconds(lately);
  }
  [[nodiscard]] size_t size() const { return mounts_.size(); }

 private:
  static constexpr Duration kStep = 5ms;
  static constexpr double kSaved = 0.01;  // seconds of the part

  struct Mount {
    uint64_t session = 0;
    uint64_t number = 0;  // of its last request
    std::unique_ptr<LimitShare> share;
    bool alive = true;
    double asked = 0;
    double queued = 0;  // seconds of the limit
    double level = 0;
    double served = 0;
    std::vector<double> served_by;  // each step
    Duration limited{0};
    bool cut_off = false;
    TimePoint reports_at;
    TimePoint asking_until;
    TimePoint told_at;
    TimePoint lasts_until;
    Duration busy{0}, pause{0};  // asks for so long in turns; 0: always
  };
  struct Mail {
    size_t mount = 0;
    uint64_t session = 0;
    uint64_t number = 0;
    std::vector<LimitReport> reports = {};
    std::vector<LimitPart> parts = {};
    bool answer = false;
    TimePoint when = {};
  };

  void Send(Mail mail) {
    if (prng_.Chance(lost_) || mounts_[mail.mount].cut_off) return;
    const double late = prng_.Real() * static_cast<double>(delay_.count());
    mail.when = now_ + Duration(static_cast<int64_t>(late));
    mails_.push_back(std::move(mail));
  }
  void Step() {
    double served = 0;
    for (size_t i = 0; i < mounts_.size(); ++i) served += mounts_[i].alive ? Serve(i) : 0;
    served_.push_back(served);
    for (size_t i = 0; i < mounts_.size(); ++i) {
      if (mounts_[i].alive && now_ >= mounts_[i].reports_at) Report(i);
    }
    std::deque<Mail> later;
    std::deque<Mail> due;
    for (Mail& mail : mails_) (mail.when <= now_ ? due : later).push_back(std::move(mail));
    mails_ = std::move(later);
    for (const Mail& mail : due) Deliver(mail);
  }
  double Serve(size_t i) {
    Mount& mount = mounts_[i];
    const double part = mount.share->PartOf(kClass, now_);
    const double step = ToSeconds(kStep);
    // A tenth of a second of what is asked for waits at most: a closed loop.
    const bool bursts = mount.busy > Duration(0);
    const bool asks = !bursts || (now_ - TimePoint{0}) % (mount.busy + mount.pause) < mount.busy;
    const double most = bursts ? mount.asked : mount.asked / 10;
    mount.queued = std::min(mount.queued + (asks ? mount.asked * step : 0), most);
    mount.level = std::min(mount.level + part * step, part * kSaved);
    const double served = std::min(mount.level, mount.queued);
    mount.level -= served;
    mount.queued -= served;
    mount.served += served;
    mount.served_by.push_back(mount.served);
    if (mount.queued > 0) mount.limited += kStep;
    return served;
  }
  void Report(size_t i) {
    Mount& mount = mounts_[i];
    mount.reports_at = now_ + kLimitReportInterval;
    if (now_ < mount.asking_until) return;
    const LimitShare::Counts counts{static_cast<uint64_t>(mount.served * kRate),
                                    static_cast<uint64_t>(mount.queued * kRate), mount.limited};
    auto request = mount.share->Tell({{kClass, counts}}, now_);
    if (!request) return;
    mount.number = request->number;
    mount.asking_until = now_ + 1s;
    mount.told_at = now_;
    Send({.mount = i,
          .session = mount.session,
          .number = request->number,
          .reports = request->reports});
  }
  void Deliver(const Mail& mail) {
    Mount& mount = mounts_[mail.mount];
    if (mail.answer) {
      if (!mount.alive || mount.session != mail.session) return;
      if (mail.number != mount.number || now_ >= mount.asking_until) return;  // it asks again
      mount.asking_until = now_;
      if (mount.share->Heard(mail.number, mail.parts, now_)) mount.reports_at = now_;
      // What ran out and is confirmed by one that has not heard of all is as before.
      const bool lasted = mount.told_at < mount.lasts_until;
      const bool knows_all = now_ - divider_began_ > LimitDivider::kForgotten + 1s;
      if (!mail.parts.empty() && (lasted || knows_all || mail.parts[0].part <= 0)) {
        mount.lasts_until = mount.told_at + kPartLasts;
      }
    } else if (divider_) {
      const auto parts = divider_->Divide(mail.session, mail.number, mail.reports, now_);
      Send({.mount = mail.mount,
            .session = mail.session,
            .number = mail.number,
            .parts = parts,
            .answer = true});
    }
  }

  Prng prng_;
  TimePoint now_ = TimePoint{0} + 1h;
  uint64_t sessions_ = 0;
  double lost_ = 0;
  Duration delay_ = 1ms;
  std::vector<Mount> mounts_;
  std::deque<Mail> mails_;
  std::deque<double> served_;  // in each step
  std::unique_ptr<LimitDivider> divider_;
  TimePoint divider_began_;
};

TEST(LimitDividerTest, WhoeverAsksForLessHasThatAndTheOthersEquallyMuch) {
  World world(3, 1);
  world.Ask(0, 5);
  world.Ask(1, 5);
  world.Ask(2, 0.1);
  world.Run(3s);
  EXPECT_NEAR(world.Served(1s), 1, 0.01);
  EXPECT_NEAR(world.PartOf(0), world.PartOf(1), 0.03);
  EXPECT_GE(world.PartOf(2), 0.1);
  EXPECT_LE(world.PartOf(2), 0.13);
}

TEST(LimitDividerTest, OneThatAsksAloneHasAllAtOnce) {
  World world(8, 1);
  world.Ask(3, 2);
  world.Run(200ms);
  EXPECT_GE(world.PartOf(3), 0.99);
  world.Run(1s);
  EXPECT_NEAR(world.Served(1s), 1, 0.01);
}

TEST(LimitDividerTest, WhenAnotherAsksInsteadItHasAllWithinTwoSeconds) {
  World world(3, 1);
  world.Ask(0, 5);
  world.Ask(2, 5);
  world.Run(4s);
  world.Ask(0, 0);
  world.Ask(1, 5);
  world.Run(2s);
  EXPECT_GE(world.PartOf(1), 0.48);
  world.Ask(2, 0);
  world.Run(2s);
  EXPECT_GE(world.PartOf(1), 0.99);
  world.Run(1s);
  EXPECT_NEAR(world.Served(1s), 1, 0.01);
}

// Prevents: a part so small that its mount needs seconds to show what it can use.
TEST(LimitDividerTest, WhoAskedForNearlyNothingGrowsAtOnce) {
  World world(2, 1);
  world.Ask(0, 5);
  world.Ask(1, 1e-5);
  world.Run(4s);
  world.Ask(1, 5);
  world.Run(2s);
  EXPECT_GE(world.PartOf(1), 0.25);
  world.Run(2s);
  EXPECT_NEAR(world.PartOf(1), 0.5, 0.05);
}

TEST(LimitDividerTest, WhatIsNotAskedForIsHandedOutToo) {
  World world(2, 1);
  world.Ask(0, 0.2);
  world.Ask(1, 0.1);
  world.Run(4s);
  EXPECT_GE(world.Sum(), 0.99);
  EXPECT_GE(world.PartOf(0), 0.5) << "so that it may grow";
}

TEST(LimitDividerTest, ANewcomerHasItsPartAtOnceAndTheSumDoesNotGrow) {
  World world(4, 1);
  world.Ask(0, 5);
  world.Run(3s);
  EXPECT_GE(world.PartOf(0), 0.99);
  for (size_t newcomer = 1; newcomer < 4; ++newcomer) {
    world.Ask(newcomer, 5);
    for (int i = 0; i < 60; ++i) {
      world.Run(5ms);
      ASSERT_LE(world.Obeyed(), 1 + 1e-9);
    }
    EXPECT_GE(world.PartOf(newcomer), 0.7 / static_cast<double>(newcomer + 1));
    world.Run(2s);
    EXPECT_NEAR(world.Served(1s), 1, 0.01);
  }
}

// Goal: whoever asks by fits and starts gets its mean, and leaves the others nearly all the rest.
TEST(LimitDividerTest, BurstsTakeLittleFromTheTotal) {
  for (const Duration period : {50ms, 100ms, 200ms, 500ms}) {
    World world(2, 1);
    world.Ask(0, 5);
    world.AskInBursts(1, 1, period * 3 / 10, period * 7 / 10);
    world.Run(6s);
    EXPECT_GE(world.Served(4s), period < 500ms ? 0.98 : 0.95) << period.count();
    EXPECT_GE(world.ServedOf(1, 4s), 0.28) << period.count();
  }
}

TEST(LimitDividerTest, WithoutTheDividerTheLastDivisionHoldsForAWhile) {
  World world(4, 1);
  world.Ask(0, 5);
  world.Ask(1, 0.1);
  world.Run(4s);
  const double before = world.PartOf(0);
  EXPECT_GE(before, 0.85);
  world.StopDivider();
  world.Run(kPartLasts - 200ms);
  EXPECT_EQ(world.PartOf(0), before);
  world.Run(20s);
  EXPECT_NEAR(world.PartOf(0), 0.5, 0.01) << "an equal part";
  EXPECT_LE(world.Obeyed(), 1);
  world.NewDivider();
  world.Run(LimitDivider::kForgotten - 100ms);
  EXPECT_NEAR(world.PartOf(0), 0.5, 0.01) << "a new one hears of all first";
  world.Run(1s);
  EXPECT_NEAR(world.PartOf(0), before, 0.05);
  EXPECT_LE(world.Obeyed(), 1);
}

TEST(LimitDividerTest, ANewDividerLeavesAllAsItIs) {
  World world(2, 1);
  world.Ask(0, 5);
  world.Ask(1, 0.2);
  world.Run(4s);
  const double before = world.PartOf(0);
  world.NewDivider();
  for (int i = 0; i < 30; ++i) {
    world.Run(100ms);
    EXPECT_NEAR(world.PartOf(0), before, 1e-6);
  }
}

TEST(LimitDividerTest, ThePartOfAMountThatDiesIsGivenAwayWhenItHasRunOut) {
  World world(3, 1);
  world.Ask(0, 5);
  world.Ask(1, 5);
  world.Run(4s);
  world.Kill(0);
  world.Run(kPartLasts - 100ms);
  EXPECT_LE(world.PartOf(1), 0.55) << "it may only be cut off";
  world.Run(500ms);
  EXPECT_GE(world.PartOf(1), 0.99);
}

TEST(LimitDividerTest, OfASessionThatEndsItIsGivenAwayAtOnce) {
  World world(3, 1);
  world.Ask(0, 5);
  world.Ask(1, 5);
  world.Run(4s);
  world.Kill(0);
  world.EndSession(0);
  world.Run(200ms);
  EXPECT_GE(world.PartOf(1), 0.99);
}

TEST(LimitDividerTest, WhoAloneIsCutOffHasAnEqualPartAtMostAndGivesItUpWhenItIsBack) {
  World world(2, 1);
  world.Ask(0, 5);
  world.Ask(1, 0.1);
  world.Run(4s);
  world.CutOff(0, true);
  world.Run(10s);
  EXPECT_NEAR(world.PartOf(0), 0.5, 0.01);
  world.Ask(1, 5);
  world.Run(1s);
  EXPECT_GE(world.PartOf(1), 0.99);
  world.CutOff(0, false);
  world.Run(2s);
  EXPECT_LE(world.Obeyed(), 1);
  EXPECT_NEAR(world.PartOf(0), 0.5, 0.03);
}

TEST(LimitDividerTest, AnOlderRequestChangesNothing) {
  LimitDivider divider(TimePoint{0});
  divider.SetLimits({{kClass, kRate}});
  const TimePoint now = TimePoint{0} + LimitDivider::kForgotten;
  const LimitReport report{
      .class_id = kClass, .interval = 100ms, .queued_bytes = kRate, .limited = 100ms};
  EXPECT_EQ(divider.Divide(1, 7, {report}, now).size(), 1u);
  EXPECT_EQ(divider.Granted(kClass), 1);
  EXPECT_TRUE(divider.Divide(1, 7, {report}, now).empty());
  EXPECT_TRUE(divider.Divide(1, 6, {}, now).empty());
  EXPECT_EQ(divider.Granted(kClass), 1);
  EXPECT_TRUE(divider.Divide(1, 8, {}, now).empty());
  EXPECT_EQ(divider.Granted(kClass), 0) << "it has none any more";
}

// Prevents: one mount that says too much takes the parts of all others.
TEST(LimitDividerTest, NobodyObeysMoreThanItWasGivenWhateverItSays) {
  LimitDivider divider(TimePoint{0});
  divider.SetLimits({{kClass, kRate}});
  TimePoint now = TimePoint{0} + LimitDivider::kForgotten;
  const auto ask = [&](uint64_t mount, uint64_t number, double part) {
    return divider
        .Divide(mount, number,
                {{.class_id = kClass,
                  .part = part,
                  .interval = 100ms,
                  .served_bytes = UINT64_MAX,
                  .queued_bytes = UINT64_MAX,
                  .limited = Duration::max()}},
                now)
        .at(0)
        .part;
  };
  double honest = 0;
  double given = 0;
  for (uint64_t number = 1; number <= 30; ++number, now += 100ms) {
    honest = ask(1, number, honest);
    given = ask(2, number, number == 1 ? 0 : 1);
    ASSERT_LE(divider.Granted(kClass), 1 + 1e-9);
  }
  EXPECT_NEAR(honest, 0.5, 0.01);
  EXPECT_NEAR(given, 0.5, 0.01);
}

// Of a mount that nobody knows, and of one that goes on to say what it was told to give up.
TEST(LimitDividerTest, WhoeverSaysThatHeObeysAllGetsAnEqualPartInTheEnd) {
  for (const bool was_alone : {false, true}) {
    LimitDivider divider(TimePoint{0});
    divider.SetLimits({{kClass, kRate}});
    TimePoint now = TimePoint{0} + LimitDivider::kForgotten;
    const auto ask = [&](uint64_t mount, uint64_t number, double part) {
      const uint64_t much = kRate;
      return divider
          .Divide(mount, number,
                  {{.class_id = kClass,
                    .part = part,
                    .interval = 100ms,
                    .served_bytes = much,
                    .queued_bytes = much,
                    .limited = 100ms}},
                  now)
          .at(0)
          .part;
    };
    uint64_t number = 0;
    for (; was_alone && number < 10; now += 100ms) ask(2, ++number, 1);
    double honest = 0;
    for (int i = 0; i < 100; ++i, now += 100ms) {
      honest = ask(1, ++number, honest);
      ask(2, ++number, 1);
    }
    EXPECT_GT(honest, 0.4) << was_alone;
  }
}

TEST(LimitDividerTest, WhatWasServedBeyondAnyMeasureIsForgottenWithinTwoSeconds) {
  LimitDivider divider(TimePoint{0});
  divider.SetLimits({{kClass, kRate}});
  TimePoint now = TimePoint{0} + LimitDivider::kForgotten;
  std::vector<double> parts(2);
  for (uint64_t number = 1; number <= 60; ++number, now += 100ms) {
    for (uint64_t mount = 0; mount < 2; ++mount) {
      LimitReport report{.class_id = kClass, .part = parts[mount], .interval = 100ms};
      if (mount == 0) report.served_bytes = number == 20 ? UINT64_MAX : 0;
      if (mount == 1) {
        report.served_bytes = static_cast<uint64_t>(parts[1] * kRate / 10);
        report.queued_bytes = kRate;
        report.limited = 100ms;
      }
      parts[mount] = divider.Divide(mount, number, {report}, now).at(0).part;
    }
    if (number == 19) {
      EXPECT_GE(parts[1], 0.9);
    }
    if (number == 25) {
      EXPECT_LE(parts[1], 0.6);
    }
  }
  EXPECT_GE(parts[1], 0.9);
}

// Goal: what a request costs hardly grows with the mounts. Method: all report ten times a second,
// each for three classes, and how many shares of others were looked at for it is counted.
TEST(LimitDividerTest, ARequestCostsNoMoreThanAFewLooksHoweverManyMountsThereAre) {
  constexpr uint64_t kMounts = 2000, kRounds = 5;
  LimitDivider divider(TimePoint{0});
  divider.SetLimits({{ClassId(16), kRate}, {ClassId(17), kRate}, {ClassId(18), kRate}});
  TimePoint now = TimePoint{0} + LimitDivider::kForgotten;
  std::map<std::pair<uint64_t, uint32_t>, double> parts;
  const auto round = [&](uint64_t number) {
    for (uint64_t mount = 0; mount < kMounts; ++mount, now += 50us) {
      std::vector<LimitReport> reports;
      for (uint32_t id = 16; id < 19; ++id) {
        reports.push_back({.class_id = ClassId(id),
                           .part = parts[{mount, id}],
                           .interval = 100ms,
                           .queued_bytes = kRate / 10,
                           .limited = 100ms});
      }
      for (const LimitPart& part : divider.Divide(mount, number, reports, now)) {
        parts[{mount, part.class_id.value}] = part.part;
      }
    }
  };
  round(1);
  const uint64_t before = divider.looked_at();
  for (uint64_t number = 2; number <= 1 + kRounds; ++number) round(number);
  EXPECT_LE(divider.looked_at() - before, kRounds * kMounts * 3 * 17);
  for (const auto& [key, part] : parts) ASSERT_NEAR(part, 1.0 / kMounts, 0.2 / kMounts);
  double sum = 0;
  for (const auto& [key, part] : parts) sum += key.second == 16 ? part : 0;
  EXPECT_GE(sum, 0.98);
  EXPECT_LE(divider.Granted(kClass), 1 + 1e-9);
}

// Goal: the sum of what mounts obey stays within the limit, but for an equal part of each that is
// cut off, and nearly all of it is used while somebody asks for more. Method: random demands,
// delays, losses, mounts that die and come back as others, dividers that begin anew. A mount of
// this model saves up 1 % of its part.
TEST(LimitDividerTest, TheSumStaysWithinTheLimitWhateverHappens) {
  Prng prng(testing::TestSeed());
  for (int run = 0; run < 30; ++run) {
    World world(prng.Uniform(2, 9), prng.Next());
    const bool calm = run % 3 == 0;
    if (!calm) {
      world.Lose(prng.Real() * 0.3);
      world.Delay(Duration(static_cast<int64_t>(prng.Uniform(1, 400)) * 1'000'000));
    }
    for (int change = 0; change < 20; ++change) {
      for (size_t i = 0; i < world.size(); ++i) {
        if (prng.Chance(0.3)) world.Ask(i, prng.Chance(0.4) ? 0 : prng.Real() * 3);
      }
      if (!calm && prng.Chance(0.1)) {
        const size_t mount = prng.Uniform(0, world.size() - 1);
        world.EndSession(mount);
        world.Start(mount);
      }
      if (!calm && prng.Chance(0.1)) world.NewDivider();
      world.Ask(prng.Uniform(0, world.size() - 1), 3);
      for (int i = 0; i < 50; ++i) {
        world.Run(100ms);
        ASSERT_LE(world.Sum(), 1 + 1e-9) << "run " << run;
        ASSERT_LE(calm ? world.Served(1s) : 0, 1.02) << "run " << run;
        // A mount that grows late may cost some percent of a second.
        const double least = !calm || i < 29 ? 0 : i < 49 ? 0.95 : 0.98;
        ASSERT_GE(world.Served(1s), least) << "run " << run << ", change " << change;
      }
    }
  }
}

}  // namespace
}  // namespace weir
