// One stream: how few system calls a turn costs, and what a slow or a rude peer does to others.
#include "common/net/stream_connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <future>
#include <thread>
#include <vector>

#include "common/base/prng.h"
#include "common/testing/seed.h"
#include "tests/unit/common/net/stream_fixture.h"

namespace weir::net {
namespace {

// Two connections of one reactor that are each other's peer.
class StreamConnectionTest : public ReactorFixture {
 protected:
  void SetUp() override {
    ReactorFixture::SetUp();
    if (IsSkipped()) return;
    std::array<int, 2> ends{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    RunInLoopAndWait(*reactor_, [&] {
      client_ = StreamConnection::Make(
          *reactor_, ends[0], Direction::kToServer,
          {.on_message = [this](Message message) { answers_.Add(std::move(message)); },
           .on_end = [this](StreamConnection::Ended how) { client_ended_.Add(how); }});
      server_ = StreamConnection::Make(
          *reactor_, ends[1], Direction::kToClient,
          {.on_message = [this](Message message) { came_.Add(std::move(message)); },
           .on_end = [this](StreamConnection::Ended how) { server_ended_.Add(how); }});
    });
  }
  void TearDown() override {
    if (reactor_ == nullptr) return;
    RunInLoopAndWait(*reactor_, [this] {
      if (client_) client_->Close();
      if (server_) server_->Close();
    });
  }
  uint64_t SendsOfClient() {
    uint64_t sends = 0;
    RunInLoopAndWait(*reactor_, [&] { sends = client_->sends(); });
    return sends;
  }

  Arrivals<Message> came_, answers_;
  Arrivals<StreamConnection::Ended> client_ended_, server_ended_;
  std::shared_ptr<StreamConnection> client_, server_;
};

TEST_P(StreamConnectionTest, WhatATurnProducesLeavesTogether) {
  constexpr uint64_t kMessages = 1000;
  RunInLoopAndWait(*reactor_, [this] {
    for (uint64_t i = 0; i < kMessages; ++i) client_->Send(Numbered(Direction::kToServer, i, 0));
  });
  for (uint64_t i = 0; i < kMessages; ++i) {
    ASSERT_EQ(NumberOf(Direction::kToServer, came_.Next()), i);
  }
  // 64 parts each, of which 63 are always used; the socket may be full now and then.
  EXPECT_LE(SendsOfClient(), kMessages / 32);
}

TEST_P(StreamConnectionTest, LargeAndSmallMessagesStayInOrder) {
  Prng dice(weir::testing::TestSeed());
  const std::vector<size_t> sizes = {0, 1, 4096, 65'536, 100'000, 1 << 20, kMaxPayloadBytes};
  std::vector<size_t> sent;
  for (int i = 0; i < 40; ++i) sent.push_back(sizes[dice.Uniform(0, i < 4 ? 6 : 5)]);
  RunInLoopAndWait(*reactor_, [&] {
    for (size_t i = 0; i < sent.size(); ++i) {
      client_->Send(Numbered(Direction::kToServer, i, sent[i]));
      server_->Send(Numbered(Direction::kToClient, i, sent[i]));
    }
  });
  for (size_t i = 0; i < sent.size(); ++i) {
    const Message there = came_.Next();
    ASSERT_EQ(NumberOf(Direction::kToServer, there), i);
    EXPECT_EQ(there.payload.size(), sent[i]);
    EXPECT_TRUE(there.payload.empty() || there.payload.IsAligned());
    ASSERT_EQ(NumberOf(Direction::kToClient, answers_.Next()), i);
  }
}

// The other end is read by the test, as slowly as it likes.
class RawPeerTest : public ReactorFixture {
 protected:
  void SetUp() override {
    ReactorFixture::SetUp();
    if (!IsSkipped()) Connect();
  }
  void Connect() {
    std::array<int, 2> ends{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    raw_ = ends[0];
    RunInLoopAndWait(*reactor_, [&] {
      server_ = StreamConnection::Make(
          *reactor_, ends[1], Direction::kToClient,
          {.on_message = [this](Message message) { came_.Add(std::move(message)); },
           .on_end = [this](StreamConnection::Ended how) { ended_.Add(how); }});
    });
  }
  void TearDown() override {
    if (reactor_ == nullptr) return;
    RunInLoopAndWait(*reactor_, [this] { server_->Close(); });
    if (raw_ >= 0) close(raw_);
  }
  void Say(std::string_view bytes) const {
    ASSERT_EQ(send(raw_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void HangUp() { close(std::exchange(raw_, -1)); }

  int raw_ = -1;
  Arrivals<Message> came_;
  Arrivals<StreamConnection::Ended> ended_;
  std::shared_ptr<StreamConnection> server_;
};

TEST_P(RawPeerTest, ASlowReaderGetsEverythingAndHoldsUpNobody) {
  constexpr int kMessages = 8;
  RunInLoopAndWait(*reactor_, [this] {
    for (int i = 0; i < kMessages; ++i) {
      server_->Send(Numbered(Direction::kToClient, static_cast<uint64_t>(i), 1 << 20));
    }
  });
  size_t queued = 0;
  RunInLoopAndWait(*reactor_,
                   [&] { queued = server_->queued(); });  // the reactor does not wait for it
  EXPECT_GT(queued, 0u);
  MessageReader reader(Direction::kToClient);
  for (uint64_t next = 0; next < kMessages;) {
    const auto room = reader.Room();
    const ssize_t got = recv(raw_, room.data(), std::min<size_t>(room.size(), 10'000), 0);
    ASSERT_GT(got, 0);
    reader.Came(static_cast<size_t>(got));
    Message message;
    if (reader.Take(&message) != MessageReader::Taken::kMessage) continue;
    ASSERT_EQ(NumberOf(Direction::kToClient, message), next++);
  }
}

// The second peer's small messages come between the first one's bulk.
TEST_P(RawPeerTest, AFloodOfOnePeerLeavesTurnsToOthers) {
  std::string flood;
  for (uint64_t i = 0; i < 200; ++i) flood += Numbered(Direction::kToServer, i, 0).header;
  std::vector<size_t> seen;
  std::promise<void> turn_over;
  RunInLoopAndWait(*reactor_, [&] {
    Say(flood);
    // What the kernel says of the flood is heard in the next turn; this is asked two turns later.
    reactor_->Post([&] {
      reactor_->Post([&] {
        reactor_->Post([&] {
          seen.push_back(came_.count());
          turn_over.set_value();
        });
      });
    });
  });
  turn_over.get_future().get();
  EXPECT_LE(seen.front(), 3u * StreamConnection::kTurnMessages);
  for (uint64_t i = 0; i < 200; ++i) ASSERT_EQ(NumberOf(Direction::kToServer, came_.Next()), i);
}

TEST_P(RawPeerTest, RubbishEndsTheConnectionWhereverItBegins) {
  const std::string good = Numbered(Direction::kToServer, 1, 0).header;
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x55);
    // A length that is too long waits for what does not come: then it is the end that ends it.
    Say(good + bad);
    HangUp();
    EXPECT_EQ(NumberOf(Direction::kToServer, came_.Next()), 1u) << "byte " << at;
    (void)ended_.Next();
    EXPECT_EQ(came_.count(), 0u) << "byte " << at;
    Connect();  // the next peer
  }
  Say("GET / HTTP/1.1\r\nHost: here\r\n\r\n");
  EXPECT_EQ(ended_.Next(), StreamConnection::Ended::kRubbish);
}

TEST_P(RawPeerTest, APeerThatGoesInTheMiddleOfAMessageIsGone) {
  const Message half = Numbered(Direction::kToServer, 1, 1000);
  Say(half.header);
  Say(half.payload.view().substr(0, 400));
  HangUp();
  EXPECT_EQ(ended_.Next(), StreamConnection::Ended::kGone);
  RunInLoopAndWait(*reactor_,
                   [this] { server_->Send(Numbered(Direction::kToClient, 1, 0)); });  // dropped
}

TEST_P(RawPeerTest, AnEventMayCloseTheConnectionItCameFrom) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
  Arrivals<int> heard;
  std::shared_ptr<StreamConnection> one;
  RunInLoopAndWait(*reactor_, [&] {
    one = StreamConnection::Make(*reactor_, ends[1], Direction::kToClient,
                                 {.on_message =
                                      [&](const Message&) {
                                        one->Send(Numbered(Direction::kToClient, 1, 0));
                                        one->Close();
                                        one = nullptr;
                                        heard.Add(1);
                                      },
                                  .on_end = [&](StreamConnection::Ended) { heard.Add(2); }});
  });
  std::string two;
  for (uint64_t i = 0; i < 2; ++i) two += Numbered(Direction::kToServer, i, 0).header;
  ASSERT_EQ(write(ends[0], two.data(), two.size()), static_cast<ssize_t>(two.size()));
  EXPECT_EQ(heard.Next(), 1);
  char byte = 0;
  ssize_t end = -1;
  while ((end = read(ends[0], &byte, 1)) < 0 && errno == EAGAIN) std::this_thread::yield();
  EXPECT_LE(end, 0) << "it was closed";
  RunInLoopAndWait(*reactor_, [] {});
  EXPECT_EQ(heard.count(), 0u) << "nothing came afterwards";
  close(ends[0]);
}

INSTANTIATE_TEST_SUITE_P(Backends, StreamConnectionTest,
                         ::testing::Values(Reactor::Backend::kUring, Reactor::Backend::kEpoll),
                         NameOfBackend);
INSTANTIATE_TEST_SUITE_P(Backends, RawPeerTest,
                         ::testing::Values(Reactor::Backend::kUring, Reactor::Backend::kEpoll),
                         NameOfBackend);

}  // namespace
}  // namespace weir::net
