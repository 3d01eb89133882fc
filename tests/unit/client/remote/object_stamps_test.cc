// Goal: what a request tells its OSD is of the moment at which it leaves first, and every retry
// says the same. Method: requests leave by hand, and through a mount's ObjectIo.
#include "client/remote/object_stamps.h"

#include <gtest/gtest.h>

#include "tests/unit/client/remote/object_io_fixture.h"

namespace weir::client {
namespace {

using namespace std::chrono_literals;
using Delays = std::vector<uint64_t>;

class ObjectStampsTest : public ::testing::Test {
 protected:
  static std::shared_ptr<const ClusterMap> MapWithClass(std::optional<uint32_t> class_id) {
    auto map = std::make_shared<ClusterMap>(*MapOf(3));
    if (class_id.has_value()) map->classes[ClassId(*class_id)].spec.id = ClassId(*class_id);
    return map;
  }
  // 4 KiB of class 16 for these OSDs.
  static PendingOpPtr Change(std::vector<OsdId> path) {
    auto pending = std::make_shared<PendingOp>();
    pending->op.write = true;
    pending->op.class_id = ClassId(16);
    pending->op.object = {InodeId(7), 0};
    pending->op.length = 4096;
    pending->osd = path.front();
    pending->path = std::move(path);
    return pending;
  }
  Delays DelaysOf(std::vector<OsdId> path) {
    return stamps_.Leaves(Change(std::move(path)).get()).delays;
  }

  ObjectStamps stamps_{9, 100};
};

TEST_F(ObjectStampsTest, ARetryIsTheSameRequestAndANewMemberHearsOfItsOwnDelay) {
  stamps_.SetMap(MapWithClass(16));
  const PendingOpPtr change = Change({OsdId(0)});
  const auto first = stamps_.Leaves(change.get());
  EXPECT_EQ(first.op, (replication::OpId{9, 101}));
  EXPECT_EQ(first.delays, Delays{0});
  EXPECT_EQ(DelaysOf({OsdId(1)}), Delays{4});
  change->path = {OsdId(0), OsdId(2)};
  const auto again = stamps_.Leaves(change.get());
  EXPECT_EQ(again.op, first.op);
  EXPECT_EQ(again.delays, (Delays{0, 8})) << "what went to the two others before";
  change->path = {OsdId(0)};
  EXPECT_EQ(stamps_.Leaves(change.get()).delays, Delays{0});
}

TEST_F(ObjectStampsTest, WhatHasEndedHoldsNoFloorBackAndGetsANewNumberShouldItGoAgain) {
  stamps_.SetMap(MapWithClass(16));
  const PendingOpPtr one = Change({OsdId(0)}), other = Change({OsdId(0)});
  (void)stamps_.Leaves(one.get());
  EXPECT_EQ(stamps_.Leaves(other.get()).floors.session, 101u);
  stamps_.End(one.get());
  EXPECT_EQ(stamps_.Leaves(other.get()).floors.session, 102u);
  EXPECT_EQ(stamps_.Leaves(one.get()).op, (replication::OpId{9, 103}));
}

TEST_F(ObjectStampsTest, TheStreamsOfAClassThatIsGoneAreForgotten) {
  stamps_.SetMap(MapWithClass(16));
  (void)DelaysOf({OsdId(0)});
  (void)DelaysOf({OsdId(1)});
  EXPECT_EQ(DelaysOf({OsdId(0)}), Delays{4});
  stamps_.SetMap(MapWithClass(std::nullopt));
  EXPECT_EQ(DelaysOf({OsdId(1)}), Delays{0});
}

class StampedObjectIoTest : public ObjectIoFixture {};

TEST_F(StampedObjectIoTest, TheDelayIsThatOfTheMomentOfLeaving) {
  Start({.windows = {.first_window_bytes = 4096, .beyond_bytes = 0}}, 2);
  const auto map = MapOf(2);
  // Two objects on different OSDs.
  uint64_t other = 1;
  while (map->ChainOf(PoolId(1), {InodeId(7), other})->head() ==
         map->ChainOf(PoolId(1), {InodeId(7), 0})->head()) {
    ++other;
  }
  Read("first", 16, 4096, 0);
  Read("queued", 16, 4096, 0);  // does not leave yet: counts nowhere
  Read("elsewhere", 16, 8192, other);
  ASSERT_EQ(osds_.flights.size(), 2u);
  EXPECT_EQ(osds_.flights[1].stamp.delays, Delays{4})
      << "first request there: all sent so far (A3)";
  osds_.Answer(0);
  ASSERT_EQ(osds_.flights.size(), 2u);
  EXPECT_EQ(osds_.flights.back().stamp.delays, Delays{8}) << "what went elsewhere meanwhile";
}

TEST_F(StampedObjectIoTest, AnOsdThatCountsRequestsIsToldRequests) {
  Start({}, 2);
  const auto map = std::make_shared<ClusterMap>(*MapOf(2, 2));
  const auto osd_of = [&](uint64_t i) { return map->ChainOf(PoolId(1), {InodeId(7), i})->head(); };
  uint64_t other = 1;
  while (osd_of(other) == osd_of(0)) ++other;
  map->osds[osd_of(0)].qos.cost = CostKind::kRequests;
  io_->SetMap(map);
  for (int i = 0; i < 3; ++i) Read("there", 16, 8192, other);
  Read("here", 16, 4096, 0);
  EXPECT_EQ(osds_.flights.back().stamp.delays, Delays{3});
  Read("there", 16, 4096, other);
  EXPECT_EQ(osds_.flights.back().stamp.delays, Delays{4}) << "the other one counts KiB";
}

TEST_F(StampedObjectIoTest, ARequestNamesTheChainByWhichItsOsdWasChosen) {
  Start({}, 3);
  Read("op", 16, 4096, 5);
  const ClusterMap map = *MapOf(3);
  const ObjectId object{InodeId(7), 5};
  EXPECT_EQ(Stamp(0).slot, map.SlotOf(PoolId(1), object));
  EXPECT_EQ(Stamp(0).chain_version, 1u);
  EXPECT_EQ(Stamp(0).osd, map.ChainOf(PoolId(1), object)->head());
}

TEST_F(StampedObjectIoTest, AChangeKeepsItsNumberInEveryRetryAndFloorsFollowWhatIsOpen) {
  Start({.session = 9, .ids_above = 100});
  Write("a", 1);
  Read("no change", 16, 4096, 1);
  Write("b", 2);
  Write("c", 1);
  using replication::OpId;
  EXPECT_EQ(Stamp(0).op, (OpId{9, 101}));
  EXPECT_EQ(Stamp(1).op, OpId()) << "a read has none";
  EXPECT_EQ(Stamp(2).op, (OpId{9, 102}));
  EXPECT_EQ(Stamp(3).op, (OpId{9, 103}));
  EXPECT_EQ(Stamp(3).floors.session, 101u);
  EXPECT_EQ(Stamp(3).floors.object, 101u);
  EXPECT_EQ(Stamp(2).floors.object, 102u);
  osds_.Answer(1);
  osds_.Answer(0);
  osds_.Fail(0, ErrorCode::kBusy);         // b
  osds_.Fail(0, ErrorCode::kUnreachable);  // c
  EXPECT_TRUE(osds_.flights.empty());
  io_->Tick();
  ASSERT_EQ(osds_.flights.size(), 2u);
  EXPECT_EQ(Stamp(0).op, (OpId{9, 102}));
  EXPECT_EQ(Stamp(1).op, (OpId{9, 103}));
  EXPECT_EQ(Stamp(1).floors.session, 102u) << "a was answered";
  EXPECT_EQ(Stamp(1).floors.object, 103u);
  osds_.Fail(0, ErrorCode::kNoSpace);
  osds_.Answer(0);
  Write("d", 2);
  EXPECT_EQ(Stamp(0).op, (OpId{9, 104}));
  EXPECT_EQ(Stamp(0).floors.session, 104u) << "an error is an answer";
}

TEST_F(StampedObjectIoTest, WhatIsGivenUpHoldsNoFloorBack) {
  Start({.timeout = 10s, .session = 9});
  Write("a", 1);
  Write("b", 1);
  osds_.Fail(0, ErrorCode::kUnreachable);
  osds_.unreachable[Stamp(0).osd] = true;
  clock_.Advance(11s);
  io_->Tick();
  ASSERT_EQ(ends_.size(), 1u);
  Write("c", 2);
  EXPECT_EQ(Stamp(1).floors.session, 2u) << "nobody asks for a again";
}

TEST_F(StampedObjectIoTest, AChangeTellsEachMemberOfItsDelayAndAReadOnlyOne) {
  Start({.session = 9}, 3);
  auto map = std::make_shared<ClusterMap>(*MapOf(3, 2));
  for (Chain& chain : map->pools.at(PoolId(1)).chains) {
    chain = ChainOf(2, {0, 1, 2});
    chain.members[2].state = replication::MemberState::kOffline;
  }
  io_->SetMap(map);
  Write("a", 1);
  EXPECT_EQ(Stamp(0).osd, OsdId(0));
  EXPECT_EQ(Stamp(0).delays, (Delays{0, 4})) << "the head's copy was served elsewhere";
  Read("b", 16, 4096, 1);
  EXPECT_EQ(Stamp(1).delays, Delays{4});
}

}  // namespace
}  // namespace weir::client
