// Streams between a server and its clients, over Unix sockets and TCP; HELLO is asked of a
// Directory.
#include "common/net/stream_transport.h"

#include <netinet/in.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "common/net/abstract_socket.h"
#include "common/net/hello.h"
#include "common/net/tcp_socket.h"
#include "tests/unit/common/net/stream_fixture.h"

namespace weir::net {
namespace {

using namespace std::chrono_literals;

// Sends back what it gets; the number stays.
class EchoServer {
 public:
  explicit EchoServer(Reactor& reactor, const std::string& endpoint = "tcp://127.0.0.1:0") {
    auto server = ListenStreams(reactor, *ParseEndpoint(endpoint));
    EXPECT_TRUE(server.ok()) << server.status();
    transport_ = std::move(*server);
    EXPECT_TRUE(transport_
                    ->Start([this](PeerId peer, Message message) {
                      peer_ = peer;
                      const uint64_t number = NumberOf(Direction::kToServer, message);
                      transport_->Send(
                          peer, Numbered(Direction::kToClient, number, message.payload.size()));
                    })
                    .ok());
  }
  ServerTransport& transport() { return *transport_; }
  [[nodiscard]] PeerId last_peer() const { return peer_; }
  // Without what leads to Unix sockets.
  [[nodiscard]] StreamAddresses TcpOnly() const {
    StreamAddresses streams = transport_->streams();
    std::erase_if(streams.endpoints, [](const auto& one) { return one.starts_with("unix:"); });
    return streams;
  }
  [[nodiscard]] StreamAddresses UnixOnly() const {
    StreamAddresses streams = transport_->streams();
    std::erase_if(streams.endpoints, [](const auto& one) { return one.starts_with("tcp:"); });
    return streams;
  }

 private:
  std::atomic<PeerId> peer_{0};
  std::unique_ptr<ServerTransport> transport_;
};

class Client {
 public:
  Client(Reactor& reactor, Directory& directory)
      : transport_(DialStreams(reactor, directory.MakeFinder(reactor), {.ask_again = 20ms})) {
    EXPECT_TRUE(transport_
                    ->Start([this](Message message) { came.Add(std::move(message)); },
                            [this] { connections.Add(true); })
                    .ok());
  }
  void Send(uint64_t number, size_t payload_bytes) {
    transport_->Send(Numbered(Direction::kToServer, number, payload_bytes));
  }
  uint64_t NextNumber() { return NumberOf(Direction::kToClient, came.Next()); }
  // Connects and is answered.
  void ExpectEcho(uint64_t number) {
    connections.Next();
    Send(number, 10);
    EXPECT_EQ(NextNumber(), number);
  }
  ClientTransport& transport() { return *transport_; }

  Arrivals<Message> came;
  Arrivals<bool> connections;

 private:
  std::unique_ptr<ClientTransport> transport_;
};

int DialPortOf(const StreamAddresses& streams) {
  Endpoint endpoint = *ParseEndpoint(streams.endpoints.back());
  endpoint.address = "127.0.0.1";
  const int fd = *DialTcp(endpoint);
  Result<bool> done = FinishTcp(fd);
  while (done.ok() && !*done) {
    std::this_thread::yield();
    done = FinishTcp(fd);
  }
  EXPECT_TRUE(done.ok()) << done.status();
  return fd;
}

// Until the other side hangs up; what it says before is an error.
void ExpectHangUp(int fd) {
  char byte = 0;
  ssize_t got = -1;
  do {
    got = recv(fd, &byte, 1, MSG_DONTWAIT);
  } while (got < 0 && errno == EAGAIN);
  EXPECT_LE(got, 0) << "it got an answer";
}

class StreamTransportTest : public ReactorFixture {
 protected:
  Directory directory_;
};

TEST_P(StreamTransportTest, CarriesMessagesOfAllSizesInOrder) {
  EchoServer server(*reactor_);
  const std::vector<size_t> sizes = {0, 1,   4096,   65'536, 1 << 20, kMaxPayloadBytes,
                                     0, 100, 300'000};
  for (const StreamAddresses& way : {server.UnixOnly(), server.TcpOnly()}) {
    directory_.Set(way);
    Client client(*reactor_, directory_);
    client.connections.Next();
    // More than a socket holds, in both directions at once.
    for (size_t i = 0; i < sizes.size(); ++i) client.Send(i, sizes[i]);
    for (size_t i = 0; i < sizes.size(); ++i) EXPECT_EQ(client.NextNumber(), i);
  }
  EXPECT_EQ(server.transport().Counters().received, 2 * sizes.size());
  EXPECT_EQ(server.transport().Counters().sent, 2 * sizes.size());
}

TEST_P(StreamTransportTest, MessagesOfOneThreadStayInOrderWhateverOthersSend) {
  EchoServer server(*reactor_);
  directory_.Set(server.transport().streams());
  Client client(*reactor_, directory_);
  client.connections.Next();
  constexpr uint64_t kThreads = 3, kEach = 1000;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < kEach; ++i) client.Send(t * kEach + i, i % 7);
    });
  }
  RunInLoopAndWait(*reactor_, [&] {
    for (uint64_t i = 0; i < kEach; ++i) client.Send(kThreads * kEach + i, 0);
  });
  for (std::thread& thread : threads) thread.join();
  std::vector<uint64_t> next(kThreads + 1, 0);
  for (uint64_t i = 0; i < (kThreads + 1) * kEach; ++i) {
    const uint64_t number = client.NextNumber();
    ASSERT_EQ(number % kEach, next[number / kEach]++);
  }
}

TEST_P(StreamTransportTest, PeersComeAndGo) {
  EchoServer server(*reactor_);
  directory_.Set(server.transport().streams());
  PeerId gone = 0;
  for (uint64_t i = 0; i < 20; ++i) {
    Client client(*reactor_, directory_);
    client.ExpectEcho(i);
    EXPECT_NE(server.last_peer(), gone);
    gone = server.last_peer();
  }
  for (int i = 0; i < 100; ++i) {
    server.transport().Send(gone, Numbered(Direction::kToClient, 1, 1 << 20));
  }
  Client other(*reactor_, directory_);
  other.ExpectEcho(2);
}

TEST_P(StreamTransportTest, TheEndOfTheServerIsNoticedAndTheNextOneFoundOnOtherPorts) {
  for (const bool tcp : {false, true}) {
    auto server = std::make_unique<EchoServer>(*reactor_);
    directory_.Set(tcp ? server->TcpOnly() : server->UnixOnly());
    Client client(*reactor_, directory_);
    client.ExpectEcho(1);
    EXPECT_FALSE(client.transport().broken());
    server = nullptr;
    while (!client.transport().broken()) std::this_thread::yield();
    client.Send(2, 0);  // dropped
    server = std::make_unique<EchoServer>(*reactor_);
    directory_.Set(tcp ? server->TcpOnly() : server->UnixOnly());
    client.ExpectEcho(3);
    EXPECT_FALSE(client.transport().broken());
  }
}

TEST_P(StreamTransportTest, WhoDialsFirstIsConnectedWhenTheServerComes) {
  Client client(*reactor_, directory_);
  client.Send(1, 0);  // dropped
  EchoServer server(*reactor_);
  directory_.Set(server.transport().streams());
  client.ExpectEcho(2);
}

TEST_P(StreamTransportTest, ALostHelloIsAskedAgainAndASecondAnswerIsIgnored) {
  EchoServer server(*reactor_);
  directory_.Set(server.transport().streams());
  directory_.LoseNext(3);
  {
    Client client(*reactor_, directory_);
    client.ExpectEcho(1);
    EXPECT_GE(directory_.questions(), 4);
  }
  directory_.Repeat(5);
  Client client(*reactor_, directory_);
  client.ExpectEcho(2);
  RunInLoopAndWait(*reactor_, [] {});  // the other answers have come
  client.Send(3, 0);
  EXPECT_EQ(client.NextNumber(), 3u);
  EXPECT_EQ(client.connections.count(), 0u);
}

TEST_P(StreamTransportTest, ResetDialsAgain) {
  EchoServer server(*reactor_);
  directory_.Set(server.transport().streams());
  Client client(*reactor_, directory_);
  client.ExpectEcho(1);
  const PeerId before = server.last_peer();
  client.transport().Reset();
  client.ExpectEcho(2);
  EXPECT_NE(server.last_peer(), before);
}

TEST_P(StreamTransportTest, UnixSocketsAreTakenBeforeTcp) {
  EchoServer server(*reactor_), other(*reactor_);
  StreamAddresses streams = server.transport().streams();
  ASSERT_EQ(streams.endpoints.size(), 2u);
  // Whatever the order of the answer: TCP would lead to the other one, which hangs up.
  streams.endpoints = {other.TcpOnly().endpoints[0], server.UnixOnly().endpoints[0]};
  directory_.Set(streams);
  Client client(*reactor_, directory_);
  client.ExpectEcho(1);
  EXPECT_EQ(other.transport().Counters().dropped_malformed, 0u);
}

TEST_P(StreamTransportTest, AServerOfIpcHasNoTcp) {
  EchoServer server(*reactor_, "ipc:///run/weir-test-of-streams");
  EXPECT_EQ(server.transport().streams().endpoints, server.UnixOnly().endpoints);
  directory_.Set(server.transport().streams(), "");
  Client client(*reactor_, directory_);
  client.ExpectEcho(1);
}

TEST_P(StreamTransportTest, ThePortOfAnotherServerLeadsToNobody) {
  EchoServer server(*reactor_);
  EchoServer thief(*reactor_);
  StreamAddresses stale = server.TcpOnly();
  stale.endpoints = thief.TcpOnly().endpoints;
  directory_.Set(stale);
  Client client(*reactor_, directory_);
  client.connections.Next();
  client.Send(1, 0);
  client.connections.Next();  // it was hung up on, and dials again
  EXPECT_EQ(thief.transport().Counters().received, 0u);
  EXPECT_GE(thief.transport().Counters().dropped_malformed, 1u);
  directory_.Set(server.TcpOnly());
  while (client.came.count() == 0) {  // what goes to the thief is lost
    client.Send(2, 0);
    std::this_thread::yield();
  }
  EXPECT_EQ(client.NextNumber(), 2u);
}

TEST_P(StreamTransportTest, SocketsThatAreNoneOfOursAreNotDialled) {
  EchoServer server(*reactor_);
  const std::string name = "@test-of-weirfs-" + std::to_string(getpid());
  const int stranger = *ListenAt(name);
  StreamAddresses streams = server.TcpOnly();
  streams.endpoints.insert(streams.endpoints.begin(), {"unix:" + name, "unix:", "http://x", ""});
  directory_.Set(streams);
  Client client(*reactor_, directory_);
  client.ExpectEcho(1);
  EXPECT_LT(accept4(stranger, nullptr, nullptr, SOCK_NONBLOCK), 0);
  close(stranger);
}

TEST_P(StreamTransportTest, AStrangersUnixSocketIsNotFollowed) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to become somebody else";
  EchoServer server(*reactor_);
  const std::string name = "@weirfs-test-" + std::to_string(getpid());
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t stranger = fork();
  if (stranger == 0) {
    constexpr uid_t kStranger = 54321;
    const bool listens = setresuid(kStranger, kStranger, kStranger) == 0 && ListenAt(name).ok() &&
                         write(ready[1], "x", 1) == 1;
    if (listens) pause();
    _exit(1);
  }
  close(ready[1]);
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1) << "nobody took the name";
  close(ready[0]);
  StreamAddresses streams = server.TcpOnly();
  streams.endpoints.insert(streams.endpoints.begin(), "unix:" + name);
  directory_.Set(streams);
  Client client(*reactor_, directory_);
  client.ExpectEcho(1);
  kill(stranger, SIGKILL);
  waitpid(stranger, nullptr, 0);
}

TEST_P(StreamTransportTest, TheUnixSocketOfASystemUserIsFollowed) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to become somebody else";
  constexpr uid_t kDaemon = 997;
  const std::string name = "@weirfs-test-" + std::to_string(getpid());
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t daemon = fork();
  if (daemon == 0) {
    const bool listens = setresuid(kDaemon, kDaemon, kDaemon) == 0 && ListenAt(name).ok() &&
                         write(ready[1], "x", 1) == 1;
    if (listens) pause();
    _exit(1);
  }
  close(ready[1]);
  char byte = 0;
  EXPECT_EQ(read(ready[0], &byte, 1), 1) << "nobody took the name";
  close(ready[0]);
  const Result<int> dialled = DialOurs(name);
  EXPECT_TRUE(dialled.ok()) << dialled.status().message();
  if (dialled.ok()) close(*dialled);
  kill(daemon, SIGKILL);
  waitpid(daemon, nullptr, 0);
}

TEST_P(StreamTransportTest, AnotherNetworkNamespaceLeavesTcp) {
  EchoServer server(*reactor_);
  // An abstract name of another namespace is as good as none; a loopback of its own would refuse
  // TCP too, so only the name is looked for there.
  const std::string name = server.UnixOnly().endpoints[0].substr(std::strlen("unix:"));
  ASSERT_TRUE(DialOurs(name).ok());
  Result<int> from_there = Status(ErrorCode::kUnreachable, "not asked");
  bool may = false;
  std::thread([&] {
    may = unshare(CLONE_NEWNET) == 0;
    if (may) from_there = DialOurs(name);
  }).join();
  if (!may) GTEST_SKIP() << "needs root, for another network namespace";
  EXPECT_EQ(from_there.code(), ErrorCode::kUnreachable);
  StreamAddresses streams = server.TcpOnly();
  streams.endpoints.insert(streams.endpoints.begin(), "unix:@weirfs-of-another-namespace");
  directory_.Set(streams);
  Client client(*reactor_, directory_);
  client.ExpectEcho(1);
}

TEST_P(StreamTransportTest, WhoSpeaksSomethingElseIsHungUpOnAndTheServerServesOn) {
  EchoServer server(*reactor_);
  directory_.Set(server.transport().streams());
  Client client(*reactor_, directory_);
  client.ExpectEcho(1);
  const StreamAddresses streams = server.transport().streams();
  const std::string start = EncodeStreamStart(streams.id).header;
  const std::vector<std::string> strange = {
      "GET / HTTP/1.1\r\nHost: here\r\n\r\n",
      *EncodeFrame(Direction::kToClient, {}, 0),
      EncodeStreamStart(streams.id + 1).header,
      Numbered(Direction::kToServer, 1, 0).header,  // without a start
      EncodeHello({.session = 1, .number = 1}).header,
      start + "rubbish that is longer than an envelope",
  };
  for (const std::string& bytes : strange) {
    const int stranger = DialPortOf(streams);
    ASSERT_EQ(send(stranger, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    ExpectHangUp(stranger);
    close(stranger);
  }
  EXPECT_EQ(server.transport().Counters().dropped_malformed, strange.size());
  EXPECT_EQ(server.transport().Counters().received, 1u);
  client.Send(7, 4096);
  EXPECT_EQ(client.NextNumber(), 7u);
}

TEST_P(StreamTransportTest, WithoutDescriptorsPeersAreHungUpOnAndLaterServed) {
  EchoServer server(*reactor_);
  const StreamAddresses streams = server.transport().streams();
  // Their sockets are there before there are none left.
  std::vector<int> sockets;
  for (int i = 0; i < 3; ++i) sockets.push_back(socket(AF_INET, SOCK_STREAM, 0));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int highest = dup(0);
  close(highest);
  const rlimit none{static_cast<rlim_t>(highest), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const uint16_t port = ParseEndpoint(streams.endpoints.back())->port;
  for (const int socket : sockets) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    ExpectHangUp(socket);
  }
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  for (const int socket : sockets) close(socket);
  directory_.Set(server.TcpOnly());
  Client client(*reactor_, directory_);
  client.ExpectEcho(1);
}

TEST_P(StreamTransportTest, EveryAddressOfAHostIsListenedAtOnOnePort) {
  const Result<TcpListeners> both =
      ListenTcp({*ParseEndpoint("tcp://127.0.0.1:0"), *ParseEndpoint("tcp://127.0.0.2:0"),
                 *ParseEndpoint("tcp://192.0.2.1:0")});
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->sockets.size(), 2u) << "the last one is no address of this machine";
  for (const int socket : both->sockets) close(socket);
  EXPECT_EQ(ListenTcp({*ParseEndpoint("tcp://192.0.2.1:0")}).code(), ErrorCode::kNotFound);
}

TEST_P(StreamTransportTest, HostNamesAndTheirAddressesLeadToTheServer) {
  for (const char* endpoint : {"tcp://localhost:0", "tcp://*:0", "tcp://0.0.0.0:0"}) {
    EchoServer server(*reactor_, endpoint);
    directory_.Set(server.TcpOnly(), "127.0.0.1");
    Client client(*reactor_, directory_);
    client.ExpectEcho(1);
  }
}

TEST_P(StreamTransportTest, IPv6) {
  const auto probe = ListenTcp({*ParseEndpoint("tcp://[::1]:0")});
  if (!probe.ok()) GTEST_SKIP() << "this machine has no IPv6";
  for (const int socket : probe->sockets) close(socket);
  for (const char* endpoint : {"tcp://[::1]:0", "tcp://[::]:0", "tcp://*:0"}) {
    EchoServer server(*reactor_, endpoint);
    directory_.Set(server.TcpOnly(), "::1");
    Client client(*reactor_, directory_);
    client.ExpectEcho(1);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, StreamTransportTest,
                         ::testing::Values(Reactor::Backend::kUring, Reactor::Backend::kEpoll),
                         NameOfBackend);

}  // namespace
}  // namespace weir::net
