// Messages over Unix sockets without ZeroMQ: large ones, peers that come and go, strangers.
#include "common/net/unix_transport.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "common/net/abstract_socket.h"
#include "common/net/envelope.h"
#include "common/wire/rpc.pb.h"

namespace weir::net {
namespace {

using namespace std::chrono_literals;
constexpr auto kPatience = 60s;

std::string Name(const std::string& of) {
  return "@weirfs-test-" + std::to_string(getpid()) + "-" + of;
}

Message Numbered(Direction direction, uint64_t number, size_t payload_bytes) {
  wire::RpcHeader header;
  header.set_request_id(number);
  Buffer payload = payload_bytes > 0 ? Buffer::Aligned(payload_bytes) : Buffer();
  std::fill(payload.data(), payload.data() + payload.size(), static_cast<uint8_t>(number));
  return {*EncodeFrame(direction, header, payload_bytes), payload};
}

uint64_t NumberOf(Direction direction, const Message& message) {
  wire::RpcHeader header;
  bool matches = false;
  EXPECT_TRUE(
      DecodeFrame(direction, message.header, message.payload.size(), &header, &matches).ok());
  EXPECT_TRUE(matches);
  for (const uint8_t byte : message.payload.span()) {
    if (byte == static_cast<uint8_t>(header.request_id())) continue;
    ADD_FAILURE() << "the payload is another one's";
    break;
  }
  return header.request_id();
}

// What has come, in order.
template <typename T>
class Arrivals {
 public:
  void Add(T one) {
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(one));
    changed_.notify_all();
  }
  // Waits for it.
  T Next() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kPatience, [this] { return !all_.empty(); })) {
      ADD_FAILURE() << "nothing came";
      return {};
    }
    T one = std::move(all_.front());
    all_.pop_front();
    return one;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> all_;
};

// Sends back what it gets; the number stays.
class EchoServer {
 public:
  explicit EchoServer(const std::string& name) {
    auto server = ListenUnix(name);
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
  PeerId last_peer() const { return peer_; }

 private:
  std::atomic<PeerId> peer_{0};
  std::unique_ptr<ServerTransport> transport_;
};

class Client {
 public:
  explicit Client(const std::string& name) : transport_(DialUnix(name)) {
    EXPECT_TRUE(transport_
                    ->Start([this](Message message) { came.Add(std::move(message)); },
                            [this] { connections.Add(true); })
                    .ok());
  }
  void Send(uint64_t number, size_t payload_bytes) {
    transport_->Send(Numbered(Direction::kToServer, number, payload_bytes));
  }
  uint64_t NextNumber() { return NumberOf(Direction::kToClient, came.Next()); }
  ClientTransport& transport() { return *transport_; }

  Arrivals<Message> came;
  Arrivals<bool> connections;

 private:
  std::unique_ptr<ClientTransport> transport_;
};

TEST(UnixTransportTest, CarriesMessagesOfAllSizesInOrder) {
  EchoServer server(Name("sizes"));
  Client client(Name("sizes"));
  client.connections.Next();
  // More than a socket holds, in both directions at once.
  const std::vector<size_t> sizes = {0, 1,   4096,   65'536, 1 << 20, kMaxPayloadBytes,
                                     0, 100, 300'000};
  for (size_t i = 0; i < sizes.size(); ++i) client.Send(i, sizes[i]);
  for (size_t i = 0; i < sizes.size(); ++i) EXPECT_EQ(client.NextNumber(), i);
  EXPECT_EQ(server.transport().Counters().received, sizes.size());
  EXPECT_EQ(server.transport().Counters().sent, sizes.size());
}

TEST(UnixTransportTest, ANameHasOneListener) {
  EchoServer server(Name("one"));
  EXPECT_EQ(ListenUnix(Name("one")).code(), ErrorCode::kBusy);
}

TEST(UnixTransportTest, WhoDialsFirstIsConnectedWhenTheServerComes) {
  Client client(Name("later"));
  client.Send(1, 0);  // dropped
  auto server = std::make_unique<EchoServer>(Name("later"));
  client.connections.Next();
  EXPECT_FALSE(client.transport().broken());
  client.Send(2, 10);
  EXPECT_EQ(client.NextNumber(), 2u);
}

TEST(UnixTransportTest, TheEndOfTheServerIsNoticedAndTheNextOneFound) {
  auto server = std::make_unique<EchoServer>(Name("next"));
  Client client(Name("next"));
  client.connections.Next();
  server = nullptr;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!client.transport().broken() && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(client.transport().broken());
  server = std::make_unique<EchoServer>(Name("next"));
  client.connections.Next();
  EXPECT_FALSE(client.transport().broken());
  client.Send(5, 0);
  EXPECT_EQ(client.NextNumber(), 5u);
}

TEST(UnixTransportTest, ResetDialsAgain) {
  EchoServer server(Name("reset"));
  Client client(Name("reset"));
  client.connections.Next();
  client.Send(1, 0);
  EXPECT_EQ(client.NextNumber(), 1u);
  const PeerId before = server.last_peer();
  client.transport().Reset();
  client.connections.Next();
  client.Send(2, 0);
  EXPECT_EQ(client.NextNumber(), 2u);
  EXPECT_NE(server.last_peer(), before);
}

TEST(UnixTransportTest, WhatIsSentToAPeerThatHasGoneIsDropped) {
  EchoServer server(Name("gone"));
  PeerId gone = 0;
  {
    Client client(Name("gone"));
    client.connections.Next();
    client.Send(1, 0);
    client.NextNumber();
    gone = server.last_peer();
  }
  for (int i = 0; i < 100; ++i) {
    server.transport().Send(gone, Numbered(Direction::kToClient, 1, 1 << 20));
  }
  Client other(Name("gone"));
  other.connections.Next();
  other.Send(2, 0);
  EXPECT_EQ(other.NextNumber(), 2u);
}

TEST(UnixTransportTest, WhoSpeaksSomethingElseIsHungUpOnAndTheServerServesOn) {
  EchoServer server(Name("rubbish"));
  Client client(Name("rubbish"));
  client.connections.Next();
  const std::string announced = *EncodeFrame(Direction::kToServer, {}, kMaxPayloadBytes);
  for (const std::string& bytes : {std::string("GET / HTTP/1.1\r\nHost: here\r\n\r\n"),
                                   *EncodeFrame(Direction::kToClient, {}, 0)}) {
    const int stranger = *DialOurs(Name("rubbish"));
    ASSERT_EQ(send(stranger, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    char end = 0;
    ssize_t answer = -1;
    do {
      answer = recv(stranger, &end, 1, MSG_DONTWAIT);
    } while (answer < 0 && errno == EAGAIN);
    EXPECT_LE(answer, 0) << "it got an answer";
    close(stranger);
  }
  EXPECT_EQ(server.transport().Counters().dropped_malformed, 2u);
  const int silent = *DialOurs(Name("rubbish"));  // half a message, and then no more
  ASSERT_GT(send(silent, announced.data(), announced.size(), MSG_NOSIGNAL), 0);
  close(silent);
  client.Send(7, 4096);
  EXPECT_EQ(client.NextNumber(), 7u);
  EXPECT_EQ(server.transport().Counters().received, 1u);
}

}  // namespace
}  // namespace weir::net
