// Goal: what was answered early is kept under its id until it is durable, and repeated in order to
// an MDS that has begun anew; nothing that an MDS of a life before says is believed of this one.
// Method: an MDS in the same process of which the test takes what it hears, one by one.
#include "client/remote/ordered_calls.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>

#include "client/remote/ordered_names.h"
#include "common/net/transport.h"
#include "common/wire/mds.pb.h"

namespace weir::client {
namespace {

using namespace std::chrono_literals;

constexpr InodeId kFile{11};
constexpr int64_t kWhen = 1234;

class OrderedCallsTest : public ::testing::Test {
 protected:
  using CallPtr = std::shared_ptr<net::IncomingCall>;

  void SetUp() override {
    auto server = net::RpcServer::Start(*network_, SystemClock::Get(), "inproc://mds",
                                        [this](const CallPtr& call) {
                                          const std::lock_guard lock(mutex_);
                                          heard_.push_back(call);
                                          hears_.notify_all();
                                        });
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    ASSERT_TRUE(channels_.Connect().ok());
    calls_.BeginLife(1);
  }
  void TearDown() override { channels_.Stop(); }

  CallPtr Next(uint32_t method) {
    std::unique_lock lock(mutex_);
    hears_.wait(lock, [this] { return !heard_.empty(); });
    CallPtr call = std::move(heard_.front());
    heard_.pop_front();
    EXPECT_EQ(call->method(), method);
    return call;
  }
  // The answer to a change that is asked now.
  std::future<Result<net::Reply>> Ask(uint32_t method, const std::string& body,
                                      bool idempotent = false) {
    auto answered = std::make_shared<std::promise<Result<net::Reply>>>();
    net::CallOptions call;
    call.idempotent = idempotent;
    calls_.Call(0, method, body, call,
                [answered](Result<net::Reply> reply) { answered->set_value(std::move(reply)); });
    return answered->get_future();
  }
  static std::string Answer(uint64_t order, uint64_t durable, uint64_t life,
                            InodeId made = InodeId()) {
    wire::EntryReply reply;
    if (made != InodeId()) reply.mutable_attr()->set_inode(made.value);
    *reply.mutable_ordered() = Said(order, durable, life);
    return reply.SerializeAsString();
  }
  static wire::Ordered Said(uint64_t order, uint64_t durable, uint64_t life) {
    wire::Ordered said;
    said.set_order(order);
    said.set_durable(durable);
    said.set_life(life);
    said.set_stamp_ns(kWhen);
    return said;
  }
  // Asked and answered early at that place of the first life; returns its id.
  uint64_t Make(const std::string& body, uint64_t order, InodeId made = InodeId()) {
    auto answer = Ask(wire::MDS_MKNOD, body);
    const CallPtr call = Next(wire::MDS_MKNOD);
    call->Respond(Answer(order, 0, 1, made));
    EXPECT_TRUE(answer.get().ok());
    return call->request_id();
  }
  // Up to where the MDS hears that no answer need be kept any more.
  uint64_t AckedBelow() {
    auto answer = Ask(wire::MDS_GROW, "");
    const CallPtr call = Next(wire::MDS_GROW);
    const uint64_t acked = call->acked_below();
    call->Respond(std::string());
    EXPECT_TRUE(answer.get().ok());
    return acked;
  }
  void Repeat() {
    calls_.Repeat([this](bool goes_on) { repeated_.set_value(goes_on); });
  }
  bool GoesOn() {
    const bool goes_on = repeated_.get_future().get();
    repeated_ = {};
    return goes_on;
  }
  // It was told that it made the file, and the next MDS goes on without that.
  void Lose(InodeId file) {
    auto made = Ask(wire::MDS_MKNOD, "a");
    Next(wire::MDS_MKNOD)->Respond(Answer(1, 0, life_, file));
    EXPECT_TRUE(made.get().ok());
    calls_.BeginLife(++life_);
    Repeat();
    Next(wire::MDS_REPLAY)->Respond(Status(ErrorCode::kStale, "others have gone on"));
    Next(wire::MDS_REPLAYED)->Respond(std::string());
    EXPECT_TRUE(GoesOn());
  }
  // Whether kFile is there, once an answer has that inode.
  bool Shown(uint32_t method, InodeId inode) {
    auto answer = Ask(method, "", method == wire::MDS_LOOKUP || method == wire::MDS_GETATTR);
    Next(method)->Respond(Answer(0, 0, 0, inode));
    EXPECT_TRUE(answer.get().ok());
    return !names_.IsLost(kFile);
  }
  // What is repeated next.
  CallPtr NextRepeated(const std::string& body, wire::ReplayRequest* request) {
    CallPtr call = Next(wire::MDS_REPLAY);
    EXPECT_TRUE(request->ParseFromString(call->body()));
    EXPECT_EQ(request->body(), body);
    return call;
  }
  void ExpectRepeated(const std::string& body, const std::string& answer) {
    wire::ReplayRequest request;
    NextRepeated(body, &request)->Respond(answer);
  }

  const std::unique_ptr<net::Network> network_ = net::MakeNetwork();
  std::mutex mutex_;
  std::condition_variable hears_;
  std::deque<CallPtr> heard_;
  std::unique_ptr<net::RpcServer> server_;
  ReactorNetworks networks_{*network_};
  OrderedNames names_;
  std::atomic<size_t> lost_{0};
  std::promise<bool> repeated_;
  uint64_t life_ = 1;  // of Lose
  MdsChannels channels_{networks_, SystemClock::Get(), {"inproc://mds", 7, 0, {}}};
  std::vector<InodeId> made_again_, kept_again_;
  OrderedCalls calls_{channels_,
                      {&names_, 1s, true, Duration::max(), [this](size_t lost) { lost_ = lost; },
                       [this](const auto& inodes) { made_again_ = inodes; },
                       [this](const auto& inodes) { kept_again_ = inodes; }}};
};

TEST_F(OrderedCallsTest, TheIdOfAnEarlyAnswerIsFreeWhenThatIsDurable) {
  const uint64_t id = Make("a", 3, kFile);
  EXPECT_TRUE(names_.IsNew(kFile));
  EXPECT_LE(AckedBelow(), id) << "the MDS may have to give that answer again";
  calls_.Heard(Said(0, 2, 1));
  EXPECT_LE(AckedBelow(), id);
  calls_.Heard(Said(0, 3, 1));
  EXPECT_FALSE(names_.IsNew(kFile));
  EXPECT_GT(AckedBelow(), id);
}

TEST_F(OrderedCallsTest, WhatIsAnsweredWhenItIsDurableOrRefusedIsNotKept) {
  auto durable = Ask(wire::MDS_MKNOD, "a");
  Next(wire::MDS_MKNOD)->Respond(Answer(0, 5, 1));
  EXPECT_TRUE(durable.get().ok());
  auto refused = Ask(wire::MDS_MKNOD, "b");
  const CallPtr call = Next(wire::MDS_MKNOD);
  call->Respond(Status(ErrorCode::kExists, "there"));
  EXPECT_EQ(refused.get().code(), ErrorCode::kExists);
  EXPECT_GT(AckedBelow(), call->request_id());
  EXPECT_EQ(names_.durable(), 5u);
  calls_.BeginLife(2);
  Repeat();
  Next(wire::MDS_REPLAYED)->Respond(std::string());
  EXPECT_TRUE(GoesOn()) << "nothing is to be repeated";
}

TEST_F(OrderedCallsTest, IsRepeatedInOrderUnderItsIdButForWhatIsDurable) {
  Make("durable", 1);
  const uint64_t second = Make("second", 8);
  const uint64_t first = Make("first", 5, kFile);
  calls_.Heard(Said(0, 1, 1));
  calls_.BeginLife(2);
  Repeat();
  wire::ReplayRequest request;
  const CallPtr earlier = NextRepeated("first", &request);
  EXPECT_EQ(request.request_id(), first);
  EXPECT_EQ(request.inode(), kFile.value);
  EXPECT_EQ(request.stamp_ns(), kWhen);
  EXPECT_EQ(request.method(), static_cast<uint32_t>(wire::MDS_MKNOD));
  earlier->Respond(Answer(1, 0, 2, kFile));
  const CallPtr later = NextRepeated("second", &request);
  EXPECT_EQ(request.request_id(), second);
  later->Respond(Answer(2, 0, 2));
  const CallPtr end = Next(wire::MDS_REPLAYED);
  EXPECT_TRUE(names_.IsNew(kFile));
  end->Respond(std::string());
  EXPECT_TRUE(GoesOn());
  EXPECT_LE(AckedBelow(), second);
  calls_.Heard(Said(0, 2, 2));
  EXPECT_TRUE(names_.IsDurable(names_.last()));
  EXPECT_FALSE(names_.IsNew(kFile));
  EXPECT_GT(AckedBelow(), first);
  EXPECT_EQ(lost_, 0u);
}

// The MDS finds the answer that it kept with the change.
TEST_F(OrderedCallsTest, WhatWasDurableAfterAllIsAnsweredWithoutAPlace) {
  const uint64_t id = Make("a", 4, kFile);
  calls_.BeginLife(2);
  Repeat();
  wire::EntryReply kept;
  kept.mutable_attr()->set_inode(kFile.value);
  ExpectRepeated("a", kept.SerializeAsString());
  Next(wire::MDS_REPLAYED)->Respond(std::string());
  EXPECT_TRUE(GoesOn());
  EXPECT_FALSE(names_.IsNew(kFile));
  EXPECT_GT(AckedBelow(), id);
  EXPECT_FALSE(names_.lost());
}

// An MDS opens again what a CREATE has opened, and keeps again what a removal has kept, also where
// the answer is a kept one: the mount may have closed the one and let go of the other.
TEST_F(OrderedCallsTest, TellsWhatIsOpenAndWhatIsKeptByWhatWasRepeated) {
  constexpr InodeId kRemoved{12};
  wire::TouchedReply removed;
  removed.set_kept(kRemoved.value);
  auto created = Ask(wire::MDS_CREATE, "a");
  Next(wire::MDS_CREATE)->Respond(Answer(4, 0, 1, kFile));
  EXPECT_TRUE(created.get().ok());
  auto unlinked = Ask(wire::MDS_UNLINK, "b");
  *removed.mutable_ordered() = Said(5, 0, 1);
  Next(wire::MDS_UNLINK)->Respond(removed.SerializeAsString());
  EXPECT_TRUE(unlinked.get().ok());
  calls_.BeginLife(2);
  Repeat();
  wire::EntryReply kept;
  kept.mutable_attr()->set_inode(kFile.value);
  ExpectRepeated("a", kept.SerializeAsString());
  removed.clear_ordered();
  ExpectRepeated("b", removed.SerializeAsString());
  Next(wire::MDS_REPLAYED)->Respond(std::string());
  EXPECT_TRUE(GoesOn());
  EXPECT_EQ(made_again_, std::vector<InodeId>{kFile});
  EXPECT_EQ(kept_again_, std::vector<InodeId>{kRemoved});
}

TEST_F(OrderedCallsTest, WhatComesTooLateIsLostAndTold) {
  Make("a", 4, kFile);
  Make("b", 5);
  calls_.BeginLife(2);
  Repeat();
  for (const char* body : {"a", "b"}) {
    wire::ReplayRequest request;
    NextRepeated(body, &request)->Respond(Status(ErrorCode::kStale, "others have gone on"));
  }
  Next(wire::MDS_REPLAYED)->Respond(std::string());
  EXPECT_TRUE(GoesOn());
  EXPECT_EQ(lost_, 2u);
  EXPECT_TRUE(names_.TakeLoss(InodeId()));
  EXPECT_TRUE(names_.IsLost(kFile));
  EXPECT_TRUE(names_.IsDurable(names_.last())) << "nobody waits for it";
}

// The accident: its creation was durable, which nobody heard before the MDS died, and whoever
// stored it heard until the next mount that it is lost. Numbers of inodes are given once.
TEST_F(OrderedCallsTest, WhatTheNextMdsShowsIsNotLost) {
  for (const uint32_t method :
       {wire::MDS_LOOKUP, wire::MDS_GETATTR, wire::MDS_OPEN, wire::MDS_CREATE}) {
    Lose(kFile);
    ASSERT_TRUE(names_.IsLost(kFile));
    EXPECT_FALSE(Shown(method, InodeId(12)));
    EXPECT_TRUE(names_.IsLost(kFile)) << "another one";
    EXPECT_TRUE(Shown(method, kFile)) << method;
  }
}

// Who opens it as soon as he hears that he was given up does so before all of that is refused.
TEST_F(OrderedCallsTest, WhatItShowsWhileThatIsRepeatedIsNotLost) {
  Make("a", 4, kFile);
  calls_.BeginLife(2);
  Repeat();
  wire::ReplayRequest request;
  const CallPtr replay = NextRepeated("a", &request);
  EXPECT_TRUE(Shown(wire::MDS_OPEN, kFile));
  replay->Respond(Status(ErrorCode::kStale, "others have gone on"));
  Next(wire::MDS_REPLAYED)->Respond(std::string());
  EXPECT_TRUE(GoesOn());
  EXPECT_FALSE(names_.IsLost(kFile));
  EXPECT_TRUE(names_.TakeLoss(InodeId())) << "somebody hears of it all the same";
  EXPECT_FALSE(names_.TakeLoss(kFile));
}

// What an MDS shows in the life in which it made the file is no reason.
TEST_F(OrderedCallsTest, WhatWasAskedInTheLifeBeforeTellsNothingOfThis) {
  auto before = Ask(wire::MDS_GETATTR, "", true);
  const CallPtr asked_before = Next(wire::MDS_GETATTR);
  Lose(kFile);
  auto between = Ask(wire::MDS_GETATTR, "", true);
  const CallPtr asked_between = Next(wire::MDS_GETATTR);
  Lose(kFile);
  for (const CallPtr& call : {asked_before, asked_between}) {
    call->Respond(Answer(0, 0, 0, kFile));
  }
  EXPECT_TRUE(before.get().ok());
  EXPECT_TRUE(between.get().ok());
  EXPECT_TRUE(names_.IsLost(kFile));
}

TEST_F(OrderedCallsTest, WhereSomethingIsLostIsTold) {
  wire::RenameRequest rename;
  rename.set_old_parent(21);
  rename.set_new_parent(22);
  auto renamed = Ask(wire::MDS_RENAME, rename.SerializeAsString());
  Next(wire::MDS_RENAME)->Respond(Answer(4, 0, 1));
  EXPECT_TRUE(renamed.get().ok());
  calls_.BeginLife(2);
  Repeat();
  Next(wire::MDS_REPLAY)->Respond(Status(ErrorCode::kStale, "others have gone on"));
  Next(wire::MDS_REPLAYED)->Respond(std::string());
  EXPECT_TRUE(GoesOn());
  EXPECT_TRUE(names_.TakeLoss(InodeId(20))) << "the first";
  EXPECT_FALSE(names_.TakeLoss(InodeId(20)));
  EXPECT_TRUE(names_.TakeLoss(InodeId(21)));
  EXPECT_TRUE(names_.TakeLoss(InodeId(22)));
}

TEST_F(OrderedCallsTest, AnMdsThatBeginsAnewMeanwhileGetsAllOfIt) {
  Make("a", 1);
  Make("b", 2);
  Make("c", 3);
  calls_.BeginLife(2);
  Repeat();
  ExpectRepeated("a", Answer(1, 0, 2));
  wire::ReplayRequest request;
  NextRepeated("b", &request)->Respond(Status(ErrorCode::kStaleEpoch, "the session is not open"));
  EXPECT_FALSE(GoesOn());
  calls_.BeginLife(3);
  Repeat();
  ExpectRepeated("a", Answer(1, 0, 3));
  ExpectRepeated("b", Answer(2, 0, 3));
  ExpectRepeated("c", Answer(3, 0, 3));
  Next(wire::MDS_REPLAYED)->Respond(std::string());
  EXPECT_TRUE(GoesOn());
  EXPECT_EQ(lost_, 0u);
}

// The accident: the answer to an fsync in the life before said of orders of this one that they are
// durable.
TEST_F(OrderedCallsTest, WhatACommitSaysOfALifeBeforeIsNotBelieved) {
  std::promise<Status> synced;
  calls_.Commit([&](const Status& status) { synced.set_value(status); });
  const CallPtr commit = Next(wire::MDS_COMMIT);
  Make("a", 1, kFile);
  calls_.BeginLife(2);
  Repeat();
  ExpectRepeated("a", Answer(1, 0, 2, kFile));
  Next(wire::MDS_REPLAYED)->Respond(std::string());
  EXPECT_TRUE(GoesOn());
  commit->Respond(Answer(0, 5, 1));
  EXPECT_TRUE(synced.get_future().get().ok()) << "all that was answered before is durable";
  EXPECT_TRUE(names_.IsNew(kFile));
}

// The accident: the commit reached an MDS that had begun anew and gone on without this mount,
// before the mount knew; what it was told before counted as durable.
TEST_F(OrderedCallsTest, ACommitOfALaterLifeIsAskedForAgainWhenAllIsRepeated) {
  Make("a", 1, kFile);
  std::promise<Status> synced;
  calls_.Commit([&](const Status& status) { synced.set_value(status); });
  auto answered = synced.get_future();
  Next(wire::MDS_COMMIT)->Respond(Answer(0, 0, 2));
  AckedBelow();  // that has been heard
  calls_.Tick();
  Next(wire::MDS_COMMIT)->Respond(Answer(0, 0, 2));  // the session is not open there yet
  AckedBelow();
  calls_.BeginLife(2);
  Repeat();
  wire::ReplayRequest request;
  const CallPtr replay = NextRepeated("a", &request);
  calls_.Tick();
  EXPECT_EQ(answered.wait_for(0s), std::future_status::timeout);
  replay->Respond(Status(ErrorCode::kStale, "others have gone on"));
  Next(wire::MDS_REPLAYED)->Respond(std::string());
  EXPECT_TRUE(GoesOn());
  EXPECT_EQ(answered.wait_for(0s), std::future_status::timeout);
  calls_.Tick();
  Next(wire::MDS_COMMIT)->Respond(Answer(0, 0, 2));
  EXPECT_TRUE(answered.get().ok());
  EXPECT_TRUE(names_.TakeLoss(InodeId())) << "who asked hears of that";
}

TEST_F(OrderedCallsTest, ACommitThatIsAnsweredWhileItIsRepeatedWaits) {
  Make("a", 1);
  std::promise<Status> synced;
  calls_.Commit([&](const Status& status) { synced.set_value(status); });
  auto answered = synced.get_future();
  const CallPtr commit = Next(wire::MDS_COMMIT);
  calls_.BeginLife(2);
  Repeat();
  wire::ReplayRequest request;
  const CallPtr replay = NextRepeated("a", &request);
  commit->Respond(Answer(0, 0, 2));
  AckedBelow();  // that has been heard
  EXPECT_EQ(answered.wait_for(0s), std::future_status::timeout);
  channels_.Stop();
  calls_.Stop();
  EXPECT_EQ(answered.get().code(), ErrorCode::kCancelled);
}

TEST_F(OrderedCallsTest, ACommitTellsWhatIsDurable) {
  const uint64_t id = Make("a", 1, kFile);
  std::promise<Status> synced;
  calls_.Commit([&](const Status& status) { synced.set_value(status); });
  Next(wire::MDS_COMMIT)->Respond(Answer(0, 1, 1));
  EXPECT_TRUE(synced.get_future().get().ok());
  EXPECT_FALSE(names_.IsNew(kFile));
  EXPECT_GT(AckedBelow(), id);
}

}  // namespace
}  // namespace weir::client
