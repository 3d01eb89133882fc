// The promises of rpc.h on a simulated network: no socket, no thread, virtual time.
#include "common/net/rpc.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>

#include "common/net/envelope.h"
#include "common/testing/seed.h"
#include "common/testing/sim_transport.h"
#include "common/wire/rpc.pb.h"

namespace weir::net {
namespace {

using namespace std::chrono_literals;
using testing::SimNetwork;

constexpr char kEndpoint[] = "inproc://server";

class RpcTest : public ::testing::Test {
 protected:
  void Serve(RpcServer::Handler handler, RpcServerOptions options = {}) {
    server_.reset();
    auto server = RpcServer::Start(network_, clock_, kEndpoint, std::move(handler), options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  std::unique_ptr<RpcClient> Dial(uint64_t session = 7) {
    return *RpcClient::Connect(network_, clock_, kEndpoint, {.session = session});
  }
  // The answer to one call, taking events until it is there.
  Result<Reply> CallAndRun(RpcClient& client, const std::string& body, CallOptions options = {}) {
    std::optional<Result<Reply>> answer;
    client.Call(1, body, {}, options, [&](Result<Reply> r) { answer = std::move(r); });
    EXPECT_TRUE(network_.RunUntil([&] { return answer.has_value(); }, 1h));
    return *std::move(answer);
  }

  testing::ManualClock clock_;
  SimNetwork network_{clock_, weir::testing::TestSeed()};
  std::unique_ptr<RpcServer> server_;
};

// Each counts its requests from 1, and acknowledges its own.
TEST_F(RpcTest, ConnectionsOfOneSessionAreToldApartAndServedForThatSession) {
  std::map<std::string, int> applied;
  std::vector<std::pair<uint64_t, uint64_t>> heard;  // session, request id
  Serve([&](const std::shared_ptr<IncomingCall>& call) {
    ++applied[call->body()];
    heard.emplace_back(call->session(), call->request_id());
    call->Respond(call->body());
  });
  std::vector<std::unique_ptr<RpcClient>> clients;
  for (uint32_t i = 0; i < kMostConnections; ++i) clients.push_back(Dial(OnConnection(7, i)));
  network_.SetOptions({.drop = 0.3, .duplicate = 0.3, .disconnect = 0.05, .linger = 0.5});
  for (int round = 0; round < 10; ++round) {
    for (size_t i = 0; i < clients.size(); ++i) {
      const std::string body = std::to_string(round) + "/" + std::to_string(i);
      const Result<Reply> reply = CallAndRun(*clients[i], body, {.timeout = Duration::max()});
      ASSERT_TRUE(reply.ok()) << reply.status();
      EXPECT_EQ(reply->body, body);
    }
  }
  EXPECT_EQ(applied.size(), 10 * clients.size());
  for (const auto& [body, times] : applied) EXPECT_EQ(times, 1) << body;
  for (size_t i = 0; i < heard.size(); ++i) {
    EXPECT_EQ(heard[i].first, 7u);
    EXPECT_EQ(heard[i].second, 1 + i / clients.size());
  }
}

TEST_F(RpcTest, NothingIsAppliedTwiceAndEverythingOnceUnderLossDuplicationAndReconnects) {
  uint64_t sent = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    testing::ManualClock clock;
    SimNetwork network(clock, weir::testing::TestSeed(seed),
                       {.drop = 0.05, .duplicate = 0.1, .disconnect = 0.02, .linger = 0.5});
    Prng prng(seed);
    std::map<std::string, int> applied;
    std::vector<std::shared_ptr<IncomingCall>> held;
    auto server =
        *RpcServer::Start(network, clock, kEndpoint, [&](std::shared_ptr<IncomingCall> call) {
          ++applied[call->body()];
          held.push_back(std::move(call));
          // Answers come late and out of order.
          while (held.size() > 8) {
            std::swap(held[prng.Uniform(0, held.size() - 1)], held.back());
            held.back()->Respond(held.back()->body());
            held.pop_back();
          }
        });
    auto client = *RpcClient::Connect(network, clock, kEndpoint, {.session = seed});
    std::map<std::string, int> answered;
    for (int i = 0; i < 300; ++i) {
      const std::string body = std::to_string(i);
      client->Call(1, body, {}, {.timeout = Duration::max()}, [&, body](Result<Reply> reply) {
        ASSERT_TRUE(reply.ok()) << reply.status();
        EXPECT_EQ(reply->body, body);
        ++answered[body];
      });
      network.RunFor(Duration(static_cast<int64_t>(prng.Uniform(0, 2'000'000))));
    }
    const auto all_answered = [&] {
      for (const auto& call : held) call->Respond(call->body());
      held.clear();
      return answered.size() == 300;
    };
    ASSERT_TRUE(network.RunUntil(all_answered, 24h)) << "seed " << seed;
    for (const auto& [body, count] : applied) ASSERT_EQ(count, 1) << body << " seed " << seed;
    for (const auto& [body, count] : answered) ASSERT_EQ(count, 1) << body << " seed " << seed;
    sent += network.messages_sent();
  }
  EXPECT_GT(sent, 30u * 600) << "the faults caused no retry";
}

TEST_F(RpcTest, AReconnectSendsAFewFirstAndSoonEverything) {
  auto client = *RpcClient::Connect(network_, clock_, kEndpoint, {.session = 1});
  size_t answered = 0;
  for (int i = 0; i < 2000; ++i) {
    client->Call(1, "x", {}, {.timeout = Duration::max()}, [&](const Result<Reply>& reply) {
      EXPECT_TRUE(reply.ok()) << reply.status();
      ++answered;
    });
  }
  size_t arrived = 0;
  server_ = *RpcServer::Start(network_, clock_, kEndpoint, [&](const auto& call) {
    ++arrived;
    call->Respond(std::string());
  });
  ASSERT_TRUE(network_.RunUntil([&] { return arrived > 0; }, 10s));
  network_.RunFor(500us);
  EXPECT_LE(arrived, 32u);
  network_.RunFor(20ms);
  EXPECT_EQ(answered, 2000u);
}

TEST_F(RpcTest, ADeadlineEndsACallThatIsNotAnswered) {
  std::vector<std::shared_ptr<IncomingCall>> held;
  Serve([&](std::shared_ptr<IncomingCall> call) { held.push_back(std::move(call)); });
  auto client = Dial();
  const TimePoint start = clock_.Now();
  auto late = CallAndRun(*client, "x", {.timeout = 5s});
  EXPECT_EQ(late.code(), ErrorCode::kTimedOut);
  EXPECT_THAT(late.status().message(), ::testing::HasSubstr(kEndpoint));
  EXPECT_EQ(clock_.Now() - start, 5s);
  held.at(0)->Respond(std::string("too late"));
  network_.RunFor(1s);
}

TEST_F(RpcTest, AServerThatIsNotThereIsUnreachable) {
  auto client = Dial();
  auto reply = CallAndRun(*client, "x", {.timeout = 5s});
  EXPECT_EQ(reply.code(), ErrorCode::kUnreachable);
  EXPECT_THAT(reply.status().message(), ::testing::HasSubstr(kEndpoint));
  EXPECT_FALSE(client->connected());
}

TEST_F(RpcTest, ARestartedServerGetsWhatIsOutstandingOnceMore) {
  std::vector<std::shared_ptr<IncomingCall>> held;
  Serve([&](std::shared_ptr<IncomingCall> call) { held.push_back(std::move(call)); });
  auto client = Dial();
  std::optional<Result<Reply>> answer;
  client->Call(1, "again", {}, {.timeout = Duration::max()},
               [&](Result<Reply> r) { answer = std::move(r); });
  ASSERT_TRUE(network_.RunUntil([&] { return held.size() == 1; }, 10s));
  held.clear();  // dies with its server
  int applied = 0;
  Serve([&](const std::shared_ptr<IncomingCall>& call) {
    ++applied;
    call->Respond(call->body());
  });
  ASSERT_TRUE(network_.RunUntil([&] { return answer.has_value(); }, 10s));
  ASSERT_TRUE(answer->ok()) << answer->status();
  EXPECT_EQ(applied, 1);
  EXPECT_TRUE(client->connected());
  server_.reset();
  client->Call(1, "anybody?", {}, {}, [](const Result<Reply>&) {});
  network_.RunFor(4s);
  EXPECT_FALSE(client->connected());
}

// Goal: how long a call waits before it goes out again on a connection does not depend on how many
// connections it has outlived. Method: the last answer is lost.
TEST_F(RpcTest, ALostAnswerIsAskedForAgainAsSoonAfterManyReconnects) {
  std::vector<std::shared_ptr<IncomingCall>> held;
  auto client = Dial();
  std::optional<Result<Reply>> answer;
  client->Call(1, "x", {}, {.timeout = Duration::max()},
               [&](Result<Reply> r) { answer = std::move(r); });
  for (int life = 0; life < 6; ++life) {
    held.clear();
    Serve([&](std::shared_ptr<IncomingCall> call) { held.push_back(std::move(call)); });
    ASSERT_TRUE(network_.RunUntil([&] { return held.size() == 1; }, 10s));
  }
  network_.SetOptions({.drop = 1});
  held[0]->Respond(std::string("lost"));
  network_.RunFor(1ms);
  network_.SetOptions({});
  EXPECT_TRUE(network_.RunUntil([&] { return answer.has_value(); }, 11s));
}

// Nobody wakes for a connection over which nothing is asked; what has become of the server
// meanwhile shows when something is.
TEST_F(RpcTest, WhoAsksNothingCountsAsConnectedUntilHeAsks) {
  Serve([](const std::shared_ptr<IncomingCall>& call) { call->Respond(call->body()); });
  auto client = Dial();
  const auto ask = [&] {
    std::optional<Result<Reply>> answer;
    client->Call(1, "there?", {}, {.timeout = 4s}, [&](Result<Reply> r) { answer = std::move(r); });
    EXPECT_TRUE(network_.RunUntil([&] { return answer.has_value(); }, 10s));
    return answer->status().code();
  };
  EXPECT_EQ(ask(), ErrorCode::kOk);
  network_.RunFor(60s);
  EXPECT_TRUE(client->connected());
  EXPECT_EQ(ask(), ErrorCode::kOk);
  network_.RunFor(60s);
  server_.reset();
  EXPECT_EQ(ask(), ErrorCode::kUnreachable);
  EXPECT_FALSE(client->connected());
}

// Goal: a client that has rested gives up a server that says nothing, on any transport. Method: one
// takes the server's place that hears everything and never answers.
TEST_F(RpcTest, WhoHasRestedGivesUpASilentServerLikeAnyOther) {
  Serve([](const std::shared_ptr<IncomingCall>& call) { call->Respond("x"); });
  const auto client = Dial();
  ASSERT_TRUE(CallAndRun(*client, "a").ok());
  network_.RunFor(1h);  // it rests
  server_.reset();
  std::set<PeerId> connections;
  const auto silent = *network_.Listen(kEndpoint);
  ASSERT_TRUE(silent->Start([&](PeerId peer, const Message&) { connections.insert(peer); }).ok());
  EXPECT_TRUE(network_.RunUntil([&] { return connections.size() > 2; }, 1h));
}

TEST_F(RpcTest, AboveItsByteBoundAServerPutsCallsOffAndAppliesEachOnceAfterwards) {
  std::vector<std::shared_ptr<IncomingCall>> held;
  Serve([&](std::shared_ptr<IncomingCall> call) { held.push_back(std::move(call)); },
        {.max_queued_bytes = 1000});
  auto client = Dial();
  int answered = 0;
  for (int i = 0; i < 10; ++i) {
    client->Call(1, std::string(400, 'x'), {}, {}, [&](Result<Reply> reply) {
      EXPECT_TRUE(reply.ok()) << reply.status();
      ++answered;
    });
  }
  network_.RunFor(1s);
  EXPECT_EQ(held.size(), 2u);
  int applied = 0;
  ASSERT_TRUE(network_.RunUntil(
      [&] {
        for (const auto& call : held) call->Respond(std::string());
        applied += static_cast<int>(held.size());
        held.clear();
        return answered == 10;
      },
      10s));
  EXPECT_EQ(applied, 10);
}

TEST_F(RpcTest, ABusyHandlerIsTheCallersBusiness) {
  Serve([&](const std::shared_ptr<IncomingCall>& call) {
    call->Respond(Status(ErrorCode::kBusy, "in use"));
  });
  auto client = Dial();
  auto reply = CallAndRun(*client, "x");
  EXPECT_EQ(reply.code(), ErrorCode::kBusy);
  EXPECT_EQ(reply.status().message(), "in use");
}

TEST_F(RpcTest, WhoeverAsksForItGetsTheBodyOfAnError) {
  Serve([&](const std::shared_ptr<IncomingCall>& call) {
    call->Respond(Status(ErrorCode::kStaleEpoch, "ask again"), "of whom", {});
  });
  auto client = Dial();
  CallOptions options;
  options.error_body = std::make_shared<std::string>();
  EXPECT_EQ(CallAndRun(*client, "x", options).code(), ErrorCode::kStaleEpoch);
  EXPECT_EQ(*options.error_body, "of whom");
}

// Goal: what a server drops unanswered, as whose session it ends, is applied when it is asked for
// again, once.
TEST_F(RpcTest, ADroppedCallIsSentAgain) {
  int calls = 0;
  Serve([&](const std::shared_ptr<IncomingCall>& call) {
    if (++calls > 2) call->Respond("done");
  });
  auto client = Dial();
  const TimePoint before = clock_.Now();
  const Result<Reply> reply = CallAndRun(*client, "x");
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->body, "done");
  EXPECT_EQ(calls, 3);
  EXPECT_LE(clock_.Now() - before, 100ms);
}

TEST_F(RpcTest, ACallThatIsDroppedForeverTimesOutAndAClosedClientCancels) {
  Serve([&](const std::shared_ptr<IncomingCall>&) {});
  auto client = Dial();
  EXPECT_EQ(CallAndRun(*client, "x", {.timeout = 1s}).code(), ErrorCode::kTimedOut);
  std::optional<Result<Reply>> answer;
  client->Call(1, "y", {}, {.timeout = Duration::max()},
               [&](Result<Reply> r) { answer = std::move(r); });
  client.reset();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->code(), ErrorCode::kCancelled);
}

TEST_F(RpcTest, WhatIsTooBigIsRefusedOnBothSides) {
  Serve([&](const std::shared_ptr<IncomingCall>& call) {
    call->Respond(std::string(kMaxHeaderBytes + 1, 'x'));
  });
  auto client = Dial();
  EXPECT_EQ(CallAndRun(*client, std::string(kMaxHeaderBytes, 'x')).code(), ErrorCode::kTooBig);
  EXPECT_EQ(CallAndRun(*client, "small").code(), ErrorCode::kTooBig);
}

TEST_F(RpcTest, MalformedMessagesAreDroppedOrAnsweredAndNeverReachTheHandler) {
  int handled = 0;
  Serve([&](const std::shared_ptr<IncomingCall>& call) {
    ++handled;
    call->Respond(std::string());
  });
  wire::RpcHeader header;
  header.set_kind(wire::RpcHeader::REQUEST);
  header.set_session(9);
  header.set_request_id(1);
  header.set_body("body");
  const std::string good = *EncodeFrame(Direction::kToServer, header, 0);
  int answers = 0;
  std::optional<wire::RpcHeader> answer;
  const auto inject = [&](std::string frame, Buffer payload) {
    network_.Inject(kEndpoint, {std::move(frame), std::move(payload)}, [&](Message message) {
      ++answers;
      bool matches = false;
      answer.emplace();
      EXPECT_TRUE(DecodeFrame(Direction::kToClient, message.header, 0, &*answer, &matches).ok());
    });
    network_.RunUntilIdle();
  };
  for (size_t size = 0; size < good.size(); ++size) inject(good.substr(0, size), {});
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string flipped = good;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    inject(flipped, {});
  }
  inject(*EncodeFrame(Direction::kToClient, header, 0), {});
  inject(good + "tail", {});
  EXPECT_EQ(handled, 0);
  EXPECT_EQ(answers, 0);
  // Good headers with a wrong payload, or of a wrong kind, are told so.
  inject(good, Buffer::CopyOf("surprise"));
  EXPECT_EQ(answers, 1);
  EXPECT_EQ(answer->status(), static_cast<uint32_t>(ErrorCode::kBadMessage));
  EXPECT_EQ(answer->request_id(), 1u);
  header.set_kind(wire::RpcHeader::PONG);
  inject(*EncodeFrame(Direction::kToServer, header, 0), {});
  EXPECT_EQ(answers, 2);
  EXPECT_EQ(handled, 0);
  inject(good, {});
  EXPECT_EQ(handled, 1);
}

}  // namespace
}  // namespace weir::net
