// A process that goes on with the session of a dead one: rpc.h, Options::ids_above and ReserveId.
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "common/net/envelope.h"
#include "common/net/rpc.h"
#include "common/testing/seed.h"
#include "common/testing/sim_transport.h"
#include "common/wire/rpc.pb.h"

namespace weir::net {
namespace {

using namespace std::chrono_literals;
using testing::SimNetwork;

constexpr char kEndpoint[] = "inproc://server";
constexpr uint64_t kSession = 7;
constexpr uint64_t kAbove = 1ull << 40;

class RpcSuccessorTest : public ::testing::Test {
 protected:
  RpcSuccessorTest() {
    server_ = *RpcServer::Start(network_, clock_, kEndpoint,
                                [this](const std::shared_ptr<IncomingCall>& call) {
                                  ++applied_[call->body()];
                                  acked_below_ = call->acked_below();
                                  call->Respond(call->body() + std::to_string(++answers_));
                                });
  }
  std::unique_ptr<RpcClient> First() {
    return *RpcClient::Connect(network_, clock_, kEndpoint, {.session = kSession});
  }
  std::unique_ptr<RpcClient> Successor(std::vector<uint64_t> reserved) {
    return *RpcClient::Connect(
        network_, clock_, kEndpoint,
        {.session = kSession, .ids_above = kAbove, .reserved_ids = std::move(reserved)});
  }
  std::string Ask(RpcClient& client, const std::string& body, uint64_t reserved_id = 0) {
    std::optional<Result<Reply>> answer;
    client.Call(1, body, {}, {.timeout = Duration::max(), .reserved_id = reserved_id},
                [&](Result<Reply> reply) { answer = std::move(reply); });
    EXPECT_TRUE(network_.RunUntil([&] { return answer.has_value(); }, 1h));
    return answer->ok() ? (*answer)->body : answer->status().message();
  }
  // What was on its way for long.
  void ArriveLate(uint64_t id, const std::string& body) {
    wire::RpcHeader header;
    header.set_kind(wire::RpcHeader::REQUEST);
    header.set_session(kSession);
    header.set_request_id(id);
    header.set_body(body);
    network_.Inject(kEndpoint, {*EncodeFrame(Direction::kToServer, header, 0), {}},
                    [](const Message&) {});
    network_.RunUntilIdle();
  }

  testing::ManualClock clock_;
  SimNetwork network_{clock_, weir::testing::TestSeed()};
  std::map<std::string, int> applied_;
  int answers_ = 0;
  uint64_t acked_below_ = 0;
  std::unique_ptr<RpcServer> server_;
};

TEST_F(RpcSuccessorTest, AReservedCallHasOneAnswerUntilItIsFreed) {
  auto first = First();
  const uint64_t id = first->ReserveId();
  EXPECT_EQ(Ask(*first, "make", id), "make1");
  EXPECT_EQ(Ask(*first, "other"), "other2");  // acknowledges what may be
  first.reset();                              // before it told anybody
  auto successor = Successor({id});
  EXPECT_EQ(Ask(*successor, "look"), "look3");
  EXPECT_EQ(acked_below_, id);
  EXPECT_EQ(Ask(*successor, "make", id), "make1");
  EXPECT_EQ(applied_["make"], 1);
  successor->FreeId(id);
  EXPECT_EQ(Ask(*successor, "look"), "look4");
  EXPECT_GT(acked_below_, kAbove);
}

TEST_F(RpcSuccessorTest, AReservedCallThatNeverArrivedIsApplied) {
  auto first = First();
  const uint64_t id = first->ReserveId();
  first.reset();
  auto successor = Successor({id});
  EXPECT_EQ(Ask(*successor, "look"), "look1");
  EXPECT_EQ(Ask(*successor, "make", id), "make2");
}

// Goal: an old write that comes out of a dead process's connection does not undo a newer one.
TEST_F(RpcSuccessorTest, WhatTheDeadOneHadOnItsWayIsAppliedNoMore) {
  EXPECT_EQ(Ask(*First(), "before"), "before1");
  auto successor = Successor({3});
  EXPECT_EQ(Ask(*successor, "newer"), "newer2");
  ArriveLate(2, "late");
  EXPECT_EQ(applied_["late"], 0);
  ArriveLate(3, "asked for");
  EXPECT_EQ(applied_["asked for"], 1);
}

TEST_F(RpcSuccessorTest, AnIdThatIsFreedWithoutACallHoldsNothingUp) {
  auto client = First();
  const uint64_t id = client->ReserveId();
  EXPECT_EQ(Ask(*client, "one"), "one1");
  EXPECT_EQ(acked_below_, id);
  client->FreeId(id);
  EXPECT_EQ(Ask(*client, "two"), "two2");
  EXPECT_GT(acked_below_, id);
}

}  // namespace
}  // namespace weir::net
