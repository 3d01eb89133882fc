// RPC over real sockets: what the simulated network of rpc_test.cc cannot show.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <future>

#include "common/net/endpoint.h"
#include "common/net/rpc.h"
#include "common/reactor/reactor.h"

namespace weir::net {
namespace {

using namespace std::chrono_literals;

// A test that hangs shows as one that takes this long; nothing depends on it otherwise.
constexpr auto kPatience = 60s;

class RpcSocketTest : public ::testing::TestWithParam<const char*> {
 protected:
  RpcSocketTest() {
    dir_ = std::filesystem::temp_directory_path() / ("weir_rpc_" + std::to_string(getpid()));
    std::filesystem::create_directories(dir_);
  }
  ~RpcSocketTest() override { std::filesystem::remove_all(dir_); }

  static std::string kind() { return GetParam(); }
  std::string Fresh() {
    if (kind() == "tcp" || kind() == "control") return "tcp://127.0.0.1:0";
    if (kind() == "ipc") return "ipc://" + (dir_ / "socket").string();
    return "inproc://server";
  }
  std::unique_ptr<RpcServer> Serve(const std::string& endpoint, RpcServer::Handler handler) {
    auto server = RpcServer::Start(*network_, SystemClock::Get(), endpoint, std::move(handler));
    EXPECT_TRUE(server.ok()) << server.status();
    return *std::move(server);
  }
  std::unique_ptr<RpcClient> Dial(const std::string& endpoint) {
    auto client = RpcClient::Connect(*network_, SystemClock::Get(), endpoint,
                                     {.session = 7, .control = kind() == "control"});
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }
  static void Echo(const std::shared_ptr<IncomingCall>& call) {
    call->Respond(Status::Ok(), call->body(), call->payload());
  }

  std::filesystem::path dir_;
  std::unique_ptr<Network> network_ = MakeNetwork();
};

TEST_P(RpcSocketTest, EchoesBodyAndPayloadOfEverySize) {
  auto server = Serve(Fresh(), Echo);
  auto client = Dial(server->endpoint());
  for (const size_t size : {size_t{0}, size_t{1}, size_t{4096}, size_t{8} << 20}) {
    Buffer payload = Buffer::Aligned(size);
    if (size > 0) std::memset(payload.data(), 0x5a, size);
    auto reply = client->CallAndWait(3, "body", payload, {.timeout = kPatience});
    ASSERT_TRUE(reply.ok()) << reply.status();
    EXPECT_EQ(reply->body, "body");
    EXPECT_EQ(reply->payload.view(), payload.view());
  }
  EXPECT_TRUE(client->connected());
}

TEST_P(RpcSocketTest, AServerThatRestartsOnItsEndpointGetsTheOutstandingCalls) {
  std::vector<std::shared_ptr<IncomingCall>> held;
  std::promise<void> arrived;
  auto server = Serve(Fresh(), [&](std::shared_ptr<IncomingCall> call) {
    held.push_back(std::move(call));
    arrived.set_value();
  });
  const std::string endpoint = server->endpoint();
  auto client = Dial(endpoint);
  std::promise<Result<Reply>> answer;
  client->Call(1, "again", {}, {.timeout = kPatience},
               [&](Result<Reply> r) { answer.set_value(std::move(r)); });
  ASSERT_EQ(arrived.get_future().wait_for(kPatience), std::future_status::ready);
  server.reset();
  held.clear();
  server = Serve(endpoint, Echo);
  auto result = answer.get_future().get();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->body, "again");
}

TEST_P(RpcSocketTest, AClientMayDialBeforeTheServerListens) {
  std::string endpoint = Fresh();
  if (endpoint == "tcp://127.0.0.1:0") endpoint = Serve(endpoint, Echo)->endpoint();
  auto client = Dial(endpoint);
  EXPECT_FALSE(client->connected());
  std::promise<Result<Reply>> answer;
  client->Call(1, "early", {}, {.timeout = kPatience},
               [&](Result<Reply> r) { answer.set_value(std::move(r)); });
  auto server = Serve(endpoint, Echo);
  EXPECT_TRUE(answer.get_future().get().ok());
}

TEST_P(RpcSocketTest, TwoServersOnOneEndpointAreRefused) {
  auto server = Serve(Fresh(), Echo);
  auto second = RpcServer::Start(*network_, SystemClock::Get(), server->endpoint(), Echo);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.code(), ErrorCode::kBusy);
  EXPECT_THAT(second.status().message(), ::testing::HasSubstr("already in use"));
  auto client = Dial(server->endpoint());
  EXPECT_TRUE(client->CallAndWait(1, "x", {}, {.timeout = kPatience}).ok());
}

TEST_P(RpcSocketTest, ManyCallsFromManyThreadsAreEachAnsweredOnce) {
  auto server = Serve(Fresh(), Echo);
  auto client = Dial(server->endpoint());
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const std::string body = std::to_string(t) + "." + std::to_string(i);
        auto reply = client->CallAndWait(1, body, {}, {.timeout = kPatience});
        if (reply.ok() && reply->body == body) ++good;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good.load(), 800);
}

TEST_P(RpcSocketTest, TransportsLiveOnTheReactorThatTheirViewOfTheNetworkNames) {
  auto reactor = *Reactor::Create({});
  reactor->Start();
  const auto there = network_->On(*reactor);
  std::promise<bool> on_it;
  auto server = *RpcServer::Start(*there, SystemClock::Get(), Fresh(),
                                  [&](const std::shared_ptr<IncomingCall>& call) {
                                    on_it.set_value(reactor->InLoop());
                                    call->Respond(call->body());
                                  });
  auto client = Dial(server->endpoint());
  std::promise<bool> elsewhere;
  client->Call(1, "x", {}, {.timeout = kPatience},
               [&](const Result<Reply>&) { elsewhere.set_value(!reactor->InLoop()); });
  EXPECT_TRUE(on_it.get_future().get());
  EXPECT_TRUE(elsewhere.get_future().get());
  server = nullptr;
}

INSTANTIATE_TEST_SUITE_P(Transports, RpcSocketTest,
                         ::testing::Values("inproc", "ipc", "tcp", "control"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace weir::net
