#include "osd/service/object_service.h"

#include <gtest/gtest.h>

#include <future>

#include "common/base/crc32c.h"
#include "common/placement/cluster_map.h"
#include "common/testing/manual_clock.h"
#include "common/testing/manual_loop.h"
#include "common/wire/osd.pb.h"
#include "tests/unit/osd/io/held_object_store.h"
#include "tests/unit/osd/service/fake_call.h"

namespace weir::osd {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20;
const OsdIdentity kIdentity{"5e1f-cluster", "0a-osd", 3, 0};

class ObjectServiceTest : public ::testing::Test {
 protected:
  ObjectServiceTest() {
    SchedulerConfig config;
    config.guarantee = GuaranteeKind::kNone;
    store_.after = [this] { loop_.Run(); };
    dispatcher_ = std::make_unique<Dispatcher>(store_, clock_, loop_, config);
    ObjectService::Options options;
    options.report = [this](const std::string& line) { reports_.push_back(line); };
    Make(std::move(options));
  }
  void Make(ObjectService::Options options) {
    service_ = std::make_unique<ObjectService>(*dispatcher_, store_, clock_, kIdentity,
                                               std::move(options));
  }
  using Pending = std::shared_ptr<std::optional<testing::Answer>>;
  Pending Send(uint32_t method, const google::protobuf::MessageLite& body, Buffer payload = {},
               uint64_t session = 1) {
    return SendRaw(method, body.SerializeAsString(), std::move(payload), session);
  }
  Pending SendRaw(uint32_t method, std::string body, Buffer payload = {}, uint64_t session = 1) {
    auto answer = std::make_shared<std::optional<testing::Answer>>();
    service_->Handle(
        std::make_shared<testing::FakeCall>(method, session, std::move(body), payload, answer));
    loop_.Run();
    return answer;
  }
  static wire::ObjectRequest Request(uint64_t inode, uint64_t offset, uint64_t length) {
    ClusterMap map;
    map.cluster_uuid = kIdentity.cluster_uuid;
    wire::ObjectRequest request;
    request.set_inode(inode);
    request.set_offset(offset);
    request.set_length(length);
    request.set_cluster(map.ClusterHash());
    return request;
  }
  static wire::ObjectRequest WriteRequest(uint64_t inode, uint64_t offset, const Buffer& data) {
    wire::ObjectRequest request = Request(inode, offset, data.size());
    request.set_payload_crc(Crc32c(data.data(), data.size()));
    return request;
  }
  static wire::ObjectReply Ok(const Pending& answer) {
    wire::ObjectReply reply;
    EXPECT_TRUE(answer->has_value()) << "no answer yet";
    if (answer->has_value()) {
      EXPECT_TRUE((*answer)->status.ok()) << (*answer)->status;
      EXPECT_TRUE(reply.ParseFromString((*answer)->body));
    }
    return reply;
  }
  static Status Refusal(const Pending& answer) {
    EXPECT_TRUE(answer->has_value());
    return answer->has_value() ? (*answer)->status : Status();
  }
  void TearDown() override { store_.ReleaseAll(); }

  weir::testing::ManualClock clock_;
  weir::testing::ManualLoop loop_{clock_};
  testing::HeldObjectStore store_;
  std::vector<std::string> reports_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::unique_ptr<ObjectService> service_;
};

// Goal: statistics name who used a class, as mounts tell his requests apart; only who asks for
// them gets them.
TEST_F(ObjectServiceTest, SaysWhoUsedAClass) {
  const auto read = [this](uint64_t session, uint32_t uid, wire::Flow::Kind kind, int times) {
    wire::ObjectRequest request = Request(7, 0, 4096);
    request.mutable_flow()->set_uid(uid);
    request.mutable_flow()->set_opener(100 + uid);
    request.mutable_flow()->set_kind(kind);
    if (kind == wire::Flow::CGROUP) request.mutable_flow()->set_cgroup("/a.slice");
    for (int i = 0; i < times; ++i) Send(wire::OSD_READ, request, {}, session);
    store_.ReleaseAll();
  };
  read(1, 1001, wire::Flow::USER, 5);
  read(1, 1001, wire::Flow::NONE, 3);
  read(2, 1001, wire::Flow::OPENER, 2);
  read(1, 1002, wire::Flow::CGROUP, 1);
  clock_.Advance(2s);
  const auto stats = [this](bool flows) {
    wire::OsdStatsRequest request;
    request.set_flows(flows);
    wire::OsdStatsReply reply;
    EXPECT_TRUE(reply.ParseFromString((*Send(wire::OSD_STATS, request))->body));
    for (const auto& row : reply.classes()) {
      if (row.class_id() == kBestEffort.value) return row;
    }
    return wire::ClassStats();
  };
  EXPECT_FALSE(stats(false).has_flows());
  const wire::FlowsOfClass flows = stats(true).flows();
  EXPECT_EQ(flows.window_s(), 2);
  ASSERT_EQ(flows.users_size(), 3);
  EXPECT_EQ(flows.users(0).session(), 1u);
  EXPECT_EQ(flows.users(0).flow().uid(), 1001u);
  EXPECT_EQ(flows.users(0).flow().opener(), 0u);
  EXPECT_EQ(flows.users(0).requests(), 8u) << "users are told apart whatever the kind of flows";
  EXPECT_EQ(flows.users(0).bytes(), 8 * 4096u);
  EXPECT_GT(flows.users(0).device_us(), 0u);
  EXPECT_EQ(flows.users(0).light_requests(), 8u);
  EXPECT_EQ(flows.users(1).session(), 2u) << "the same uid of another mount";
  EXPECT_EQ(flows.users(2).flow().kind(), wire::Flow::CGROUP);
  EXPECT_EQ(flows.users(2).flow().cgroup(), "/a.slice");
  ASSERT_EQ(flows.openers_size(), 3);
  EXPECT_EQ(flows.openers(0).flow().opener(), 1101u);
}

TEST_F(ObjectServiceTest, AWriteIsAnsweredWhenTheStoreSaysSoAndReadsBack) {
  store_.stats = {.capacity_bytes = 1000, .used_bytes = 100};
  const Buffer data = Buffer::CopyOf("forty-two");
  const Pending write = Send(wire::OSD_WRITE, WriteRequest(7, 100, data), data);
  EXPECT_FALSE(write->has_value()) << "acked before it was durable";
  store_.ReleaseAll();
  EXPECT_EQ(Ok(write).object_size(), 109u);
  EXPECT_EQ(Ok(write).window_bytes(), 16 * kMiB);
  EXPECT_EQ(Ok(write).free_bytes(), 900u);

  const Pending read = Send(wire::OSD_READ, Request(7, 100, 4096));
  store_.ReleaseAll();
  EXPECT_EQ((*read)->payload.view(), "forty-two");
  EXPECT_FALSE(Ok(read).has_free_bytes());
  EXPECT_EQ(Ok(read).payload_crc(), Crc32c("forty-two", 9));

  const Pending stat = Send(wire::OSD_STAT_OBJECT, Request(7, 0, 0));
  store_.ReleaseAll();
  EXPECT_EQ(Ok(stat).object_size(), 109u);

  const Pending truncate = Send(wire::OSD_TRUNCATE, Request(7, 50, 0));
  store_.ReleaseAll();
  EXPECT_EQ(Ok(truncate).object_size(), 50u);

  const Pending gone = Send(wire::OSD_DELETE_INODE, Request(7, 0, 0));
  store_.ReleaseAll();
  Ok(gone);
  EXPECT_EQ(store_.Get({InodeId(7), 0}), "");
}

TEST_F(ObjectServiceTest, WhatTheStoreKnowsIsNotSummedAgain) {
  const Buffer data = Buffer::CopyOf("forty-two");
  Send(wire::OSD_WRITE, WriteRequest(7, 0, data), data);
  store_.ReleaseAll();
  store_.read_crc = 0x600d600d;
  const Pending read = Send(wire::OSD_READ, Request(7, 0, 4096));
  store_.ReleaseAll();
  EXPECT_EQ(Ok(read).payload_crc(), 0x600d600du);
}

TEST_F(ObjectServiceTest, DeletesOfSeveralInodesAreAnsweredTogether) {
  for (const uint64_t inode : {7, 8, 9}) {
    for (const uint64_t index : {0, 1}) {
      const Buffer data = Buffer::CopyOf("x");
      wire::ObjectRequest write = WriteRequest(inode, 0, data);
      write.set_index(inode == 8 ? 0 : index);
      Send(wire::OSD_WRITE, write, data);
    }
  }
  store_.ReleaseAll();
  wire::ObjectRequest purge = Request(7, 0, 0);
  purge.set_objects_max(1);
  purge.add_more_inodes(8);
  purge.add_more_inodes(9);
  const Pending gone = Send(wire::OSD_DELETE_INODE, purge);
  EXPECT_FALSE(gone->has_value());
  store_.ReleaseAll();
  const wire::ObjectReply reply = Ok(gone);
  EXPECT_THAT(reply.next_indexes(), ElementsAre(1, 0, 1));
  EXPECT_EQ(reply.next_index(), 1u);
  EXPECT_EQ(store_.Get({InodeId(8), 0}), "");
  EXPECT_EQ(store_.Get({InodeId(9), 1}), "x");
}

TEST_F(ObjectServiceTest, APayloadIsHandedToTheStoreUncopied) {
  const Buffer data = Buffer::AlignedZeros(8192);
  const long before = data.owner().use_count();
  Send(wire::OSD_WRITE, WriteRequest(7, 0, data), data);
  EXPECT_GT(data.owner().use_count(), before) << "the store holds these very bytes";
}

TEST_F(ObjectServiceTest, ReadsAndWritesFromOutsideAreNeverChargedToItsOwnClasses) {
  SchedulerConfig config;
  config.guarantee = GuaranteeKind::kNone;
  ClassSpec recovery;
  recovery.id = kSystemRecovery;
  dispatcher_->Apply(config, {ClassSpec{}, recovery});
  const Buffer data = Buffer::CopyOf("forty-two");
  wire::ObjectRequest write = WriteRequest(7, 0, data);
  write.set_class_id(kSystemRecovery.value);
  Send(wire::OSD_WRITE, write, data);
  store_.ReleaseAll();
  uint64_t best_effort = 0;
  for (const DispatcherClassStats& one : dispatcher_->Stats(false).classes) {
    if (one.counters.id == kSystemRecovery) {
      EXPECT_EQ(one.counters.served_ops, 0u);
    }
    if (one.counters.id == kBestEffort) best_effort = one.counters.served_ops;
  }
  EXPECT_EQ(best_effort, 1u);
}

TEST_F(ObjectServiceTest, RefusesAnotherClustersRequestAndNamesThisOne) {
  wire::ObjectRequest request = Request(7, 0, 4096);
  request.set_cluster(request.cluster() + 1);
  const Status status = Refusal(Send(wire::OSD_READ, request));
  EXPECT_EQ(status.code(), ErrorCode::kWrongCluster);
  EXPECT_THAT(status.message(), HasSubstr("osd.3: read of object 7.0 at 0, 4096 bytes"));
  EXPECT_THAT(status.message(), HasSubstr(kIdentity.cluster_uuid));
  EXPECT_EQ(store_.held(), 0u);
}

TEST_F(ObjectServiceTest, RefusesADamagedOrShortPayload) {
  const Buffer data = Buffer::CopyOf("abcdefgh");
  wire::ObjectRequest request = WriteRequest(7, 0, data);
  request.set_payload_crc(request.payload_crc() ^ 1);
  const Pending damaged = Send(wire::OSD_WRITE, request, data);
  store_.ReleaseAll();  // which compares
  EXPECT_EQ(Refusal(damaged).code(), ErrorCode::kBadMessage);
  const Pending nothing = Send(wire::OSD_READ, Request(7, 0, 8));
  store_.ReleaseAll();
  EXPECT_EQ(Ok(nothing).object_size(), 0u);
  request = WriteRequest(7, 0, data);
  request.set_length(9);
  EXPECT_EQ(Refusal(Send(wire::OSD_WRITE, request, data)).code(), ErrorCode::kBadMessage);
  EXPECT_EQ(Refusal(Send(wire::OSD_READ, Request(7, 0, 8), data)).code(), ErrorCode::kBadMessage);
  EXPECT_EQ(Refusal(SendRaw(wire::OSD_WRITE, "\xff\xff rubbish")).code(), ErrorCode::kBadMessage);
  EXPECT_EQ(Refusal(SendRaw(wire::OSD_STATS, "\xff\xff rubbish")).code(), ErrorCode::kBadMessage);
  EXPECT_EQ(store_.held(), 0u);
  EXPECT_EQ(service_->windows().in_flight_bytes(), 0u);
}

TEST_F(ObjectServiceTest, RefusesRangesOutsideOfAnObjectWithoutOverflow) {
  for (const auto& [offset, length] : std::vector<std::pair<uint64_t, uint64_t>>{
           {0, 4 * kMiB + 1}, {4 * kMiB, 1}, {UINT64_MAX, 2}, {1, UINT64_MAX}}) {
    EXPECT_EQ(Refusal(Send(wire::OSD_READ, Request(7, offset, length))).code(), ErrorCode::kInvalid)
        << offset << "+" << length;
  }
  EXPECT_EQ(Refusal(Send(wire::OSD_TRUNCATE, Request(7, 4 * kMiB + 1, 0))).code(),
            ErrorCode::kInvalid);
  const Pending edge = Send(wire::OSD_READ, Request(7, 4 * kMiB, 0));
  store_.ReleaseAll();
  Ok(edge);
}

TEST_F(ObjectServiceTest, TheStoreHearsTheTermsOfAChange) {
  const Buffer data = Buffer::CopyOf("x");
  wire::ObjectRequest request = WriteRequest(7, 0, data);
  request.set_pool(2);
  request.set_slot(0);
  request.set_chain_version(5);
  request.mutable_op()->set_session(9);
  request.mutable_op()->set_number(44);
  request.mutable_op()->set_session_floor(41);
  request.mutable_op()->set_object_floor(43);
  request.mutable_expected_version();
  request.set_append(true);
  const Pending write = Send(wire::OSD_WRITE, request, data);
  store_.ReleaseAll();
  EXPECT_TRUE(Ok(write).has_object_version());
  const ChangeTerms& terms = store_.last_terms;
  EXPECT_EQ(terms.slot, (SlotId{2, 0}));
  EXPECT_EQ(terms.chain_version, 5u);
  EXPECT_EQ(terms.op.session, 9u);
  EXPECT_EQ(terms.op.number, 44u);
  EXPECT_EQ(terms.op.session_floor, 41u);
  EXPECT_EQ(terms.op.object_floor, 43u);
  EXPECT_EQ(terms.expected, replication::Version());
  EXPECT_TRUE(terms.append);

  const Pending truncate = Send(wire::OSD_TRUNCATE, Request(7, 0, 0));
  store_.ReleaseAll();
  Ok(truncate);
  EXPECT_FALSE(store_.last_terms.slot.has_value());
  EXPECT_EQ(store_.last_terms.op.session, 0u);
  EXPECT_FALSE(store_.last_terms.expected.has_value());
  const Pending read = Send(wire::OSD_READ, Request(7, 0, 1));
  store_.ReleaseAll();
  EXPECT_FALSE(Ok(read).has_object_version());
  EXPECT_EQ(Refusal(Send(wire::OSD_TRUNCATE, request)).code(), ErrorCode::kInvalid);
}

// Goal: who goes by an older chain is told the newer one; reads, too. Who is ahead is served.
TEST_F(ObjectServiceTest, ARequestUnderAnOlderChainIsAnsweredWithTheNewer) {
  wire::ClusterMap map;
  wire::PoolInfo* pool = map.add_pools();
  pool->set_id(2);
  pool->add_chains();
  wire::Chain* chain = pool->add_chains();
  chain->set_version(6);
  chain->add_members()->set_osd(3);
  service_->chains().Apply(map);
  wire::ObjectRequest request = Request(7, 0, 1);
  request.set_pool(2);
  request.set_slot(1);
  request.set_chain_version(5);
  const Pending stale = Send(wire::OSD_READ, request);
  ASSERT_EQ(Refusal(stale).code(), ErrorCode::kStaleEpoch);
  wire::ObjectReply reply;
  ASSERT_TRUE(reply.ParseFromString((*stale)->body));
  EXPECT_EQ(reply.newer_chain().version(), 6u);
  EXPECT_EQ(reply.newer_chain().members(0).osd(), 3u);
  const auto is_served = [&](uint64_t version, uint32_t slot) {
    request.set_chain_version(version);
    request.set_slot(slot);
    const Pending read = Send(wire::OSD_READ, request);
    store_.ReleaseAll();
    Ok(read);
  };
  is_served(6, 1);
  is_served(7, 1);
  is_served(0, 1);
  is_served(1, 0);  // chains that have no versions
  is_served(1, 2);  // a slot that the map does not have
}

TEST_F(ObjectServiceTest, RefusesACapabilityThatIsTooLong) {
  wire::ObjectRequest request = Request(7, 0, 0);
  request.set_capability(std::string(257, 'c'));
  EXPECT_EQ(Refusal(Send(wire::OSD_STAT_OBJECT, request)).code(), ErrorCode::kInvalid);
  request.set_capability(std::string(256, 'c'));
  const Pending stat = Send(wire::OSD_STAT_OBJECT, request);
  store_.ReleaseAll();
  Ok(stat);
}

TEST_F(ObjectServiceTest, RefusesUnknownMethods) {
  EXPECT_EQ(Refusal(SendRaw(999, "")).code(), ErrorCode::kNotSupported);
}

TEST_F(ObjectServiceTest, CountsAndLogsIoErrorsWithObjectAndOffset) {
  store_.fail = {ErrorCode::kCorrupt, "block 2: crc32c is wrong"};
  const Pending read = Send(wire::OSD_READ, Request(7, 8192, 4096));
  store_.ReleaseAll();
  EXPECT_EQ(Refusal(read).code(), ErrorCode::kCorrupt);
  EXPECT_THAT(reports_, ElementsAre("osd.3: read of object 7.0 at 8192, 4096 bytes: block 2: "
                                    "crc32c is wrong"));
  EXPECT_EQ(service_->io_errors(), 1u);
  store_.fail = {ErrorCode::kNoSpace, "full"};
  const Buffer data = Buffer::CopyOf("x");
  const Pending write = Send(wire::OSD_WRITE, WriteRequest(7, 0, data), data);
  store_.ReleaseAll();
  EXPECT_EQ(Refusal(write).code(), ErrorCode::kNoSpace);
  EXPECT_EQ(service_->io_errors(), 1u) << "a full disk is no fault of the disk";
}

TEST_F(ObjectServiceTest, ASessionBeyondTwiceItsWindowIsBusyAndOthersAreNot) {
  std::vector<Pending> reads;
  for (int i = 0; i < 8; ++i) reads.push_back(Send(wire::OSD_READ, Request(7, 0, 4 * kMiB)));
  const Status busy = Refusal(Send(wire::OSD_READ, Request(7, 0, 4096)));
  EXPECT_EQ(busy.code(), ErrorCode::kBusy);
  wire::ObjectRequest other_class = Request(7, 0, 4096);
  other_class.set_class_id(20);
  EXPECT_FALSE(Send(wire::OSD_READ, other_class)->has_value());
  EXPECT_FALSE(Send(wire::OSD_READ, Request(7, 0, 4096), {}, 2)->has_value());
  store_.ReleaseAll();
  for (const Pending& read : reads) Ok(read);
  EXPECT_EQ(service_->windows().in_flight_bytes(), 0u);
}

TEST_F(ObjectServiceTest, WindowsAreSmallWhileSomebodyWaitsForEachSmallRequest) {
  ClassSpec web, gold;
  web.id = kFirstUserClass;
  gold.id = ClassId(kFirstUserClass.value + 1);
  dispatcher_->Apply(*ApplyProfile("unified", {}), {ClassSpec{}, web, gold});
  const Buffer data = Buffer::AlignedZeros(kMiB);
  wire::ObjectRequest large = WriteRequest(7, 0, data);
  large.set_class_id(web.id.value);
  wire::ObjectRequest small = Request(8, 0, 4096);
  small.set_class_id(gold.id.value);
  const Pending before = Send(wire::OSD_WRITE, large, data);
  Send(wire::OSD_READ, small);
  const Pending beside = Send(wire::OSD_WRITE, large, data);
  store_.ReleaseAll();
  EXPECT_EQ(Ok(before).window_bytes(), 16 * kMiB);
  EXPECT_EQ(Ok(beside).window_bytes(), 2 * kMiB);
  clock_.Advance(2s);
  const Pending after = Send(wire::OSD_WRITE, large, data);
  store_.ReleaseAll();
  EXPECT_EQ(Ok(after).window_bytes(), 16 * kMiB);
}

TEST_F(ObjectServiceTest, StatisticsCarryWhatTheStoreAndTheSchedulerCounted) {
  store_.stats = {.capacity_bytes = 1000,
                  .used_bytes = 10,
                  .objects = 1,
                  .checksum_errors = 4,
                  .commits = 5,
                  .committed_ops = 6};
  service_->SetEpoch(12);
  const Buffer data = Buffer::AlignedZeros(8192);
  Send(wire::OSD_WRITE, WriteRequest(7, 0, data), data);
  clock_.Advance(4ms);
  store_.ReleaseAll();
  clock_.Advance(500ms);
  wire::OsdStatsRequest request;
  request.set_reset(true);
  const Pending answer = Send(wire::OSD_STATS, request);
  wire::OsdStatsReply stats;
  ASSERT_TRUE(answer->has_value() && stats.ParseFromString((*answer)->body));
  EXPECT_EQ(stats.osd_id(), 3u);
  EXPECT_EQ(stats.epoch(), 12u);
  EXPECT_EQ(stats.capacity_bytes(), 1000u);
  EXPECT_EQ(stats.checksum_errors(), 4u);
  EXPECT_EQ(stats.device_bytes_per_s(), 8192u);
  ASSERT_EQ(stats.classes_size(), 1);
  EXPECT_EQ(stats.classes(0).served_bytes(), 8192u);
  EXPECT_NEAR(static_cast<double>(stats.classes(0).latency().p99_us()), 4000, 250);
  const Pending again = Send(wire::OSD_STATS, wire::OsdStatsRequest());
  ASSERT_TRUE(stats.ParseFromString((*again)->body));
  EXPECT_EQ(stats.classes(0).served_bytes(), 0u);
  EXPECT_EQ(stats.window_s(), 0.0);
}

TEST_F(ObjectServiceTest, ProfilesInTheBackgroundOneAtATime) {
  EXPECT_EQ(Refusal(SendRaw(wire::OSD_PROFILE, "")).code(), ErrorCode::kNotSupported);
  std::promise<void> go;
  ObjectService::Options options;
  options.profile = [&](const ProfilePattern&) -> Result<DiskProfile> {
    go.get_future().wait();
    return DiskProfile{100, 200};
  };
  Make(std::move(options));
  const Pending first = SendRaw(wire::OSD_PROFILE, "");
  EXPECT_EQ(Refusal(SendRaw(wire::OSD_PROFILE, "")).code(), ErrorCode::kBusy);
  go.set_value();
  service_.reset();  // waits for it
  wire::OsdProfileReply reply;
  ASSERT_TRUE(first->has_value() && reply.ParseFromString((*first)->body));
  EXPECT_EQ(reply.proposed_token_rate(), 100u);
  EXPECT_EQ(reply.mean_bytes_per_s(), 200u);
}

TEST_F(ObjectServiceTest, KeepsRequestsUnansweredOnceItStops) {
  const Pending before = Send(wire::OSD_READ, Request(7, 0, 4096));
  service_->StopAccepting();
  const Pending after = Send(wire::OSD_READ, Request(7, 0, 4096));
  store_.ReleaseAll();
  Ok(before);
  EXPECT_FALSE(after->has_value());
}

}  // namespace
}  // namespace weir::osd
