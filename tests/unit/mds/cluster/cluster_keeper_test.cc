// The cluster map: joining, liveness, classes, reservations and their admission, pools.
#include "mds/cluster/cluster_keeper.h"

#include "tests/unit/mds/mds_fixture.h"

namespace weir::mds {
namespace {

using namespace std::chrono_literals;
constexpr uint64_t kMiB = 1 << 20;

class ClusterKeeperTest : public MdsFixture {
 protected:
  wire::ReserveRequest Want(const std::string& name, uint64_t rate) {
    wire::ReserveRequest request;
    request.set_name(name);
    request.set_bytes_per_s(rate);
    return request;
  }
  ErrorCode SetRates(std::optional<uint64_t> token_rate, std::optional<uint64_t> minimum,
                     std::string* why = nullptr) {
    wire::SetOsdRequest request;
    if (token_rate) request.set_token_rate(*token_rate);
    if (minimum) request.set_best_effort_min(*minimum);
    const Answer answer = Admin(wire::MDS_SET_OSD, request);
    if (why != nullptr) *why = answer.status.message();
    return answer.status.code();
  }
  std::shared_ptr<const ClusterMap> Map() { return core->keeper().map(); }
  // As an OSD says it with its watch.
  std::shared_ptr<TestCall> Uses(uint32_t osd, uint64_t used_bytes) {
    wire::WatchRequest watch;
    watch.set_osd_id(osd);
    watch.set_have_epoch(Map()->epoch.value);
    watch.set_used_bytes(used_bytes);
    watch.set_wait_ms(1000);
    return Send(wire::MDS_WATCH, watch);
  }
};

TEST_F(ClusterKeeperTest, GivesIdsInOrderAndKeepsThem) {
  EXPECT_EQ(AddOsd("disk-b", 1), 1u);
  EXPECT_EQ(AddOsd("disk-c", 1), 2u);
  EXPECT_EQ(AddOsd("disk-b", 1), 1u);
  Restart();
  EXPECT_EQ(AddOsd("disk-c", 1), 2u);
  EXPECT_EQ(AddOsd("disk-d", 1), 3u);
  EXPECT_EQ(Map()->FindPool("default")->osds.size(), 4u);
}

TEST_F(ClusterKeeperTest, ChainsThatAnOsdTakesGetTheNextVersionAndItsLifeIsKnown) {
  const auto before = Map()->FindPool("default")->chains;
  EXPECT_EQ(AddOsd("disk-b", 1, 12), 1u);
  const auto after = Map()->FindPool("default")->chains;
  ASSERT_EQ(after.size(), before.size());
  size_t taken = 0;
  for (size_t slot = 0; slot < after.size(); ++slot) {
    EXPECT_EQ(before[slot].version, 1u);
    EXPECT_EQ(after[slot].version, after[slot].head() == OsdId(1) ? 2u : 1u);
    taken += after[slot].head() == OsdId(1) ? 1 : 0;
  }
  EXPECT_GT(taken, 0u);
  EXPECT_EQ(core->keeper().LifeOf(OsdId(1)), 12u);
  EXPECT_EQ(core->keeper().LifeOf(OsdId(9)), 0u);
  EXPECT_EQ(AddOsd("disk-b", 1, 13), 1u);
  EXPECT_EQ(core->keeper().LifeOf(OsdId(1)), 13u);
  EXPECT_EQ(Map()->FindPool("default")->chains, after) << "it is the same OSD";
  Restart();
  EXPECT_EQ(Map()->FindPool("default")->chains, after);
}

TEST_F(ClusterKeeperTest, RefusesAnOsdOfAnotherClusterNamingBoth) {
  wire::RegisterOsdRequest request;
  request.set_cluster_uuid("elsewhere");
  request.set_osd_uuid("disk-x");
  const Answer answer = Try(wire::MDS_REGISTER_OSD, request);
  EXPECT_EQ(answer.status.code(), ErrorCode::kWrongCluster);
  EXPECT_NE(answer.status.message().find("elsewhere"), std::string::npos);
  EXPECT_NE(answer.status.message().find(Map()->cluster_uuid), std::string::npos);
}

TEST_F(ClusterKeeperTest, AnOsdJoinsPoolsWhenItServesNotWhenItIsFormatted) {
  wire::RegisterOsdRequest mkfs;
  mkfs.set_osd_uuid("disk-b");
  EXPECT_EQ(Ask<wire::RegisterOsdReply>(wire::MDS_REGISTER_OSD, mkfs).osd_id(), 1u);
  EXPECT_EQ(Map()->FindPool("default")->osds.size(), 1u);
  EXPECT_FALSE(Map()->osds.at(OsdId(1)).up);
  AddOsd("disk-b", 1);
  EXPECT_EQ(Map()->FindPool("default")->osds.size(), 2u);
  Touch(kRoot, "f");
  AddOsd("disk-c", 1);
  EXPECT_EQ(Map()->FindPool("default")->osds.size(), 2u) << "in use: its chains stay";
}

TEST_F(ClusterKeeperTest, SilenceForThreeSecondsIsDownAndAWatchIsUpAgain) {
  Obey();
  clock.Advance(2900ms);
  core->Tick();
  EXPECT_TRUE(Map()->osds.at(OsdId(0)).up);
  const Epoch before = Map()->epoch;
  clock.Advance(200ms);
  core->Tick();
  EXPECT_FALSE(Map()->osds.at(OsdId(0)).up);
  EXPECT_EQ(Map()->epoch.value, before.value + 1);
  Obey();
  core->Tick();
  EXPECT_TRUE(Map()->osds.at(OsdId(0)).up);
}

// Goal: mounts hear at once that closes must wait for the disks, and not with every block that
// comes and goes about the border. Method: one OSD of 1 GiB: 128 MiB are to be free, 192 MiB end
// it.
TEST_F(ClusterKeeperTest, SaysAtOnceThatAnOsdIsNearlyFullUntilThereIsRoomAgain) {
  const Epoch before = Map()->epoch;
  Uses(0, (1024 - 128) * kMiB);
  EXPECT_FALSE(Map()->near_full);
  EXPECT_EQ(Map()->epoch, before);
  const auto told = Uses(0, (1024 - 127) * kMiB);
  EXPECT_TRUE(Map()->near_full);
  EXPECT_EQ(Map()->epoch.value, before.value + 1);
  ASSERT_TRUE(told->answer.has_value()) << "the map is newer than the OSD's";
  Uses(0, (1024 - 192) * kMiB);
  core->Tick();
  EXPECT_TRUE(Map()->near_full);
  EXPECT_EQ(Map()->epoch.value, before.value + 1);
  Uses(0, (1024 - 193) * kMiB);
  EXPECT_FALSE(Map()->near_full);
  EXPECT_EQ(Map()->epoch.value, before.value + 2);
}

TEST_F(ClusterKeeperTest, NearlyFullStaysOverARestartUntilTheOsdSpeaks) {
  Uses(0, 900 * kMiB);
  ASSERT_TRUE(Map()->near_full);
  Restart();
  EXPECT_TRUE(Map()->near_full);
  AddOsd("disk-a", 100 << 20);
  core->Tick();
  EXPECT_TRUE(Map()->near_full) << "it has not said what it uses now";
  Uses(0, 100 * kMiB);
  EXPECT_FALSE(Map()->near_full);
}

TEST_F(ClusterKeeperTest, AnOsdThatIsDownIsNotNearlyFull) {
  Uses(0, 1000 * kMiB);
  ASSERT_TRUE(Map()->near_full);
  clock.Advance(3100ms);
  core->Tick();
  EXPECT_FALSE(Map()->osds.at(OsdId(0)).up);
  EXPECT_FALSE(Map()->near_full);
}

TEST_F(ClusterKeeperTest, ReservedClassesExistAndStay) {
  wire::ClassNameRequest name;
  for (const char* word :
       {"best-effort", "system.compaction", "system.purge", "system.recovery", "system.scrub"}) {
    ASSERT_NE(Map()->FindClass(word), nullptr);
    name.set_name(word);
    EXPECT_EQ(Admin(wire::MDS_CLASS_REMOVE, name).status.code(), ErrorCode::kInvalid);
  }
  wire::SetClassRequest request;
  for (const char* bad : {"", "a b", "system.x", "naïve"}) {
    request.set_name(bad);
    EXPECT_EQ(Admin(wire::MDS_CLASS_CREATE, request).status.code(), ErrorCode::kInvalid) << bad;
  }
  EXPECT_EQ(MakeClass("gold").id(), 16u);
  request.set_name("gold");
  EXPECT_EQ(Admin(wire::MDS_CLASS_CREATE, request).status.code(), ErrorCode::kExists);
  request.set_weight(-1);
  EXPECT_EQ(Admin(wire::MDS_CLASS_SET, request).status.code(), ErrorCode::kInvalid);
  request.set_weight(4);
  request.set_limit_bytes_per_s(kMiB);
  request.set_limit_names_per_s(500);
  EXPECT_TRUE(Admin(wire::MDS_CLASS_SET, request).status.ok());
  Restart();
  EXPECT_EQ(Map()->FindClass("gold")->spec.weight, 4);
  EXPECT_DOUBLE_EQ(Map()->FindClass("gold")->spec.min_weight, 0.4);
  EXPECT_EQ(Map()->FindClass("gold")->spec.limit_bytes_per_s, kMiB);
  EXPECT_EQ(Map()->FindClass("gold")->limit_names_per_s, 500u);
}

TEST_F(ClusterKeeperTest, RefusesAReservationWithTheNumbersThatSayWhy) {
  AddOsd("disk-b", 180 * kMiB);
  MakeClass("gold");
  MakeClass("other");
  ASSERT_EQ(SetRates(180 * kMiB, 0), ErrorCode::kOk);
  wire::ReserveRequest other = Want("other", 160 * kMiB);
  other.set_scope("osd");
  EXPECT_TRUE(Admin(wire::MDS_RESERVE, other).status.ok());
  wire::ReserveRequest gold = Want("gold", 200 * kMiB);
  gold.set_scope("osd");
  const Answer answer = Admin(wire::MDS_RESERVE, gold);
  EXPECT_EQ(answer.status.code(), ErrorCode::kRefused);
  EXPECT_EQ(answer.status.message(),
            "cannot reserve 200MiB/s for 'gold' on osd.0: 160MiB/s of 180MiB/s already promised "
            "(largest that fits: 20MiB/s)");
  gold.set_bytes_per_s(20 * kMiB);
  EXPECT_TRUE(Admin(wire::MDS_RESERVE, gold).status.ok());
  std::string why;
  EXPECT_EQ(SetRates(179 * kMiB, {}, &why), ErrorCode::kRefused);
  EXPECT_EQ(SetRates({}, kMiB, &why), ErrorCode::kRefused);
  EXPECT_EQ(why,
            "cannot set the best-effort minimum of osd.0 to 1MiB/s: 180MiB/s of 180MiB/s already "
            "promised (largest that fits: 0B/s)");
  EXPECT_EQ(SetRates(200 * kMiB, {}), ErrorCode::kOk);
}

TEST_F(ClusterKeeperTest, ClusterScopeBooksTheLeewayShareAndReservingAgainReplaces) {
  AddOsd("disk-b", 100 * kMiB);
  MakeClass("gold");
  ASSERT_EQ(SetRates(90 * kMiB, 0), ErrorCode::kOk);
  const Answer answer = Admin(wire::MDS_RESERVE, Want("gold", 120 * kMiB));
  ASSERT_TRUE(answer.status.ok()) << answer.status;
  wire::ReserveReply reply;
  ASSERT_TRUE(reply.ParseFromString(answer.body));
  EXPECT_EQ(reply.booked_per_osd(), 90 * kMiB);
  EXPECT_TRUE(Admin(wire::MDS_RESERVE, Want("gold", 119 * kMiB)).status.ok());
  const Answer refused = Admin(wire::MDS_RESERVE, Want("gold", 121 * kMiB));
  EXPECT_NE(refused.status.message().find("largest that fits: 120MiB/s"), std::string::npos)
      << refused.status;
  wire::ReserveRequest dry = Want("gold", kMiB);
  dry.set_dry_run(true);
  EXPECT_TRUE(Admin(wire::MDS_RESERVE, dry).status.ok());
  EXPECT_EQ(Map()->FindClass("gold")->spec.reservation->bytes_per_s, 119 * kMiB);
}

TEST_F(ClusterKeeperTest, ALeewaySaysWhatATotalBooks) {
  AddOsd("disk-b", 100 * kMiB);
  MakeClass("gold");
  ASSERT_EQ(SetRates(90 * kMiB, 0), ErrorCode::kOk);
  wire::ReserveRequest request = Want("gold", 160 * kMiB);
  EXPECT_EQ(Admin(wire::MDS_RESERVE, request).status.code(), ErrorCode::kRefused);
  request.set_leeway(1.1);
  const Answer answer = Admin(wire::MDS_RESERVE, request);
  ASSERT_TRUE(answer.status.ok()) << answer.status;
  wire::ReserveReply reply;
  ASSERT_TRUE(reply.ParseFromString(answer.body));
  EXPECT_EQ(reply.booked_per_osd(), 88 * kMiB);
  EXPECT_EQ(reply.class_info().booked_bytes_per_s(), 88 * kMiB);
  EXPECT_EQ(reply.class_info().reservation().leeway(), 1.1);
  request.set_bytes_per_s(170 * kMiB);
  const Status refused = Admin(wire::MDS_RESERVE, request).status;
  EXPECT_NE(refused.message().find("largest that fits: 163.64MiB/s"), std::string::npos) << refused;
  request.set_leeway(0.9);
  EXPECT_EQ(Admin(wire::MDS_RESERVE, request).status.code(), ErrorCode::kInvalid);
}

TEST_F(ClusterKeeperTest, ALeewayIsChosenByWhatOsdsSaidOfTheClass) {
  AddOsd("disk-b", 100 * kMiB);
  const uint32_t gold = MakeClass("gold").id();
  ASSERT_EQ(SetRates(90 * kMiB, 0), ErrorCode::kOk);
  wire::ReserveRequest request = Want("gold", 60 * kMiB);
  request.set_choose_leeway(true);
  const auto reserve = [&] {
    wire::ReserveReply reply;
    const Answer answer = Admin(wire::MDS_RESERVE, request);
    EXPECT_TRUE(answer.status.ok()) << answer.status;
    EXPECT_TRUE(reply.ParseFromString(answer.body));
    return reply;
  };
  EXPECT_EQ(reserve().leeway_periods(), 0u);
  EXPECT_EQ(Map()->FindClass("gold")->spec.reservation->leeway, kLeeway);
  uint64_t bytes = 0;
  for (int second = 0; second < 60; ++second) {
    bytes += 1000;
    for (uint32_t osd : {0, 1}) {
      wire::WatchRequest watch;
      watch.set_osd_id(osd);
      watch.set_have_epoch(Map()->epoch.value);
      auto* times = watch.add_osd_times();
      times->set_class_id(gold);
      times->set_bytes(bytes);
      times->set_ops(bytes);
      Send(wire::MDS_WATCH, watch);
    }
    clock.Advance(1s);
  }
  const wire::ReserveReply reply = reserve();
  EXPECT_GE(reply.leeway_periods(), 20u);
  EXPECT_EQ(reply.class_info().reservation().leeway(), 1.1);
  EXPECT_EQ(reply.booked_per_osd(), 33 * kMiB);
}

TEST_F(ClusterKeeperTest, UsersHavePartsOfWhatTheirClassIsPromised) {
  MakeClass("gold");
  const auto give = [this](uint32_t uid, uint64_t rate) {
    wire::ReserveRequest request = Want("gold", rate);
    request.set_user(uid);
    return Admin(wire::MDS_RESERVE, request).status;
  };
  const auto users = [this] { return Map()->FindClass("gold")->spec.reservation->users; };
  EXPECT_EQ(give(1001, kMiB).code(), ErrorCode::kInvalid) << "there is no promise";
  ASSERT_TRUE(Admin(wire::MDS_RESERVE, Want("gold", 10 * kMiB)).status.ok());
  EXPECT_TRUE(give(1001, 6 * kMiB).ok());
  EXPECT_TRUE(give(0, 4 * kMiB).ok());
  const Status full = give(1002, kMiB);
  EXPECT_EQ(full.code(), ErrorCode::kRefused);
  EXPECT_NE(full.message().find("largest that fits: 0B/s"), std::string::npos) << full;
  EXPECT_TRUE(give(1001, 5 * kMiB).ok()) << "instead of 6";
  EXPECT_EQ(give(UINT32_MAX, kMiB).code(), ErrorCode::kInvalid);
  const std::vector<UserPart> both{{0, 4 * kMiB}, {1001, 5 * kMiB}};
  EXPECT_EQ(users(), both);

  const Status less = Admin(wire::MDS_RESERVE, Want("gold", 8 * kMiB)).status;
  EXPECT_EQ(less.code(), ErrorCode::kRefused) << less;
  EXPECT_TRUE(Admin(wire::MDS_RESERVE, Want("gold", 9 * kMiB)).status.ok());
  Restart();
  EXPECT_EQ(users(), both);

  // Where cgroups share the class nobody knows these users.
  wire::SetClassRequest flow;
  flow.set_name("gold");
  flow.set_flow("cgroup");
  EXPECT_EQ(Admin(wire::MDS_CLASS_SET, flow).status.code(), ErrorCode::kInvalid);
  flow.set_name("silver");
  MakeClass("silver");
  EXPECT_TRUE(Admin(wire::MDS_CLASS_SET, flow).status.ok());
  ASSERT_TRUE(Admin(wire::MDS_RESERVE, Want("silver", kMiB)).status.ok());
  wire::ReserveRequest part = Want("silver", kMiB);
  part.set_user(1001);
  const Status shared = Admin(wire::MDS_RESERVE, part).status;
  EXPECT_EQ(shared.code(), ErrorCode::kInvalid);
  EXPECT_NE(shared.message().find("--flow user"), std::string::npos) << shared;

  wire::ClassNameRequest release;
  release.set_name("gold");
  release.set_user(0);
  EXPECT_TRUE(Admin(wire::MDS_RELEASE_RESERVATION, release).status.ok());
  EXPECT_EQ(Admin(wire::MDS_RELEASE_RESERVATION, release).status.code(), ErrorCode::kNotFound);
  EXPECT_EQ(users().size(), 1u);
  release.clear_user();
  EXPECT_TRUE(Admin(wire::MDS_RELEASE_RESERVATION, release).status.ok());
  ASSERT_TRUE(Admin(wire::MDS_RESERVE, Want("gold", kMiB)).status.ok());
  EXPECT_TRUE(users().empty());
}

TEST_F(ClusterKeeperTest, ReservationsEndAtTheirTimeAlsoAcrossARestart) {
  MakeClass("gold");
  wire::ReserveRequest request = Want("gold", 10 * kMiB);
  request.set_duration_ns(60'000'000'000);
  EXPECT_TRUE(Admin(wire::MDS_RESERVE, request).status.ok());
  clock.Advance(59s);
  Restart();
  core->Tick();
  EXPECT_TRUE(Map()->FindClass("gold")->spec.reservation.has_value());
  const Epoch before = Map()->epoch;
  clock.Advance(1s);
  core->Tick();
  EXPECT_FALSE(Map()->FindClass("gold")->spec.reservation.has_value());
  EXPECT_GT(Map()->epoch, before);
}

TEST_F(ClusterKeeperTest, AChangeIsConfirmedWhenEveryOsdObeysOrAfterTwoSeconds) {
  AddOsd("disk-b", 1);
  wire::SetClassRequest request;
  request.set_name("gold");
  const auto call = Send(wire::MDS_CLASS_CREATE, request);
  EXPECT_FALSE(call->answer.has_value());
  wire::WatchRequest watch;
  watch.set_osd_id(0);
  watch.set_have_epoch(Map()->epoch.value);
  Send(wire::MDS_WATCH, watch);
  EXPECT_FALSE(call->answer.has_value());
  watch.set_osd_id(1);
  Send(wire::MDS_WATCH, watch);
  EXPECT_TRUE(call->answer.has_value());
  request.set_name("silver");
  const auto slow = Send(wire::MDS_CLASS_CREATE, request);
  clock.Advance(2s);
  core->Tick();
  EXPECT_TRUE(slow->answer.has_value());
}

TEST_F(ClusterKeeperTest, AllocationOverTiersIsSetPieceByPiece) {
  wire::SetOsdRequest request;
  request.set_allocation("drf");
  request.set_allocation_period_ns(10'000'000'000);
  EXPECT_TRUE(Admin(wire::MDS_SET_OSD, request).status.ok());
  request.Clear();
  request.set_allocation_alarm(false);
  EXPECT_TRUE(Admin(wire::MDS_SET_OSD, request).status.ok());
  const AllocationConfig expected{
      .kind = AllocationKind::kDominantResource, .period = 10s, .window = {}, .alarm = false};
  EXPECT_EQ(Map()->osds.at(OsdId(0)).qos.allocation, expected);
  request.set_allocation_period_ns(999'999'999);
  EXPECT_EQ(Admin(wire::MDS_SET_OSD, request).status.code(), ErrorCode::kInvalid);
  request.set_allocation_period_ns(0);
  request.set_allocation("best");
  EXPECT_EQ(Admin(wire::MDS_SET_OSD, request).status.code(), ErrorCode::kInvalid);
  EXPECT_EQ(Map()->osds.at(OsdId(0)).qos.allocation, expected);
}

TEST_F(ClusterKeeperTest, AnEstimateOfTheServiceTimeIsFixedAndMeasuredAgain) {
  wire::SetOsdRequest request;
  request.set_service_estimate_ns(13'000'000);
  EXPECT_TRUE(Admin(wire::MDS_SET_OSD, request).status.ok());
  EXPECT_EQ(Map()->osds.at(OsdId(0)).qos.cvc.fixed_estimate, 13ms);
  for (const uint64_t beyond : {999ULL, 10'000'000'001ULL}) {
    request.set_service_estimate_ns(beyond);
    EXPECT_EQ(Admin(wire::MDS_SET_OSD, request).status.code(), ErrorCode::kInvalid);
  }
  EXPECT_EQ(Map()->osds.at(OsdId(0)).qos.cvc.fixed_estimate, 13ms);
  request.set_service_estimate_ns(0);
  EXPECT_TRUE(Admin(wire::MDS_SET_OSD, request).status.ok());
  EXPECT_EQ(Map()->osds.at(OsdId(0)).qos.cvc.fixed_estimate, Duration(0));
}

TEST_F(ClusterKeeperTest, AProcessorPressureIsAPercentage) {
  const auto pressure = [this] { return Map()->osds.at(OsdId(0)).qos.processor_pressure; };
  wire::SetOsdRequest request;
  request.set_processor_pressure(40);
  EXPECT_TRUE(Admin(wire::MDS_SET_OSD, request).status.ok());
  EXPECT_EQ(pressure(), 40u);
  request.set_processor_pressure(101);
  EXPECT_EQ(Admin(wire::MDS_SET_OSD, request).status.code(), ErrorCode::kInvalid);
  EXPECT_EQ(pressure(), 40u);
  request.set_processor_pressure(0);
  EXPECT_TRUE(Admin(wire::MDS_SET_OSD, request).status.ok());
  EXPECT_EQ(pressure(), SchedulerConfig::kDefaultPressure);
}

TEST_F(ClusterKeeperTest, ConfiguresTheProfileFirstThenThePieces) {
  wire::SetOsdRequest request;
  request.set_profile("odis");
  request.set_maximizer(false);
  EXPECT_TRUE(Admin(wire::MDS_SET_OSD, request).status.ok());
  EXPECT_EQ(Map()->osds.at(OsdId(0)).qos.gate, GateKind::kStrict);
  EXPECT_FALSE(Map()->osds.at(OsdId(0)).qos.maximizer);
  request.set_surplus("sideways");
  EXPECT_EQ(Admin(wire::MDS_SET_OSD, request).status.code(), ErrorCode::kInvalid);
  request.clear_surplus();
  request.set_cost("requests");
  request.add_osds(0);
  EXPECT_EQ(Admin(wire::MDS_SET_OSD, request).status.code(), ErrorCode::kInvalid);
  request.clear_cost();
  request.add_osds(9);
  EXPECT_EQ(Admin(wire::MDS_SET_OSD, request).status.code(), ErrorCode::kNotFound);
}

TEST_F(ClusterKeeperTest, PoolsPinFilesAndStayWhileInUse) {
  AddOsd("disk-b", 1);
  wire::PoolCreateRequest request;
  request.set_name("second");
  request.add_osds(1);
  EXPECT_TRUE(Admin(wire::MDS_POOL_CREATE, request).status.ok());
  const uint64_t d = Mkdir(kRoot, "d");
  EXPECT_EQ(Code(wire::MDS_SETXATTR, Xattr(d, "user.weir.layout.pool", "second")), ErrorCode::kOk);
  const uint64_t f = Touch(d, "f");
  Grow(f, 1);
  EXPECT_EQ(Get(f, "weir.objects"), "0:osd.1");
  wire::PoolNameRequest name;
  name.set_name("second");
  EXPECT_EQ(Admin(wire::MDS_POOL_REMOVE, name).status.code(), ErrorCode::kBusy);
  request.set_name("third");
  EXPECT_TRUE(Admin(wire::MDS_POOL_CREATE, request).status.ok());
  name.set_name("third");
  EXPECT_TRUE(Admin(wire::MDS_POOL_REMOVE, name).status.ok());
}

TEST_F(ClusterKeeperTest, WhatTheStoreRefusesDoesNotShow) {
  mem.FailWith(Status(ErrorCode::kIo, "planted"));
  wire::SetClassRequest request;
  request.set_name("gold");
  EXPECT_EQ(Admin(wire::MDS_CLASS_CREATE, request).status.code(), ErrorCode::kIo);
  EXPECT_EQ(Map()->FindClass("gold"), nullptr);
}

}  // namespace
}  // namespace weir::mds
