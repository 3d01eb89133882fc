// Goal: inside a process messages arrive in order, on the receiver's reactor, never within Send;
// ends that share a reactor need no other thread; what was sent to an end that has gone is dropped.
#include "common/net/inproc_transport.h"

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/net/envelope.h"
#include "common/reactor/reactor.h"
#include "common/wire/rpc.pb.h"

namespace weir::net {
namespace {

constexpr char kName[] = "inproc://server";

std::unique_ptr<Reactor> MakeReactor() {
  auto reactor = Reactor::Create({});
  EXPECT_TRUE(reactor.ok()) << reactor.status();
  (*reactor)->Start();
  return *std::move(reactor);
}

Message MessageWith(const std::string& text) {
  wire::RpcHeader header;
  header.set_body(text);
  return {*EncodeFrame(Direction::kToServer, header, 0), {}};
}

class InprocTransportTest : public ::testing::Test {
 protected:
  void Connect(Reactor& server_reactor, Reactor& client_reactor,
               ServerTransport::OnMessage at_server) {
    auto listening = hub_.Listen(kName, server_reactor);
    ASSERT_TRUE(listening.ok()) << listening.status();
    server_ = *std::move(listening);
    ASSERT_TRUE(server_->Start(std::move(at_server)).ok());
    client_ = hub_.Dial(kName, client_reactor);
    std::promise<void> connected;
    ASSERT_TRUE(client_
                    ->Start([this](Message message) { at_client_(std::move(message)); },
                            [&connected] { connected.set_value(); })
                    .ok());
    connected.get_future().wait();
  }

  InprocHub hub_;
  std::unique_ptr<Reactor> one_ = MakeReactor(), other_ = MakeReactor();
  std::function<void(Message)> at_client_ = [](Message) {};
  std::unique_ptr<ServerTransport> server_;
  std::unique_ptr<ClientTransport> client_;
};

TEST_F(InprocTransportTest, EndsOfOneReactorHandOverOnItAndNeverWithinSend) {
  std::thread::id reactor_thread, server_thread, client_thread;
  bool sending = false, within = false;
  std::promise<void> answered;
  at_client_ = [&](Message) {
    within |= sending;
    client_thread = std::this_thread::get_id();
    answered.set_value();
  };
  Connect(*one_, *one_, [&](PeerId peer, Message message) {
    within |= sending;
    server_thread = std::this_thread::get_id();
    sending = true;
    server_->Send(peer, std::move(message));
    sending = false;
  });
  one_->Post([&] {
    reactor_thread = std::this_thread::get_id();
    sending = true;
    client_->Send(MessageWith("x"));
    sending = false;
  });
  answered.get_future().wait();
  EXPECT_EQ(server_thread, reactor_thread);
  EXPECT_EQ(client_thread, reactor_thread);
  EXPECT_FALSE(within);
}

TEST_F(InprocTransportTest, EachSidesCallbacksRunOnItsOwnReactor) {
  std::promise<bool> at_client;
  std::promise<bool> at_server;
  at_client_ = [&](Message) { at_client.set_value(other_->InLoop()); };
  Connect(*one_, *other_, [&](PeerId peer, Message message) {
    at_server.set_value(one_->InLoop());
    server_->Send(peer, std::move(message));
  });
  client_->Send(MessageWith("x"));
  EXPECT_TRUE(at_server.get_future().get());
  EXPECT_TRUE(at_client.get_future().get());
}

// Those of the reactor's own thread wait for those that others have sent before.
TEST_F(InprocTransportTest, MessagesArriveInTheOrderInWhichTheyWereSent) {
  constexpr int kMessages = 1000;
  std::vector<int> came;
  std::promise<void> all;
  Connect(*one_, *other_, [&](PeerId, Message message) {
    wire::RpcHeader header;
    bool matches = false;
    ASSERT_TRUE(DecodeFrame(Direction::kToServer, message.header, 0, &header, &matches).ok());
    came.push_back(std::stoi(header.body()));
    if (came.size() == kMessages) all.set_value();
  });
  for (int i = 0; i < kMessages; ++i) {
    if (i % 3 == 0) {
      RunInLoopAndWait(*one_, [&] { client_->Send(MessageWith(std::to_string(i))); });
    } else {
      client_->Send(MessageWith(std::to_string(i)));
    }
  }
  all.get_future().wait();
  for (int i = 0; i < kMessages; ++i) EXPECT_EQ(came[i], i);
}

TEST_F(InprocTransportTest, NothingArrivesAtAnEndThatHasGone) {
  std::optional<PeerId> peer;
  std::promise<void> asked;
  bool arrived = false;
  at_client_ = [&](Message) { arrived = true; };
  Connect(*one_, *other_, [&](PeerId from, Message) {
    peer = from;
    asked.set_value();
  });
  client_->Send(MessageWith("x"));
  asked.get_future().wait();
  // What its reactor has not come to yet is dropped with it.
  RunInLoopAndWait(*other_, [&] {
    server_->Send(*peer, MessageWith("late"));
    client_ = nullptr;
  });
  server_->Send(*peer, MessageWith("later"));
  RunInLoopAndWait(*other_, [] {});
  EXPECT_FALSE(arrived);
}

}  // namespace
}  // namespace weir::net
