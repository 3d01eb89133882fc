#include "common/qos/qos_config.h"

#include <gmock/gmock.h>

namespace weir {
namespace {

constexpr uint64_t kMiB = 1 << 20;

TEST(TokensOfTest, OneTokenBuysOneKibAndNothingIsFree) {
  EXPECT_EQ(TokensOf(0), 1);
  EXPECT_EQ(TokensOf(1), 1);
  EXPECT_EQ(TokensOf(1024), 1);
  EXPECT_EQ(TokensOf(1025), 2);
  EXPECT_EQ(TokensOf(256 << 10), 256);
}

TEST(ProfileTest, TableRowsKeepRatesAndDepth) {
  SchedulerConfig base;
  base.token_rate = 7;
  base.depth = 3;
  base.best_effort_min = 5;
  const SchedulerConfig odis = *ApplyProfile("odis", base);
  EXPECT_EQ(odis.profile, "odis");
  EXPECT_EQ(odis.guarantee, GuaranteeKind::kHtb);
  EXPECT_EQ(odis.surplus, SurplusKind::kFcfs);
  EXPECT_EQ(odis.gate, GateKind::kStrict);
  EXPECT_EQ(odis.dispatch, DispatchKind::kCscan);
  EXPECT_TRUE(odis.maximizer);
  EXPECT_EQ(odis.token_rate, 7u);
  EXPECT_EQ(odis.depth, 3u);
  EXPECT_EQ(odis.best_effort_min, 5u);
  EXPECT_EQ(ApplyProfile("sfq", base)->sharing, SharingKind::kSingle);
  EXPECT_EQ(ApplyProfile("dsfq-total", base)->sharing, SharingKind::kTotal);
  EXPECT_EQ(ApplyProfile("dsfq-hybrid", base)->dispatch, DispatchKind::kFifo);
  EXPECT_EQ(ApplyProfile("noqos", odis)->guarantee, GuaranteeKind::kNone);
  const SchedulerConfig disks = *ApplyProfile("vd", odis);
  EXPECT_EQ(disks.surplus, SurplusKind::kCooperative);
  EXPECT_EQ(disks.cost, CostKind::kDeviceTime);
  const SchedulerConfig tiers = *ApplyProfile("baa", disks);
  EXPECT_EQ(tiers.sharing, SharingKind::kTotal);
  EXPECT_EQ(tiers.cost, CostKind::kRequests);
  const SchedulerConfig stonehenge = *ApplyProfile("cvc", tiers);
  EXPECT_EQ(stonehenge.surplus, SurplusKind::kPass);
  EXPECT_EQ(stonehenge.dispatch, DispatchKind::kCvc);
  EXPECT_EQ(stonehenge.cost, CostKind::kRequests);
  EXPECT_EQ(ApplyProfile("vc", base)->dispatch, DispatchKind::kVc);
  EXPECT_EQ(ApplyProfile("cscan", base)->dispatch, DispatchKind::kCscan);
  const SchedulerConfig unified = *ApplyProfile("unified", tiers);
  EXPECT_EQ(unified.dispatch, DispatchKind::kCvc);
  EXPECT_EQ(unified.cost, CostKind::kBytes);
  EXPECT_EQ(unified.gate, GateKind::kConserving);
  EXPECT_FALSE(unified.maximizer);
}

TEST(ProfileTest, TheDefaultConfigIsUnified) {
  const SchedulerConfig unified = *ApplyProfile("unified", {}), plain;
  EXPECT_EQ(plain.profile, unified.profile);
  EXPECT_EQ(plain.guarantee, unified.guarantee);
  EXPECT_EQ(plain.surplus, unified.surplus);
  EXPECT_EQ(plain.sharing, unified.sharing);
  EXPECT_EQ(plain.gate, unified.gate);
  EXPECT_EQ(plain.dispatch, unified.dispatch);
  EXPECT_EQ(plain.maximizer, unified.maximizer);
}

TEST(ProfileTest, UnknownProfilesListWhatThereIs) {
  EXPECT_EQ(ApplyProfile("golden", {}).status().message(),
            "unknown profile 'golden' (there is: noqos, odis, sfq, dsfq-total, dsfq-hybrid, "
            "vd, vc, cscan, cvc, baa, dsfq-hybrid-h, unified)");
}

TEST(WordsTest, EveryWordIsReadBack) {
  EXPECT_EQ(*ParseSurplus(ToText(SurplusKind::kDsfq)), SurplusKind::kDsfq);
  EXPECT_EQ(*ParseSurplus("fcfs"), SurplusKind::kFcfs);
  EXPECT_EQ(*ParseSurplus(ToText(SurplusKind::kCooperative)), SurplusKind::kCooperative);
  EXPECT_EQ(*ParseCost(ToText(CostKind::kDeviceTime)), CostKind::kDeviceTime);
  EXPECT_EQ(*ParseSharing(ToText(SharingKind::kHybrid)), SharingKind::kHybrid);
  EXPECT_EQ(*ParseSharing("total"), SharingKind::kTotal);
  EXPECT_EQ(*ParseGate(ToText(GateKind::kConserving)), GateKind::kConserving);
  EXPECT_EQ(*ParseDispatch(ToText(DispatchKind::kCscan)), DispatchKind::kCscan);
  EXPECT_EQ(*ParseDispatch("cvc"), DispatchKind::kCvc);
  EXPECT_EQ(*ParseDispatch(ToText(DispatchKind::kVc)), DispatchKind::kVc);
  EXPECT_EQ(*ParseSurplus(ToText(SurplusKind::kPass)), SurplusKind::kPass);
  EXPECT_EQ(*ParseCost(ToText(CostKind::kRequests)), CostKind::kRequests);
  EXPECT_EQ(*ParseScope(ToText(ReservationScope::kOsd)), ReservationScope::kOsd);
  EXPECT_EQ(ToText(GuaranteeKind::kNone), "none");
}

TEST(DepthTest, AutoIsOneForVirtualDisksAndManyForOthers) {
  SchedulerConfig config;
  EXPECT_EQ(config.EffectiveDepth(), SchedulerConfig::kAutoDepth);
  config.surplus = SurplusKind::kCooperative;
  EXPECT_EQ(config.EffectiveDepth(), 1u);
  config.depth = 8;
  EXPECT_EQ(config.EffectiveDepth(), 8u);
}

TEST(WordsTest, TyposAreUnknown) {
  EXPECT_EQ(ParseDispatch("scan").status().message(),
            "unknown dispatch 'scan' (there is: fifo, cscan, vc, cvc)");
  EXPECT_EQ(ParseGate("open").status().message(),
            "unknown gate 'open' (there is: strict, conserving)");
  EXPECT_EQ(ParseGate("").code(), ErrorCode::kInvalid);
}

TEST(BestEffortMinTest, IsOnePercentOrOneLargestRequestASecond) {
  SchedulerConfig config;
  EXPECT_EQ(config.EffectiveBestEffortMin(), 0u);  // not profiled: nothing can be promised
  config.token_rate = 40 * kMiB;
  EXPECT_EQ(config.EffectiveBestEffortMin(), 4 * kMiB);
  config.token_rate = 4000 * kMiB;
  EXPECT_EQ(config.EffectiveBestEffortMin(), 40 * kMiB);
  config.token_rate = kMiB;
  EXPECT_EQ(config.EffectiveBestEffortMin(), kMiB);
  config.best_effort_min = 0;
  EXPECT_EQ(config.EffectiveBestEffortMin(), 0u);
}

// Experiment E45: G0 = 40, best-effort minimum 0.4.
TEST(AdmissionTest, AddsUpToTheTokenRateAndNoFurther) {
  const uint64_t minimum = 40 * kMiB / 100;
  EXPECT_TRUE(AdmitAdditive(40 * kMiB, minimum, 5 * kMiB).admitted);
  EXPECT_TRUE(AdmitAdditive(40 * kMiB, minimum + 5 * kMiB, 15 * kMiB).admitted);
  const AdmissionDecision third = AdmitAdditive(40 * kMiB, minimum + 20 * kMiB, 20 * kMiB);
  EXPECT_FALSE(third.admitted);
  EXPECT_EQ(third.promised, minimum + 20 * kMiB);
  EXPECT_EQ(third.largest, 20 * kMiB - minimum);
  EXPECT_TRUE(AdmitAdditive(40 * kMiB, minimum + 20 * kMiB, third.largest).admitted);
  EXPECT_FALSE(AdmitAdditive(40 * kMiB, 41 * kMiB, 1).admitted);
  EXPECT_FALSE(AdmitAdditive(40 * kMiB, kMiB, UINT64_MAX).admitted);
}

TEST(BookingTest, ClusterScopeBooksTheLeewayScaledShare) {
  EXPECT_EQ(BookedPerOsd(40 * kMiB, ReservationScope::kOsd, 3), 40 * kMiB);
  EXPECT_EQ(BookedPerOsd(40 * kMiB, ReservationScope::kCluster, 3), 20 * kMiB);
  EXPECT_EQ(BookedPerOsd(40 * kMiB, ReservationScope::kCluster, 1), 40 * kMiB);
  EXPECT_EQ(BookedPerOsd(10, ReservationScope::kCluster, 4), 4u);  // 3.75, rounded up
  EXPECT_EQ(BookedPerOsd(UINT64_MAX, ReservationScope::kCluster, 2), UINT64_MAX / 4 * 3 + 3);
}

TEST(BookingTest, LeewayIsFromOneToTheWhole) {
  const auto booked = [](double leeway) {
    return BookedPerOsd(40 * kMiB, ReservationScope::kCluster, 4, leeway);
  };
  EXPECT_EQ(booked(1), 10 * kMiB);
  EXPECT_EQ(booked(1.1), 11 * kMiB);
  EXPECT_EQ(booked(0), 10 * kMiB);
  EXPECT_EQ(booked(4), 40 * kMiB);
  EXPECT_EQ(booked(1e9), 40 * kMiB);
  EXPECT_EQ(BookedPerOsd(40 * kMiB, ReservationScope::kOsd, 4, 1), 40 * kMiB);
}

TEST(PromiseToUsersTest, FitIntoTheClassesPromiseAndAreDividedLikeIt) {
  ClassSpec spec;
  spec.name = "gold";
  EXPECT_TRUE(CheckUsers(spec).ok());
  spec.reservation = Reservation{.bytes_per_s = 20 * kMiB, .ends = {}};
  spec.reservation->users = {{0, 8 * kMiB}, {1001, 12 * kMiB}};
  EXPECT_TRUE(CheckUsers(spec).ok());
  const std::vector<TransactionSpec> all{{1, 2 * kMiB}, {1002, 3 * kMiB}};
  EXPECT_EQ(TransactionsOf(*spec.reservation, 4), all) << "root is no 0; together no more than 20";
  spec.reservation->bytes_per_s = 30 * kMiB;
  const std::vector<TransactionSpec> roomy{{1, 3 * kMiB}, {1002, 9 * kMiB / 2}};
  EXPECT_EQ(TransactionsOf(*spec.reservation, 4), roomy) << "each OSD has 1.5 quarters";
  spec.reservation->bytes_per_s = 20 * kMiB;
  spec.reservation->users.push_back({7, kMiB});
  const Status refused = CheckUsers(spec);
  EXPECT_EQ(refused.code(), ErrorCode::kRefused);
  EXPECT_NE(refused.message().find("uid 7: 20MiB/s of the class's 20MiB/s"), std::string::npos)
      << refused;
}

}  // namespace
}  // namespace weir
