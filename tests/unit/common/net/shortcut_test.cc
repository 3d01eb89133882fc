// The way round TCP within a machine: who takes it, and whom it does not lead to.
#include "common/net/shortcut.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>

#include "common/net/abstract_socket.h"
#include "common/net/rpc.h"
#include "common/net/zmq_transport.h"

namespace weir::net {
namespace {

using namespace std::chrono_literals;
constexpr auto kPatience = 60s;
constexpr uid_t kStranger = 54321;

std::optional<std::string> Shortcut(const std::string& endpoint) {
  return ShortcutOf(*ParseEndpoint(endpoint));
}

std::string NameOf(const std::string& endpoint) {
  return Shortcut(endpoint)->substr(std::string("ipc://").size());
}

// Sockets with that name: one that listens, and one for each that has been accepted.
int SocketsNamed(const std::string& name) {
  std::ifstream table("/proc/self/net/unix");
  int count = 0;
  for (std::string line; std::getline(table, line);) count += line.ends_with(" " + name) ? 1 : 0;
  return count;
}

// Takes a name; -1 when it is taken.
int ListenOn(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path, name.size());
  address.sun_path[0] = '\0';
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  const bool ok = bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 && listen(fd, 8) == 0;
  if (!ok) close(fd);
  return ok ? fd : -1;
}

std::unique_ptr<RpcServer> Echo(Network& network, const std::string& endpoint) {
  auto server = RpcServer::Start(
      network, SystemClock::Get(), endpoint,
      [](const std::shared_ptr<IncomingCall>& call) { call->Respond(call->body()); });
  return server.ok() ? std::move(*server) : nullptr;
}

// Beside one that listens at `endpoint`; says on which policy its handler runs.
std::unique_ptr<RpcServer> Prompt(Network& network, const std::string& endpoint) {
  RpcServerOptions options;
  options.prompt = true;
  auto server = RpcServer::Start(
      network, SystemClock::Get(), endpoint,
      [](const std::shared_ptr<IncomingCall>& call) {
        call->Respond("prompt " + std::to_string(sched_getscheduler(0) & ~SCHED_RESET_ON_FORK));
      },
      options);
  return server.ok() ? std::move(*server) : nullptr;
}

std::string Ask(Network& network, const std::string& endpoint, bool prompt = false) {
  RpcClient::Options options;
  options.prompt = prompt;
  auto client = *RpcClient::Connect(network, SystemClock::Get(), endpoint, options);
  const auto reply = client->CallAndWait(1, "x", {}, {.timeout = kPatience});
  return reply.ok() ? reply->body : reply.status().message();
}

bool Answers(Network& network, const std::string& endpoint) {
  return Ask(network, endpoint) == "x";
}

// Of this process, that run ahead of turns.
int ThreadsAhead() {
  int count = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    const int policy = sched_getscheduler(std::stoi(thread.path().filename().string()));
    count += (policy & ~SCHED_RESET_ON_FORK) == SCHED_FIFO ? 1 : 0;
  }
  return count;
}

TEST(ShortcutTest, ServesWhatThisMachineReachesBy127001) {
  const auto shortcut = Shortcut("tcp://127.0.0.1:7370");
  ASSERT_TRUE(shortcut.has_value());
  EXPECT_EQ(*shortcut, "ipc://@weirfs-127.0.0.1-7370");
  EXPECT_EQ(Shortcut("tcp://localhost:7370"), shortcut);
  EXPECT_EQ(Shortcut("tcp://0.0.0.0:7370"), shortcut);
  for (const char* none : {"tcp://127.0.0.1:0", "tcp://127.0.0.2:7370", "tcp://10.0.0.1:7370",
                           "tcp://[::1]:7370", "ipc:///run/weir", "inproc://x"}) {
    EXPECT_EQ(Shortcut(none), std::nullopt) << none;
  }
  EXPECT_EQ(ShortestWayTo(*ParseEndpoint("tcp://10.0.0.1:7370")), "tcp://10.0.0.1:7370");
}

TEST(ShortcutTest, IsTakenWhereAServerListens) {
  auto network = MakeZmqNetwork();
  auto server = Echo(*network, "tcp://127.0.0.1:0");
  const std::string endpoint = server->endpoint();
  const std::string name = NameOf(endpoint);
  EXPECT_TRUE(endpoint.starts_with("tcp://127.0.0.1:")) << "that is what others are told";
  EXPECT_EQ(ShortestWayTo(*ParseEndpoint(endpoint)), *Shortcut(endpoint));
  auto client = *RpcClient::Connect(*network, SystemClock::Get(), endpoint, {});
  ASSERT_TRUE(client->CallAndWait(1, "x", {}, {.timeout = kPatience}).ok());
  EXPECT_GE(SocketsNamed(name), 2) << "the client went another way";
  client = nullptr;
  server = nullptr;
  EXPECT_EQ(SocketsNamed(name), 0);
  EXPECT_EQ(ShortestWayTo(*ParseEndpoint(endpoint)), endpoint);
}

TEST(ShortcutTest, APromptServerIsBesideTheOrdinaryOne) {
  auto network = MakeZmqNetwork();
  auto server = Echo(*network, "tcp://127.0.0.1:0");
  const std::string endpoint = server->endpoint();
  auto prompt = Prompt(*network, endpoint);
  ASSERT_NE(prompt, nullptr);
  const std::string answer = Ask(*network, endpoint, true);
  EXPECT_TRUE(answer.starts_with("prompt ")) << answer;
  EXPECT_EQ(Ask(*network, endpoint), "x") << "who is not prompt does not disturb those who are";
  EXPECT_EQ(Prompt(*network, endpoint), nullptr) << "one is enough";
}

TEST(ShortcutTest, WhoFindsNoPromptServerIsNotConnected) {
  auto network = MakeZmqNetwork();
  auto server = Echo(*network, "tcp://127.0.0.1:0");
  RpcClient::Options options;
  options.prompt = true;
  auto client = *RpcClient::Connect(*network, SystemClock::Get(), server->endpoint(), options);
  EXPECT_EQ(client->CallAndWait(1, "x", {}, {.timeout = 50ms}).code(), ErrorCode::kUnreachable);
  EXPECT_FALSE(client->connected());
  auto prompt = Prompt(*network, server->endpoint());
  EXPECT_TRUE(client->CallAndWait(1, "x", {}, {.timeout = kPatience}).ok()) << "came later";
  EXPECT_TRUE(client->connected());
}

TEST(ShortcutTest, ThreadsOfPromptTransportsRunAheadOfTurns) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to run ahead";
  const int before = ThreadsAhead();
  auto network = MakeZmqNetwork();
  auto server = Echo(*network, "tcp://127.0.0.1:0");
  auto client = *RpcClient::Connect(*network, SystemClock::Get(), server->endpoint(), {});
  EXPECT_EQ(ThreadsAhead(), before) << "those of others take turns";
  auto prompt = Prompt(*network, server->endpoint());
  EXPECT_EQ(Ask(*network, server->endpoint(), true), "prompt " + std::to_string(SCHED_FIFO));
  EXPECT_EQ(ThreadsAhead(), before + 1) << "its own; that of the client has gone";
}

TEST(ShortcutTest, APromptServerIsForThisMachineOnly) {
  auto network = MakeZmqNetwork();
  for (const char* far : {"tcp://127.0.0.2:7370", "tcp://127.0.0.1:0", "inproc://x"}) {
    auto server = network->ListenPrompt(far);
    EXPECT_EQ(server.code(), ErrorCode::kNotSupported) << far;
  }
}

TEST(ShortcutTest, IsNotFollowedToAStranger) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to become somebody else";
  auto network = MakeZmqNetwork();
  const std::string endpoint = Echo(*network, "tcp://127.0.0.1:0")->endpoint();  // free again
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t stranger = fork();
  if (stranger == 0) {
    const bool listens = setresuid(kStranger, kStranger, kStranger) == 0 &&
                         ListenOn(NameOf(endpoint)) >= 0 && write(ready[1], "x", 1) == 1;
    if (listens) pause();
    _exit(1);
  }
  close(ready[1]);
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1) << "nobody took the name";
  close(ready[0]);
  auto server = Echo(*network, endpoint);
  ASSERT_NE(server, nullptr) << "a stranger keeps a server from its port";
  EXPECT_EQ(ShortestWayTo(*ParseEndpoint(endpoint)), endpoint);
  EXPECT_TRUE(Answers(*network, endpoint));
  EXPECT_EQ(DialOurs(NameOf(endpoint)).code(), ErrorCode::kUnreachable);
  kill(stranger, SIGKILL);
  waitpid(stranger, nullptr, 0);
}

}  // namespace
}  // namespace weir::net
