// Goal: the mount and its MDS agree on the session, and calls meet the end of the client at any
// moment. Method: an MDS in the same process of which the test takes what it hears, one by one.
#include "client/remote/mds_client.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <future>
#include <thread>

#include "client/vfs/dir_cache.h"
#include "client/vfs/file_leases.h"
#include "common/net/sub_session.h"
#include "common/net/transport.h"
#include "common/reactor/reactor.h"
#include "common/wire/mds.pb.h"

namespace weir::client {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kMountSession = 7;
constexpr InodeId kOpenFile{5};
constexpr InodeId kKeptFile{6};

// Calls `sending` within Send, and `gone` when a transport ends.
class WatchedNetwork final : public net::Network {
 public:
  Result<std::unique_ptr<net::ServerTransport>> Listen(const std::string& endpoint) override {
    return real_->Listen(endpoint);
  }
  Result<std::unique_ptr<net::ClientTransport>> Dial(const std::string& endpoint) override {
    WEIR_ASSIGN_OR_RETURN(auto real, real_->Dial(endpoint));
    return std::unique_ptr<net::ClientTransport>(new Transport(*this, std::move(real)));
  }
  std::function<bool()> sending;  // false: the transport is gone
  std::function<void()> gone;

 private:
  class Transport final : public net::ClientTransport {
   public:
    Transport(WatchedNetwork& network, std::unique_ptr<net::ClientTransport> real)
        : network_(network), real_(std::move(real)) {}
    ~Transport() override {
      if (network_.gone) network_.gone();
    }
    Status Start(OnMessage on_message, OnConnect on_connect) override {
      return real_->Start(std::move(on_message), std::move(on_connect));
    }
    void Send(net::Message message) override {
      if (network_.sending && !network_.sending()) return;
      real_->Send(std::move(message));
    }
    void Reset() override { real_->Reset(); }
    void RunAfter(Duration delay, std::function<void()> task) override {
      real_->RunAfter(delay, std::move(task));
    }

   private:
    WatchedNetwork& network_;
    const std::unique_ptr<net::ClientTransport> real_;
  };
  const std::unique_ptr<net::Network> real_ = net::MakeNetwork();
};

class MdsClientTest : public ::testing::Test {
 protected:
  using CallPtr = std::shared_ptr<net::IncomingCall>;

  void Start(size_t reactors = 0) {
    auto server = net::RpcServer::Start(network_, SystemClock::Get(), "inproc://mds",
                                        [this](const CallPtr& call) {
                                          const std::lock_guard lock(mutex_);
                                          heard_.push_back(call);
                                          hears_.notify_all();
                                        });
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    std::vector<Reactor*> all;
    for (size_t i = 0; i < reactors; ++i) {
      reactors_.push_back(*Reactor::Create({}));
      reactors_.back()->Start();
      all.push_back(reactors_.back().get());
    }
    networks_ = all.empty() ? std::make_unique<ReactorNetworks>(network_)
                            : std::make_unique<ReactorNetworks>(network_, all);
    MdsClient::Options options;
    options.endpoint = "inproc://mds";
    options.session = kMountSession;
    options.directories = &directories_;
    options.files = &leases_;
    MdsClient::Events events;
    events.on_map = [](const MapPtr&) {};
    events.on_tags = [](uint64_t) {};
    events.open_inodes = [] { return std::vector<InodeId>{kOpenFile}; };
    events.on_told_open = [this](const std::vector<InodeId>& inodes) { told_open_ = inodes; };
    events.kept_inodes = [] { return std::vector<InodeId>{kKeptFile}; };
    events.on_told_kept = [this](const std::vector<InodeId>& inodes) { told_kept_ = inodes; };
    events.on_recall = [](uint64_t, const std::vector<InodeId>&) {};
    events.on_lost_leases = [](const std::vector<InodeId>&) {};
    auto client = MdsClient::Connect(*networks_, SystemClock::Get(), options, std::move(events));
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    client_->OpenAsync([](const Status& status) { EXPECT_TRUE(status.ok()) << status; });
    OpenSession(1);
  }
  void TearDown() override {
    client_.reset();
    server_.reset();
  }
  // What the MDS hears next, but for watches if not asked for.
  CallPtr Next(bool watches = true) {
    std::unique_lock lock(mutex_);
    for (;;) {
      hears_.wait(lock, [this] { return !heard_.empty(); });
      CallPtr call = std::move(heard_.front());
      heard_.pop_front();
      if (watches || call->method() != wire::MDS_WATCH) return call;
      unanswered_.push_back(std::move(call));
    }
  }
  // Answers what is heard next, an OPEN_SESSION in that life of the MDS.
  void OpenSession(uint64_t life) {
    const CallPtr call = Next();
    ASSERT_EQ(call->method(), wire::MDS_OPEN_SESSION);
    wire::OpenSessionRequest request;
    ASSERT_TRUE(request.ParseFromString(call->body()));
    ASSERT_EQ(request.open_inodes_size(), 1);
    EXPECT_EQ(request.open_inodes(0), kOpenFile.value);
    wire::OpenSessionReply reply;
    *reply.mutable_map() = ToWire(ClusterMap());
    reply.set_lease_epoch(life);
    call->Respond(reply.SerializeAsString());
  }
  void AnswerWatch(const wire::WatchReply& reply) {
    const CallPtr call = Next();
    ASSERT_EQ(call->method(), wire::MDS_WATCH);
    call->Respond(reply.SerializeAsString());
  }
  // Which connection such a call of that reactor's thread takes.
  uint64_t ConnectionOf(uint32_t method, size_t reactor) {
    std::promise<void> answered;
    reactors_.at(reactor)->Post([&] {
      client_->CallRaw(method, wire::Empty(), true,
                       [&](const Result<net::Reply>&) { answered.set_value(); });
    });
    const CallPtr call = Next(false);
    EXPECT_EQ(call->method(), method);
    call->Respond(wire::Empty().SerializeAsString());
    answered.get_future().get();
    return (call->sub_session() ^ kMountSession) >> net::kConnectionShift;
  }

  WatchedNetwork network_;
  DirCache directories_{SystemClock::Get()};
  FileLeases leases_{SystemClock::Get(), false};
  std::mutex mutex_;
  std::condition_variable hears_;
  std::deque<CallPtr> heard_;
  std::vector<CallPtr> unanswered_;
  std::vector<InodeId> told_open_, told_kept_;
  std::unique_ptr<net::RpcServer> server_;
  std::vector<std::unique_ptr<Reactor>> reactors_;
  std::unique_ptr<ReactorNetworks> networks_;
  std::unique_ptr<MdsClient> client_;
};

TEST_F(MdsClientTest, AWatchOfAnotherLifeOpensTheSessionAgain) {
  Start();
  wire::WatchReply reply;
  reply.set_lease_epoch(1);
  AnswerWatch(reply);
  reply.set_lease_epoch(2);  // its answer to an OPEN_SESSION got lost
  AnswerWatch(reply);
  ASSERT_NO_FATAL_FAILURE(OpenSession(3));
  EXPECT_EQ(Next()->method(), wire::MDS_WATCH);
  EXPECT_EQ(leases_.epoch(), 3u);
}

TEST_F(MdsClientTest, TellsWhatTheMdsTakesForOpenAndKeptWhenASessionBeginsAnew) {
  Start();
  wire::WatchReply reply;
  reply.set_unknown_session(true);
  AnswerWatch(reply);
  ASSERT_NO_FATAL_FAILURE(OpenSession(2));
  EXPECT_EQ(Next()->method(), wire::MDS_WATCH);
  EXPECT_EQ(told_open_, std::vector<InodeId>{kOpenFile});
  EXPECT_EQ(told_kept_, std::vector<InodeId>{kKeptFile});
}

TEST_F(MdsClientTest, WhatNobodyMayOvertakeGoesByTheFirstConnection) {
  Start(2);
  while (ConnectionOf(wire::MDS_GETATTR, 1) == 0) client_->Tick();
  for (const uint32_t method :
       {wire::MDS_RELEASE, wire::MDS_WROTE, wire::MDS_SETATTR, wire::MDS_ACCESSED}) {
    EXPECT_EQ(ConnectionOf(method, 1), 0u) << method;
  }
  EXPECT_EQ(ConnectionOf(wire::MDS_GETATTR, 1), 1u) << "it is still there";
}

// Goal: the client does not take a connection away from a call that has it. Method: a call stays
// within Send until the client ends, and a moment longer, in which nothing may happen.
TEST_F(MdsClientTest, StopWaitsForCallsThatAreBeingSent) {
  std::promise<void> sending;
  std::promise<void> gone;
  std::promise<ErrorCode> ended;
  std::future<void> is_gone = gone.get_future();
  std::atomic<std::thread::id> caller_id;
  network_.gone = [&] { gone.set_value(); };
  network_.sending = [&] {
    if (std::this_thread::get_id() != caller_id) return true;
    sending.set_value();
    while (client_->connected()) std::this_thread::yield();
    const bool stays = is_gone.wait_for(100ms) == std::future_status::timeout;
    EXPECT_TRUE(stays);
    return stays;
  };
  Start();
  EXPECT_EQ(Next()->method(), wire::MDS_WATCH);
  std::thread caller([&] {
    caller_id = std::this_thread::get_id();
    client_->CallRaw(wire::MDS_GETATTR, wire::Empty(), true,
                     [&](const Result<net::Reply>& reply) { ended.set_value(reply.code()); });
  });
  sending.get_future().get();
  client_->Stop();
  caller.join();
  EXPECT_EQ(ended.get_future().get(), ErrorCode::kCancelled);
  client_->CallRaw(wire::MDS_GETATTR, wire::Empty(), true, [](const Result<net::Reply>& reply) {
    EXPECT_EQ(reply.code(), ErrorCode::kCancelled);
  });
  EXPECT_EQ(client_->ReserveId(), 0u);
  client_->Tick();
}

}  // namespace
}  // namespace weir::client
