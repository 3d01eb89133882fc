// The promises of rpc.h over streams whose connections break; rpc_test.cc has the simulated
// network.
#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "common/base/prng.h"
#include "common/net/rpc.h"
#include "common/testing/seed.h"
#include "tests/unit/common/net/stream_fixture.h"

namespace weir::net {
namespace {

using namespace std::chrono_literals;

// Streams of one reactor, whose clients ask a Directory instead of HELLO. Breaks connections.
class StreamNetwork final : public Network {
 public:
  StreamNetwork(Reactor& reactor, bool tcp) : reactor_(reactor), tcp_(tcp) {}
  Result<std::unique_ptr<ServerTransport>> Listen(const std::string& endpoint) override {
    WEIR_ASSIGN_OR_RETURN(auto server, ListenStreams(reactor_, *ParseEndpoint(endpoint)));
    StreamAddresses streams = server->streams();
    if (tcp_) streams.endpoints.erase(streams.endpoints.begin());
    directory_.Set(streams);
    return server;
  }
  Result<std::unique_ptr<ClientTransport>> Dial(const std::string& /*endpoint*/) override {
    auto client = DialStreams(reactor_, directory_.MakeFinder(reactor_), {.ask_again = 20ms});
    client_ = client.get();
    return client;
  }
  void Break() { client_->Reset(); }

 private:
  Reactor& reactor_;
  const bool tcp_;
  Directory directory_;
  ClientTransport* client_ = nullptr;  // the last one
};

constexpr char kEndpoint[] = "tcp://127.0.0.1:0";

class StreamRpcTest : public ReactorFixture {};

TEST_P(StreamRpcTest, NothingIsAppliedTwiceAndEverythingOnceWhileConnectionsBreak) {
  for (const bool tcp : {false, true}) {
    StreamNetwork network(*reactor_, tcp);
    Prng dice(weir::testing::TestSeed());
    std::mutex mutex;
    std::map<std::string, int> applied;
    std::vector<std::shared_ptr<IncomingCall>> held;
    Arrivals<bool> arrived;
    Arrivals<std::string> answered;
    auto server = *RpcServer::Start(
        network, SystemClock::Get(), kEndpoint, [&](std::shared_ptr<IncomingCall> call) {
          const std::lock_guard lock(mutex);
          ++applied[call->body()];
          held.push_back(std::move(call));
          // Answers come late and out of order.
          while (held.size() > 4) {
            std::swap(held.front(), held.back());
            held.back()->Respond(Status::Ok(), held.back()->body(), held.back()->payload());
            held.pop_back();
          }
          arrived.Add(true);
        });
    auto client = *RpcClient::Connect(network, SystemClock::Get(), kEndpoint, {.session = 3});
    constexpr int kCalls = 300;
    std::atomic<int> right{0};
    for (int i = 0; i < kCalls; ++i) {
      const std::string body = std::to_string(i);
      const Buffer payload = Buffer::AlignedZeros(dice.Uniform(0, 3) == 0 ? 200'000 : 0);
      client->Call(1, body, payload, {.timeout = Duration::max()}, [&, body](Result<Reply> reply) {
        if (reply.ok() && reply->body == body) ++right;
        answered.Add(body);
      });
      if (dice.Uniform(0, 9) == 0) network.Break();
    }
    for (int i = 0; i < kCalls; ++i) (void)arrived.Next();
    network.Break();
    for (const auto& call : held) call->Respond(call->body());
    held.clear();
    for (int i = 0; i < kCalls; ++i) (void)answered.Next();
    EXPECT_EQ(right, kCalls);
    client = nullptr;
    server = nullptr;
    EXPECT_EQ(applied.size(), static_cast<size_t>(kCalls));
    for (const auto& [body, count] : applied) EXPECT_EQ(count, 1) << body;
  }
}

TEST_P(StreamRpcTest, AServerOnOtherPortsGetsTheOutstandingCalls) {
  StreamNetwork network(*reactor_, true);
  std::vector<std::shared_ptr<IncomingCall>> held;
  std::promise<void> arrived;
  auto server = *RpcServer::Start(network, SystemClock::Get(), kEndpoint,
                                  [&](std::shared_ptr<IncomingCall> call) {
                                    held.push_back(std::move(call));
                                    arrived.set_value();
                                  });
  auto client = *RpcClient::Connect(network, SystemClock::Get(), kEndpoint, {.session = 7});
  std::promise<Result<Reply>> answer;
  client->Call(1, "again", {}, {.timeout = kStreamPatience},
               [&](Result<Reply> reply) { answer.set_value(std::move(reply)); });
  arrived.get_future().get();
  server = nullptr;
  held.clear();
  server = *RpcServer::Start(
      network, SystemClock::Get(), kEndpoint,
      [](const std::shared_ptr<IncomingCall>& call) { call->Respond(call->body()); });
  const Result<Reply> result = answer.get_future().get();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->body, "again");
  EXPECT_TRUE(client->connected());
}

TEST_P(StreamRpcTest, CallsOfManyThreadsAndOfTheReactorAreEachAnsweredOnce) {
  StreamNetwork network(*reactor_, false);
  auto server = *RpcServer::Start(
      network, SystemClock::Get(), kEndpoint,
      [](const std::shared_ptr<IncomingCall>& call) { call->Respond(call->body()); });
  auto client = *RpcClient::Connect(network, SystemClock::Get(), kEndpoint, {.session = 7});
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const std::string body = std::to_string(t) + "." + std::to_string(i);
        const auto reply = client->CallAndWait(1, body, {}, {.timeout = kStreamPatience});
        if (reply.ok() && reply->body == body) ++good;
      }
    });
  }
  Arrivals<bool> answered;
  RunInLoopAndWait(*reactor_, [&] {
    for (int i = 0; i < 100; ++i) {
      client->Call(1, "here", {}, {.timeout = kStreamPatience},
                   [&](const Result<Reply>& reply) { answered.Add(reply.ok()); });
    }
  });
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(answered.Next());
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 300);
}

INSTANTIATE_TEST_SUITE_P(Backends, StreamRpcTest,
                         ::testing::Values(Reactor::Backend::kUring, Reactor::Backend::kEpoll),
                         NameOfBackend);

}  // namespace
}  // namespace weir::net
