#include "common/placement/cluster_map.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>

#include "common/wire/map.pb.h"

namespace weir {
namespace {

ClusterMap Sample() {
  ClusterMap map;
  map.epoch = Epoch(5);
  map.tag_epoch = 3;
  map.cluster_uuid = "2f0c";
  for (uint32_t i = 0; i < 3; ++i) {
    OsdEntry osd;
    osd.id = OsdId(i);
    osd.endpoint = "tcp://127.0.0.1:" + std::to_string(7000 + i);
    osd.up = i != 1;
    osd.capacity_bytes = 1 << 30;
    osd.qos.token_rate = 40 << 20;
    osd.qos.best_effort_min = 0;
    map.osds[osd.id] = osd;
  }
  Pool pool;
  pool.id = PoolId(1);
  pool.name = "data";
  pool.osds = {OsdId(0), OsdId(2)};
  pool.chains = ComputeChains(pool.id, 16, 1, {{OsdId(0), 1}, {OsdId(2), 1}});
  pool.in_use = true;
  map.pools[pool.id] = pool;
  ClassEntry gold;
  gold.spec.id = kFirstUserClass;
  gold.spec.name = "gold";
  gold.spec.limit_bytes_per_s = 7;
  gold.limit_names_per_s = 8;
  gold.spec.reservation = Reservation{9, ReservationScope::kOsd, WallTime{11}};
  gold.spec.reservation->leeway = 1.25;
  gold.spec.reservation->users = {{1001, 5}};
  gold.users = {1000};
  map.classes[gold.spec.id] = gold;
  return map;
}

TEST(ClusterMapTest, SurvivesTheWire) {
  const ClusterMap map = Sample();
  const wire::ClusterMap message = ToWire(map);
  auto back = FromWire(message);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(ToWire(*back).SerializeAsString(), message.SerializeAsString());
  EXPECT_EQ(back->pools.at(PoolId(1)).chains, map.pools.at(PoolId(1)).chains);
  EXPECT_EQ(back->FindClass("gold")->spec.reservation->ends, WallTime{11});
  EXPECT_EQ(back->FindClass("gold")->spec.reservation,
            map.classes.at(ClassId(16)).spec.reservation);
  EXPECT_EQ(back->FindClass("lead"), nullptr);
  EXPECT_EQ(back->FindPool("data")->id, PoolId(1));
  EXPECT_EQ(back->ClusterHash(), map.ClusterHash());
}

TEST(ClusterMapTest, SaysOverTheWireThatAnOsdIsNearlyFull) {
  ClusterMap map = Sample();
  map.near_full = true;
  wire::ClusterMap message = ToWire(map);
  EXPECT_TRUE(FromWire(message)->near_full);
  message.clear_near_full();  // of a sender that knows nothing of it
  EXPECT_FALSE(FromWire(message)->near_full);
}

TEST(ClusterMapTest, ChainsKeepVersionsLivesAndStatesOverTheWire) {
  ClusterMap map = Sample();
  map.term = 77;
  Pool& pool = map.pools.at(PoolId(1));
  pool.replicas = 3;
  pool.min_replicas = 2;
  using replication::MemberState;
  pool.chains[3] = {9,
                    {{OsdId(2), 4, MemberState::kServing},
                     {OsdId(0), 7, MemberState::kSyncing},
                     {OsdId(1), 0, MemberState::kOffline}}};
  const wire::ClusterMap message = ToWire(map);
  const auto back = FromWire(message);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->term, 77u);
  EXPECT_EQ(back->pools.at(PoolId(1)).min_replicas, 2u);
  EXPECT_EQ(back->pools.at(PoolId(1)).chains, pool.chains);
  EXPECT_TRUE(back->pools.at(PoolId(1)).chains[3].Has(OsdId(1)));
  for (const wire::Chain& chain : message.pools(0).chains()) EXPECT_TRUE(chain.osds().empty());
}

TEST(ClusterMapTest, AChainOfWireOneIsReadAsMembersThatServe) {
  wire::ClusterMap message = ToWire(Sample());
  wire::Chain old;
  old.add_osds(2);
  old.add_osds(0);
  *message.mutable_pools(0)->mutable_chains(5) = old;
  auto map = FromWire(message);
  ASSERT_TRUE(map.ok()) << map.status();
  using replication::MemberState;
  const Chain expected{
      1, {{OsdId(2), 0, MemberState::kServing}, {OsdId(0), 0, MemberState::kServing}}};
  EXPECT_EQ(map->pools.at(PoolId(1)).chains[5], expected);
  // With members, nobody looks at it.
  *message.mutable_pools(0)->mutable_chains(5) = ToWire(expected);
  message.mutable_pools(0)->mutable_chains(5)->add_osds(9);
  map = FromWire(message);
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_EQ(map->pools.at(PoolId(1)).chains[5], expected);
}

TEST(ClusterMapTest, AFixedServiceEstimateSurvivesTheWireUntilAProfileIsSet) {
  ClusterMap map = Sample();
  SchedulerConfig& qos = map.osds.at(OsdId(0)).qos;
  qos.cvc.fixed_estimate = std::chrono::milliseconds(13);
  auto back = FromWire(ToWire(map));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->osds.at(OsdId(0)).qos.cvc.fixed_estimate, std::chrono::milliseconds(13));
  EXPECT_EQ(back->osds.at(OsdId(1)).qos.cvc.fixed_estimate, Duration(0));
  EXPECT_EQ(ApplyProfile("cvc", qos)->cvc.fixed_estimate, Duration(0));
}

TEST(ClusterMapTest, TiersAndTheirAllocationSurviveTheWire) {
  ClusterMap map = Sample();
  OsdEntry& osd = map.osds.at(OsdId(0));
  osd.tiers = {{TierName::FromWire("ssd"), 10}, {TierName::FromWire("hdd"), 20}};
  osd.qos.allocation = {.kind = AllocationKind::kDominantResource,
                        .period = std::chrono::seconds(10),
                        .window = std::chrono::seconds(6),
                        .alarm = false};
  wire::ClusterMap message = ToWire(map);
  const auto back = FromWire(message);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->osds.at(OsdId(0)).qos.allocation, osd.qos.allocation);
  ASSERT_EQ(back->osds.at(OsdId(0)).tiers.size(), 2u);
  EXPECT_EQ(back->osds.at(OsdId(0)).tiers[1].name.ToString(), "hdd");
  EXPECT_EQ(back->osds.at(OsdId(0)).tiers[1].capacity_bytes, 20u);
  EXPECT_TRUE(back->osds.at(OsdId(1)).tiers.empty());
  message.mutable_osds(0)->mutable_tiers(0)->set_name("no name");
  EXPECT_EQ(FromWire(message).code(), ErrorCode::kBadMessage);
}

// Of a sender that knows nothing of it.
TEST(ClusterMapTest, WithoutAWordAllocationIsBottleneckAwareWithItsAlarm) {
  wire::QosConfig message = ToWire(SchedulerConfig());
  message.clear_allocation();
  message.clear_allocation_alarm();
  const auto config = FromWire(message);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->allocation, AllocationConfig());
}

TEST(ClusterMapTest, EveryObjectHasAChainOfItsPool) {
  const ClusterMap map = Sample();
  std::map<OsdId, int> heads;
  for (uint64_t i = 0; i < 1000; ++i) {
    const Chain* chain = map.ChainOf(PoolId(1), {InodeId(i), i / 3});
    ASSERT_NE(chain, nullptr);
    ++heads[chain->head()];
  }
  EXPECT_EQ(heads.size(), 2u);
  EXPECT_EQ(map.ChainOf(PoolId(2), {}), nullptr);
}

TEST(ClusterMapTest, WhatIsOutOfRangeIsABadMessageThatNamesIt) {
  const auto message = [](const std::function<void(wire::ClusterMap&)>& spoil) {
    wire::ClusterMap wire_map = ToWire(Sample());
    spoil(wire_map);
    const auto result = FromWire(wire_map);
    EXPECT_EQ(result.code(), ErrorCode::kBadMessage);
    return result.status().message();
  };
  using ::testing::HasSubstr;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(message([](auto& m) { m.mutable_osds(1)->set_weight(-1); }), HasSubstr("osd.1"));
  EXPECT_THAT(message([](auto& m) { m.mutable_osds(1)->mutable_qos()->set_gate("open"); }),
              HasSubstr("open"));
  EXPECT_THAT(message([](auto& m) { *m.add_osds() = m.osds(0); }), HasSubstr("twice"));
  EXPECT_THAT(message([](auto& m) { m.mutable_pools(0)->set_replicas(0); }), HasSubstr("replicas"));
  EXPECT_THAT(message([](auto& m) { m.mutable_pools(0)->add_chains(); }), HasSubstr("empty"));
  EXPECT_THAT(message([](auto& m) { m.mutable_pools(0)->add_chains()->add_osds(9); }),
              HasSubstr("unknown OSD"));
  EXPECT_THAT(message([](auto& m) {
                auto* chain = m.mutable_pools(0)->add_chains();
                chain->add_osds(0);
                chain->add_osds(0);
              }),
              HasSubstr("twice"));
  const auto members = [&](const std::vector<wire::ChainMember::State>& states) {
    return message([&](auto& m) {
      auto* chain = m.mutable_pools(0)->add_chains();
      for (const auto state : states) {
        auto* member = chain->add_members();
        member->set_osd(static_cast<uint32_t>(chain->members_size() - 1));
        member->set_state(state);
      }
    });
  };
  using Member = wire::ChainMember;
  EXPECT_THAT(members({Member::OFFLINE}), HasSubstr("nobody serves"));
  EXPECT_THAT(members({Member::SERVING, Member::OFFLINE, Member::SYNCING}), HasSubstr("syncing"));
  EXPECT_THAT(members({Member::SERVING, Member::SYNCING, Member::SYNCING}), HasSubstr("syncing"));
  EXPECT_THAT(message([](auto& m) { m.mutable_pools(0)->set_min_replicas(2); }),
              HasSubstr("min_replicas"));
  EXPECT_THAT(message([](auto& m) { m.mutable_pools(0)->add_osds(9); }), HasSubstr("unknown OSD"));
  EXPECT_THAT(message([&](auto& m) { m.mutable_classes(0)->set_weight(nan); }),
              HasSubstr("class 16: weight"));
  EXPECT_THAT(message([&](auto& m) { m.mutable_classes(0)->set_weight(0); }), HasSubstr("weight"));
  EXPECT_THAT(
      message([](auto& m) { m.mutable_classes(0)->mutable_reservation()->set_scope("galaxy"); }),
      HasSubstr("galaxy"));
  EXPECT_THAT(
      message([](auto& m) { m.mutable_classes(0)->mutable_reservation()->set_leeway(0.5); }),
      HasSubstr("leeway"));
}

}  // namespace
}  // namespace weir
