// Real sockets against strangers: raw ZeroMQ peers, stale and live socket files, foreign bytes.
#include "common/net/zmq_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "common/net/envelope.h"
#include "common/net/hello.h"
#include "common/net/rpc.h"
#include "common/net/zmq_finder.h"
#include "common/wire/rpc.pb.h"

namespace weir::net {
namespace {

using namespace std::chrono_literals;
constexpr auto kPatience = 60s;

// A DEALER that sends whatever frames the test likes.
class RawPeer {
 public:
  explicit RawPeer(const std::string& endpoint) : context_(zmq_ctx_new()) {
    socket_ = zmq_socket(context_, ZMQ_DEALER);
    const int patience = 60'000;
    zmq_setsockopt(socket_, ZMQ_RCVTIMEO, &patience, sizeof(patience));
    zmq_connect(socket_, endpoint.c_str());
  }
  ~RawPeer() {
    const int none = 0;
    zmq_setsockopt(socket_, ZMQ_LINGER, &none, sizeof(none));
    zmq_close(socket_);
    zmq_ctx_term(context_);
  }
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;
  void Send(const std::vector<std::string>& frames) {
    for (size_t i = 0; i < frames.size(); ++i) {
      const int more = i + 1 < frames.size() ? ZMQ_SNDMORE : 0;
      ASSERT_GE(zmq_send(socket_, frames[i].data(), frames[i].size(), more), 0);
    }
  }
  wire::RpcHeader Receive(uint16_t version = kProtocolVersion) {
    std::string frame(1 << 16, '\0');
    const int size = zmq_recv(socket_, frame.data(), frame.size(), 0);
    EXPECT_GE(size, 0) << "no answer";
    frame.resize(size < 0 ? 0 : static_cast<size_t>(size));
    wire::RpcHeader header;
    bool matches = false;
    uint16_t of = 0;
    EXPECT_TRUE(DecodeFrame(Direction::kToClient, frame, 0, &header, &matches, &of).ok());
    EXPECT_EQ(of, version);
    return header;
  }

 private:
  void* context_;
  void* socket_;
};

// Goal: `--listen ipc://FILE` destroys no file. ZeroMQ unlinks whatever is there.
TEST(ZmqTransportTest, AServerTakesThePlaceOfNothingButAnAbandonedSocket) {
  const std::string path = ::testing::TempDir() + "/weir_place." + std::to_string(getpid());
  auto network = MakeNetwork();
  std::ofstream(path) << "my thesis";
  EXPECT_EQ(network->Listen("ipc://" + path).code(), ErrorCode::kExists);
  std::string text;
  std::getline(std::ifstream(path), text);
  EXPECT_EQ(text, "my thesis");
  std::filesystem::remove(path);
  std::filesystem::create_symlink("/none", path);
  EXPECT_EQ(network->Listen("ipc://" + path).code(), ErrorCode::kExists);
  std::filesystem::remove(path);

  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int datagrams = socket(AF_UNIX, SOCK_DGRAM, 0);  // as of a system's log
  ASSERT_EQ(bind(datagrams, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(network->Listen("ipc://" + path).code(), ErrorCode::kBusy);
  close(datagrams);
  EXPECT_TRUE(network->Listen("ipc://" + path).ok()) << "nobody has it any more";
  std::filesystem::remove(path);
}

TEST(ZmqTransportTest, ARawPeerThatSendsRubbishIsCountedAndTheServerServesOn) {
  std::atomic<int> handled{0};
  auto network = MakeNetwork();
  auto server = *RpcServer::Start(*network, SystemClock::Get(), "tcp://127.0.0.1:0",
                                  [&](const std::shared_ptr<IncomingCall>& call) {
                                    ++handled;
                                    call->Respond(call->body());
                                  });
  wire::RpcHeader header;
  header.set_session(1);
  header.set_request_id(77);
  const std::string good = *EncodeFrame(Direction::kToServer, header, 0);
  RawPeer peer(server->endpoint());
  for (size_t size = 0; size < good.size(); ++size) peer.Send({good.substr(0, size)});
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string flipped = good;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    peer.Send({flipped});
  }
  peer.Send({"GET / HTTP/1.1"});
  peer.Send({good, "a", "b"});
  peer.Send({std::string(kMaxHeaderBytes + 100, 'x')});
  peer.Send({good, "a payload nobody announced"});
  const wire::RpcHeader refusal = peer.Receive();
  EXPECT_EQ(refusal.status(), static_cast<uint32_t>(ErrorCode::kBadMessage));
  EXPECT_EQ(refusal.request_id(), 77u);
  EXPECT_EQ(handled, 0);
  peer.Send({good});
  EXPECT_EQ(peer.Receive().status(), 0u);
  EXPECT_EQ(handled, 1);
  // An oversized frame costs its sender the connection, nobody else.
  RawPeer(server->endpoint()).Send({good, std::string(kMaxPayloadBytes + 1, 'x')});
  auto client = *RpcClient::Connect(*network, SystemClock::Get(), server->endpoint(), {});
  EXPECT_TRUE(client->CallAndWait(1, "x", {}, {.timeout = kPatience}).ok());
}

// A peer of version 1 hears what is wrong, in frames that it can read.
TEST(ZmqTransportTest, AClientOfVersion1IsToldThatItIsTooOld) {
  auto network = MakeNetwork();
  auto server = *RpcServer::Start(*network, SystemClock::Get(), "tcp://127.0.0.1:0",
                                  [](const std::shared_ptr<IncomingCall>&) { FAIL(); });
  RawPeer peer(server->endpoint());
  wire::RpcHeader header;
  header.set_session(5);
  header.set_kind(wire::RpcHeader::PING);
  peer.Send({*EncodeFrame(Direction::kToServer, header, 0, 1)});
  EXPECT_EQ(peer.Receive(1).kind(), wire::RpcHeader::PONG) << "else it would never ask";
  header.set_kind(wire::RpcHeader::REQUEST);
  header.set_request_id(9);
  peer.Send({*EncodeFrame(Direction::kToServer, header, 0, 1)});
  const wire::RpcHeader refusal = peer.Receive(1);
  EXPECT_EQ(refusal.kind(), wire::RpcHeader::REPLY);
  EXPECT_EQ(refusal.session(), 5u);
  EXPECT_EQ(refusal.request_id(), 9u);
  EXPECT_EQ(refusal.status(), static_cast<uint32_t>(ErrorCode::kNotSupported));
  EXPECT_THAT(refusal.error(), ::testing::HasSubstr("wire version 2"));
}

TEST(ZmqTransportTest, HelloNamesTheStreamsOfTheServer) {
  auto network = MakeNetwork();
  auto server = *RpcServer::Start(*network, SystemClock::Get(), "tcp://127.0.0.1:0",
                                  [](const std::shared_ptr<IncomingCall>&) { FAIL(); });
  RawPeer peer(server->endpoint());
  peer.Send({EncodeHello({.session = 5, .number = 8}).header});
  const wire::RpcHeader answer = peer.Receive(kHelloVersion);
  EXPECT_EQ(answer.kind(), wire::RpcHeader::HELLO);
  EXPECT_EQ(answer.session(), 5u);
  EXPECT_EQ(answer.request_id(), 8u);
  EXPECT_NE(answer.incarnation(), 0u);
  EXPECT_NE(answer.streams_id(), 0u);
  ASSERT_EQ(answer.stream_endpoints_size(), 2);
  EXPECT_THAT(answer.stream_endpoints(0), ::testing::StartsWith("unix:@weirfs-"));
  EXPECT_THAT(answer.stream_endpoints(1), ::testing::StartsWith("tcp://*:"));
}

// Its answer to HELLO is the refusal of a request.
TEST(ZmqTransportTest, AServerOfVersion1IsReportedAndNotCalled) {
  auto reactor = *Reactor::Create({});
  reactor->Start();
  ControlPlane plane;
  auto server = *ListenZmq(plane, *reactor, *ParseEndpoint("tcp://127.0.0.1:0"));
  std::promise<void> asked_again;
  int asked = 0;
  ASSERT_TRUE(server
                  ->Start([&](PeerId peer, const Message& message) {
                    wire::RpcHeader header;
                    bool matches = false;
                    uint16_t version = 0;
                    (void)DecodeFrame(Direction::kToServer, message.header, 0, &header, &matches,
                                      &version);
                    EXPECT_EQ(version, 1);
                    header.set_kind(wire::RpcHeader::REPLY);
                    header.set_status(static_cast<uint32_t>(ErrorCode::kBadMessage));
                    server->Send(peer, {*EncodeFrame(Direction::kToClient, header, 0, 1), {}});
                    if (++asked == 2) asked_again.set_value();
                  })
                  .ok());
  auto finder = MakeZmqFinder(plane, *reactor, *ParseEndpoint(server->endpoint()));
  bool found = false;
  auto client = DialStreams(*reactor, std::move(finder), {.ask_again = 20ms});
  ASSERT_TRUE(client->Start([](const Message&) {}, [&] { found = true; }).ok());
  EXPECT_EQ(asked_again.get_future().wait_for(kPatience), std::future_status::ready);
  client = nullptr;
  EXPECT_FALSE(found);
  server = nullptr;
}

TEST(ZmqTransportTest, TheEndOfAServerFreesItsEndpoint) {
  auto reactor = *Reactor::Create({});
  reactor->Start();
  ControlPlane plane;
  std::string endpoint = "tcp://127.0.0.1:0";
  for (int i = 0; i < 50; ++i) {
    auto server = ListenZmq(plane, *reactor, *ParseEndpoint(endpoint));
    ASSERT_TRUE(server.ok()) << server.status() << " at turn " << i;
    endpoint = (*server)->endpoint();
    ASSERT_TRUE((*server)->Start([](PeerId, const Message&) {}).ok());
  }
}

TEST(ZmqTransportTest, DroppedMessagesAreCounted) {
  auto reactor = *Reactor::Create({});
  reactor->Start();
  ControlPlane plane;
  auto server = *ListenZmq(plane, *reactor, *ParseEndpoint("tcp://127.0.0.1:0"));
  std::promise<Message> arrived;
  ASSERT_TRUE(server->Start([&](PeerId, Message m) { arrived.set_value(std::move(m)); }).ok());
  RawPeer peer(server->endpoint());
  peer.Send({"rubbish"});
  const std::string good = *EncodeFrame(Direction::kToServer, {}, 3);
  peer.Send({good, "abc"});
  auto future = arrived.get_future();
  ASSERT_EQ(future.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(future.get().payload.view(), "abc");
  EXPECT_EQ(server->Counters().dropped_malformed, 1u);
  EXPECT_EQ(server->Counters().received, 2u);
}

TEST(ZmqTransportTest, ThePayloadIsNotCopiedInsideAProcess) {
  auto network = MakeNetwork();
  const uint8_t* seen = nullptr;
  auto server = *RpcServer::Start(*network, SystemClock::Get(), "inproc://identity",
                                  [&](const std::shared_ptr<IncomingCall>& call) {
                                    seen = call->payload().data();
                                    call->Respond(Status::Ok(), {}, call->payload());
                                  });
  auto client = *RpcClient::Connect(*network, SystemClock::Get(), "inproc://identity", {});
  const Buffer payload = Buffer::AlignedZeros(1 << 20);
  auto reply = client->CallAndWait(1, {}, payload, {.timeout = kPatience});
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(seen, payload.data());
  EXPECT_EQ(reply->payload.data(), payload.data());
}

TEST(ZmqTransportTest, TheSocketFileOfADeadProcessIsReplaced) {
  const auto path = std::filesystem::temp_directory_path() / ("weir_s" + std::to_string(getpid()));
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.string().copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  close(fd);  // leaves the file
  auto reactor = *Reactor::Create({});
  reactor->Start();
  ControlPlane plane;
  auto server = ListenZmq(plane, *reactor, *ParseEndpoint("ipc://" + path.string()));
  EXPECT_TRUE(server.ok()) << server.status();
  std::filesystem::remove(path);
}

TEST(ZmqTransportTest, BadEndpointsAreInvalid) {
  auto network = MakeNetwork();
  EXPECT_EQ(network->Listen("tcp://nowhere").code(), ErrorCode::kInvalid);
  EXPECT_EQ(network->Dial("tcp://127.0.0.1:0").code(), ErrorCode::kInvalid);
  EXPECT_EQ(network->Listen("ipc:///" + std::string(150, 'x')).code(), ErrorCode::kInvalid);
  EXPECT_FALSE(network->Listen("ipc:///no/such/directory/socket").ok());
}

}  // namespace
}  // namespace weir::net
