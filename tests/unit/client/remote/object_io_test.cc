// Goal: requests of one class never wait for another's, never exceed the grant, and survive what
// passes. Method: a sender whose answers the test releases one by one.
#include "client/remote/object_io.h"

#include "tests/unit/client/remote/object_io_fixture.h"

namespace weir::client {
namespace {

using namespace std::chrono_literals;

class ObjectIoTest : public ObjectIoFixture {};

TEST_F(ObjectIoTest, AWindowHoldsBackBytesButNeverTheFirstRequest) {
  Start({.windows = {.first_window_bytes = 100, .beyond_bytes = 0, .beyond_requests = 0}});
  Read("large", 16, 1000);
  EXPECT_EQ(osds_.flights.size(), 1u) << "an idle window admits one request of any size";
  Read("a", 16, 40);
  Read("b", 16, 40);
  Read("c", 16, 40);
  EXPECT_EQ(osds_.flights.size(), 1u);
  osds_.Answer(0);
  EXPECT_EQ(osds_.flights.size(), 2u) << "a and b fit into 100 bytes, c does not";
  EXPECT_EQ(io_->InFlightBytes(ClassId(16), OsdId(0)), 80u);
  osds_.Answer(0, 1000);  // the OSD grants more
  Read("d", 16, 800);
  EXPECT_EQ(osds_.flights.size(), 3u);
}

TEST_F(ObjectIoTest, AClassWithAFullWindowDelaysNoOther) {
  Start({.windows = {.first_window_bytes = 1, .beyond_bytes = 0, .beyond_requests = 0}});
  for (int i = 0; i < 500; ++i) Read("hog", 16, 1 << 20);
  const size_t before = osds_.flights.size();
  EXPECT_EQ(before, 1u);
  Read("victim", 17, 4096);
  ASSERT_EQ(osds_.flights.size(), before + 1);
  EXPECT_EQ(osds_.flights.back().op.class_id, ClassId(17));
}

TEST_F(ObjectIoTest, AWriteThatMeetsNoRoomGoesAgainWhileRemovalsAreUnderWay) {
  std::vector<uint64_t> removals = {1, 0};
  Start({.ask_removals = [&](const auto& answer) {
    answer(removals.front());
    if (removals.size() > 1) removals.erase(removals.begin());
  }});
  clock_.Advance(1s);
  std::vector<ErrorCode> ends;
  const auto write = [&] {
    ObjectOp op = WriteOp(0, 4096);
    op.done = [&](const Result<ObjectOutcome>& result) { ends.push_back(result.code()); };
    io_->Submit(std::move(op));
  };
  write();
  osds_.Fail(0, ErrorCode::kNoSpace);
  ASSERT_EQ(osds_.flights.size(), 1u) << "it goes again at once";
  osds_.Fail(0, ErrorCode::kNoSpace);
  EXPECT_TRUE(osds_.flights.empty());
  clock_.Advance(1s);
  io_->Tick();
  ASSERT_EQ(osds_.flights.size(), 1u);
  osds_.Answer(0);
  EXPECT_EQ(ends, std::vector{ErrorCode::kOk});

  write();
  osds_.Fail(0, ErrorCode::kNoSpace);
  osds_.Fail(0, ErrorCode::kNoSpace);
  EXPECT_EQ(ends, (std::vector{ErrorCode::kOk, ErrorCode::kNoSpace})) << "nothing is being removed";
}

TEST_F(ObjectIoTest, SaysWhichFilesItChangesBeforeAnythingLeaves) {
  struct Files final : NewFiles {
    void Changes(InodeId inode) override { changed.push_back(inode); }
    [[nodiscard]] bool IsNew(InodeId /*inode*/) const override { return true; }
    void AwaitDurable(InodeId /*inode*/, std::function<void(Status)> /*done*/) override {}
    std::vector<InodeId> changed;
  } files;
  Start({.new_files = &files});
  Read("a", 16, 4096);
  EXPECT_TRUE(files.changed.empty());
  ObjectOp op = WriteOp(0, 4096);
  const InodeId inode = op.object.inode;
  op.done = [](const Result<ObjectOutcome>&) {};
  io_->Submit(std::move(op));
  EXPECT_EQ(osds_.flights.size(), 1u) << "the creation of that is not durable";
  EXPECT_EQ(files.changed, std::vector{inode});
}

TEST_F(ObjectIoTest, BooksWhereItsRequestsWait) {
  Start({.windows = {.window_requests = 1, .beyond_requests = 0}});
  Read("first", 16, 4096);
  Read("second", 16, 4096);
  clock_.Advance(5ms);
  osds_.Answer(0);  // says nothing of its own time: all of it was on the way
  clock_.Advance(2ms);
  osds_.Fail(0, ErrorCode::kUnreachable);
  clock_.Advance(3ms);
  MountClassTimes times = io_->Times().at(ClassId(16));
  EXPECT_EQ(times.window_ns, 5'000'000u);
  EXPECT_EQ(times.network_ns, 10'000'000u) << "also while it waits to go again";
  EXPECT_EQ(times.active_ns, 10'000'000u);
  EXPECT_EQ(times.ops, 1u);
  io_->Tick();
  osds_.Answer(0);
  times = io_->Times().at(ClassId(16));
  EXPECT_EQ(times.network_ns, 10'000'000u);
  EXPECT_EQ(times.ops, 2u);
  Read("third", 16, 4096);
  Read("waits", 16, 4096);
  io_->Stop();
  clock_.Advance(4ms);
  EXPECT_EQ(io_->Times().at(ClassId(16)).window_ns, times.window_ns)
      << "dropped, so it waits no more";
}

TEST_F(ObjectIoTest, CountsRequestsToo) {
  Start({.windows = {.window_requests = 4, .beyond_requests = 0}});
  for (int i = 0; i < 10; ++i) Read("small", 16, 1);
  EXPECT_EQ(osds_.flights.size(), 4u);
}

TEST_F(ObjectIoTest, AStaleEpochGoesOutAgainWithItsFirstDelayUnderTheNewMap) {
  Start();
  Read("op", 16, 4096);
  const std::vector<uint64_t> delays = osds_.flights[0].stamp.delays;
  osds_.Fail(0, ErrorCode::kStaleEpoch);
  EXPECT_TRUE(ends_.empty());
  EXPECT_TRUE(osds_.flights.empty());
  io_->SetMap(MapOf(1, 2));
  ASSERT_EQ(osds_.flights.size(), 1u);
  EXPECT_EQ(osds_.flights[0].stamp.epoch, 2u);
  EXPECT_EQ(osds_.flights[0].stamp.delays, delays);
  osds_.Answer(0);
  EXPECT_EQ(ends_.back().second, ErrorCode::kOk);
}

// What an OSD takes for given up long ago it will never do, however often it is asked.
TEST_F(ObjectIoTest, AChangeThatIsStaleIsNotSentAgain) {
  Start({.session = 9});
  Write("late", 1);
  osds_.Fail(0, ErrorCode::kStale);
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_EQ(ends_[0], std::pair(std::string("late"), ErrorCode::kStale));
  io_->Tick();
  EXPECT_TRUE(osds_.flights.empty());
}

TEST_F(ObjectIoTest, ANewerChainIsObeyedAtOnceByAllThatGoesToItsSlot) {
  Start({.session = 9}, 3);
  Write("first", 5);
  Write("second", 5);
  const uint32_t slot = Stamp(0).slot;
  const uint32_t other = (Stamp(0).osd.value + 1) % 3;
  const replication::OpId id = Stamp(0).op;
  osds_.Refuse(0, ChainOf(4, {other}));
  ASSERT_EQ(osds_.flights.size(), 2u) << "neither a map nor a Tick was needed";
  EXPECT_EQ(Stamp(1).osd, OsdId(other));
  EXPECT_EQ(Stamp(1).slot, slot);
  EXPECT_EQ(Stamp(1).chain_version, 4u);
  EXPECT_EQ(Stamp(1).op, id) << "it is the same change";
  osds_.Fail(0, ErrorCode::kStaleEpoch);  // the second hears nothing new, and need not
  ASSERT_EQ(osds_.flights.size(), 2u);
  EXPECT_EQ(Stamp(1).osd, OsdId(other));
  Read("third", 16, 4096, 5);
  EXPECT_EQ(Stamp(2).chain_version, 4u);
  // What is no news waits for a map, or it would go round and round.
  osds_.Refuse(2, ChainOf(4, {other}));
  ASSERT_EQ(osds_.flights.size(), 2u);
  EXPECT_TRUE(ends_.empty());
  io_->SetMap(MapOf(3, 2));
  ASSERT_EQ(osds_.flights.size(), 3u);
  EXPECT_EQ(Stamp(2).chain_version, 4u) << "that map is older in this";
  osds_.AnswerAll();
  ASSERT_EQ(ends_.size(), 3u);
  for (const auto& end : ends_) EXPECT_EQ(end.second, ErrorCode::kOk);
}

TEST_F(ObjectIoTest, ALaneIsWhatTheRequestIsTakenFor) {
  Start();
  Write("small", 1, kInteractiveBytesMax);
  Write("large", 1, kInteractiveBytesMax + 1);
  Write("nobody waits", 1, 4096, true);
  EXPECT_EQ(osds_.flights[0].op.lane(), Lane::kInteractive);
  EXPECT_EQ(osds_.flights[1].op.lane(), Lane::kBulk);
  EXPECT_EQ(osds_.flights[2].op.lane(), Lane::kBackground);
}

TEST_F(ObjectIoTest, AWrongChecksumIsReadOnceMoreThenReported) {
  Start();
  Read("op", 16, 4096);
  osds_.Fail(0, ErrorCode::kCorrupt);
  io_->Tick();
  ASSERT_EQ(osds_.flights.size(), 1u);
  osds_.Fail(0, ErrorCode::kCorrupt);
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_EQ(ends_[0].second, ErrorCode::kCorrupt);
  EXPECT_EQ(io_->counters().checksum_errors, 2u);
}

TEST_F(ObjectIoTest, WithoutATimeoutALostOsdIsWaitedFor) {
  Start();
  Read("op", 16, 4096);
  for (int i = 0; i < 100; ++i) {
    osds_.Fail(0, ErrorCode::kUnreachable);
    clock_.Advance(1h);
    io_->Tick();
    ASSERT_EQ(osds_.flights.size(), 1u);
  }
  osds_.Answer(0);
  EXPECT_EQ(ends_.back().second, ErrorCode::kOk);
}

TEST_F(ObjectIoTest, WithATimeoutAlsoQueuedRequestsToALostOsdEnd) {
  Start({.windows = {.first_window_bytes = 1, .beyond_bytes = 0, .beyond_requests = 0},
         .timeout = 5s});
  Read("flying", 16, 4096);
  Read("queued", 16, 4096);
  osds_.unreachable[OsdId(0)] = true;
  clock_.Advance(6s);
  io_->Tick();
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_EQ(ends_[0], (std::pair<std::string, ErrorCode>("queued", ErrorCode::kTimedOut)));
  osds_.Fail(0, ErrorCode::kTimedOut);
  ASSERT_EQ(ends_.size(), 2u);
  EXPECT_EQ(ends_[1].second, ErrorCode::kTimedOut);
}

TEST_F(ObjectIoTest, ASlowButLivingOsdIsNotGivenUp) {
  Start({.timeout = 5s});
  Read("op", 16, 4096);
  clock_.Advance(6s);
  osds_.Fail(0, ErrorCode::kTimedOut);
  EXPECT_TRUE(ends_.empty());
  io_->Tick();
  ASSERT_EQ(osds_.flights.size(), 1u);
  osds_.Answer(0);
  EXPECT_EQ(ends_.back().second, ErrorCode::kOk);
}

TEST_F(ObjectIoTest, APoolWithoutOsdsIsWaitedForAndAnUnknownPoolIsAnError) {
  Start({}, 0);
  Read("op", 16, 4096);
  EXPECT_TRUE(ends_.empty());
  io_->SetMap(MapOf(1, 2));
  EXPECT_EQ(osds_.flights.size(), 1u);
  ObjectOp op;
  op.pool = PoolId(99);
  Submit("no pool", std::move(op));
  EXPECT_EQ(ends_.back().second, ErrorCode::kIo);
}

TEST_F(ObjectIoTest, StopEndsEverythingThatHasNotLeft) {
  Start({.windows = {.first_window_bytes = 1, .beyond_bytes = 0, .beyond_requests = 0}});
  Read("flying", 16, 4096);
  Read("queued", 16, 4096);
  io_->Stop();
  ASSERT_EQ(ends_.size(), 1u);
  osds_.Fail(0, ErrorCode::kCancelled);
  ASSERT_EQ(ends_.size(), 2u);
  EXPECT_EQ(ends_[1].second, ErrorCode::kCancelled);
}

// Goal: a killed process and an evicted mount wait for no room. Method: both kinds meet none,
// before their end and after it, while a removal is under way for ever.
TEST_F(ObjectIoTest, WhoIsGoneWaitsForNoRoom) {
  Start({.ask_removals = [&](const auto& /*answer*/) {}});
  const auto killed = std::make_shared<std::atomic<bool>>(false);
  const auto fenced = std::make_shared<std::atomic<bool>>(false);
  const auto write = [&](const std::string& name, std::shared_ptr<std::atomic<bool>> abandoned,
                         std::shared_ptr<std::atomic<bool>> fence) {
    ObjectOp op = WriteOp(0, 4096);
    op.abandoned = std::move(abandoned);
    op.fenced = std::move(fence);
    Submit(name, std::move(op));
  };
  using Ends = std::vector<std::pair<std::string, ErrorCode>>;
  for (const bool before : {true, false}) {
    write("killed", killed, nullptr);
    write("fenced", nullptr, fenced);
    write("other", nullptr, nullptr);
    ASSERT_EQ(osds_.flights.size(), 3u);
    if (before) {
      while (!osds_.flights.empty()) osds_.Fail(0, ErrorCode::kNoSpace);
      EXPECT_TRUE(ends_.empty());
    }
    *killed = true;
    io_->DropAbandoned();
    *fenced = true;
    io_->DropFenced();
    while (!osds_.flights.empty()) osds_.Fail(0, ErrorCode::kNoSpace);
    EXPECT_EQ(ends_, (Ends{{"killed", ErrorCode::kCancelled}, {"fenced", ErrorCode::kStale}}));
    ends_.clear();
    *killed = *fenced = false;
  }
  io_->Stop();
  EXPECT_EQ(ends_.size(), 2u) << "the others";
}

TEST_F(ObjectIoTest, WhatIsAbandonedLeavesTheQueueAndNothingElseDoes) {
  Start({.windows = {.first_window_bytes = 100, .beyond_bytes = 0, .beyond_requests = 0}});
  Read("sent", 16, 100);
  const auto dead = std::make_shared<std::atomic<bool>>(true);
  const auto alive = std::make_shared<std::atomic<bool>>(false);
  for (const auto& [name, flag] : {std::pair("dead", dead), std::pair("alive", alive)}) {
    ObjectOp op = ReadOp(16, 100);
    op.abandoned = flag;
    Submit(name, std::move(op));
  }
  Read("last", 16, 100);
  io_->DropAbandoned();
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_EQ(ends_[0], std::pair(std::string("dead"), ErrorCode::kCancelled));
  while (!osds_.flights.empty()) osds_.Answer(0);
  ASSERT_EQ(ends_.size(), 4u);
  EXPECT_EQ(ends_[2].first, "alive");
  EXPECT_EQ(ends_[3].first, "last");
  EXPECT_EQ(osds_.sent, 3u);
}

// A write of a killed process that waited for something else first must not come late.
TEST_F(ObjectIoTest, WhatIsAbandonedIsNotSentThoughThereIsRoom) {
  Start({});
  ObjectOp op = ReadOp(16, 100);
  op.abandoned = std::make_shared<std::atomic<bool>>(true);
  Submit("dead", std::move(op));
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_EQ(ends_[0].second, ErrorCode::kCancelled);
  EXPECT_EQ(osds_.sent, 0u);
}

}  // namespace
}  // namespace weir::client
