#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <utility>

#include "common/net/abstract_socket.h"
#include "common/net/hello.h"
#include "common/net/stream_connection.h"
#include "common/net/stream_transport.h"
#include "common/net/tcp_socket.h"
#include "common/net/transport_loop.h"

namespace weir::net {
namespace {

constexpr Duration kFirstRedial = std::chrono::milliseconds(50);
constexpr Duration kLongestRedial = std::chrono::seconds(1);
constexpr Duration kTcpPatience = std::chrono::seconds(2);
constexpr std::string_view kUnix = "unix:";
// No other sockets of the machine: whoever answers HELLO is not believed that much.
constexpr std::string_view kUnixOfOurs = "unix:@weirfs-";

// One attempt to connect by TCP.
class TcpDial final : private Watcher {
 public:
  using OnDone = std::function<void(Result<int>)>;  // the socket; may destroy the TcpDial
  TcpDial(Reactor& reactor, int socket, OnDone on_done)
      : reactor_(reactor), socket_(socket), on_done_(std::move(on_done)) {
    reactor_.Watch(socket_, this);
    reactor_.WaitWritable(this);
  }
  ~TcpDial() override {
    if (socket_ >= 0) close(Release());
  }
  TcpDial(const TcpDial&) = delete;
  TcpDial& operator=(const TcpDial&) = delete;

 private:
  void OnReadable() override { Look(); }
  void OnWritable() override { Look(); }
  void Look() {
    const Result<bool> connected = FinishTcp(socket_);
    if (connected.ok() && !*connected) return;
    const OnDone on_done = std::move(on_done_);
    if (connected.ok()) return on_done(Release());
    on_done(connected.status());
  }
  int Release() {
    reactor_.Unwatch(this);
    return std::exchange(socket_, -1);
  }

  Reactor& reactor_;
  int socket_;
  OnDone on_done_;
};

class StreamClient final : public ClientTransport {
 public:
  StreamClient(Reactor& reactor, std::unique_ptr<StreamFinder> finder, const StreamOptions& options)
      : options_(options),
        loop_(TransportLoop::Make(reactor,
                                  [this](PeerId, Message message) {
                                    if (connection_) connection_->Send(std::move(message));
                                  })),
        finder_(std::move(finder)) {}
  ~StreamClient() override {
    RunInLoopAndWait(loop_->reactor(), [this] {
      loop_->End();
      HangUp();
      finder_ = nullptr;
    });
  }

  Status Start(OnMessage on_message, OnConnect on_connect) override {
    on_message_ = std::move(on_message);
    on_connect_ = std::move(on_connect);
    loop_->Post([this] { Ask(); });
    return {};
  }
  void Send(Message message) override { loop_->Send(0, std::move(message)); }
  [[nodiscard]] bool broken() const override { return broken_; }
  void Reset() override {
    loop_->Post([this] {
      HangUp();
      Ask();
    });
  }
  void RunAfter(Duration delay, std::function<void()> task) override {
    loop_->RunAfter(delay, std::move(task));
  }

 private:
  void SetTimer(Duration delay, Loop::Task task) {
    Reactor& reactor = loop_->reactor();
    reactor.CancelTimer(timer_);
    timer_ = reactor.RunAt(SystemClock::Get().Now() + delay, std::move(task));
  }
  void HangUp() {
    loop_->reactor().CancelTimer(timer_);
    asking_ = false;
    finder_->Stop();
    streams_.clear();
    dial_ = nullptr;
    if (connection_) connection_->Close();
    connection_ = nullptr;
  }
  void Ask() {
    asking_ = true;
    SetTimer(options_.ask_again, [this] { Ask(); });
    finder_->Ask([this](const StreamFinder::Found& found) { OnFound(found); });
  }
  void OnFound(const StreamFinder::Found& found) {
    if (!std::exchange(asking_, false)) return;
    finder_->Stop();
    streams_.assign(found.streams.endpoints.begin(), found.streams.endpoints.end());
    std::stable_partition(streams_.begin(), streams_.end(),
                          [](const std::string& stream) { return stream.starts_with(kUnix); });
    streams_id_ = found.streams.id;
    host_ = found.host;
    DialNext();
  }
  // Until one answers; then all over again, the server asked anew.
  void DialNext() {
    while (!streams_.empty()) {
      const std::string stream = std::move(streams_.front());
      streams_.pop_front();
      if (stream.starts_with(kUnix) ? DialUnix(stream) : Dial(stream)) return;
    }
    DialLater();
  }
  void DialLater() {
    SetTimer(redial_, [this] { Ask(); });
    redial_ = std::min(2 * redial_, kLongestRedial);
  }
  bool DialUnix(const std::string& stream) {
    if (!stream.starts_with(kUnixOfOurs)) return false;
    const Result<int> socket = DialOurs(stream.substr(kUnix.size()));
    if (socket.ok()) Connected(*socket);
    if (socket.code() == ErrorCode::kBusy) DialLater();
    return socket.ok() || socket.code() == ErrorCode::kBusy;
  }
  bool Dial(const std::string& stream) {
    Result<Endpoint> endpoint = ParseEndpoint(stream);
    if (!endpoint.ok() || endpoint->kind != Endpoint::Kind::kTcp) return false;
    if (endpoint->address == "*") endpoint->address = host_;
    const Result<int> socket = DialTcp(*endpoint);
    if (!socket.ok()) return false;
    SetTimer(kTcpPatience, [this] { OnDialled(Status(ErrorCode::kTimedOut, "no answer")); });
    dial_ = std::make_unique<TcpDial>(loop_->reactor(), *socket,
                                      [this](const Result<int>& done) { OnDialled(done); });
    return true;
  }
  void OnDialled(const Result<int>& socket) {
    dial_ = nullptr;
    if (!socket.ok()) return DialNext();
    SetUpTcp(*socket);
    Connected(*socket);
  }
  void Connected(int socket) {
    loop_->reactor().CancelTimer(timer_);
    StreamConnection::Events events;
    events.on_message = [this](Message message) {
      redial_ = kFirstRedial;
      on_message_(std::move(message));
    };
    events.on_end = [this](StreamConnection::Ended) {
      broken_ = true;
      connection_ = nullptr;
      DialLater();
    };
    connection_ =
        StreamConnection::Make(loop_->reactor(), socket, Direction::kToServer, std::move(events));
    connection_->Send(EncodeStreamStart(streams_id_));
    broken_ = false;
    on_connect_();
  }

  const StreamOptions options_;
  OnMessage on_message_;
  OnConnect on_connect_;
  std::atomic<bool> broken_{false};
  const std::shared_ptr<TransportLoop> loop_;

  // Of the reactor's thread, once started.
  std::unique_ptr<StreamFinder> finder_;
  LoopTimer timer_ = 0;             // until the next question, or the end of an attempt
  Duration redial_ = kFirstRedial;  // how long until the next attempt
  bool asking_ = false;
  std::deque<std::string> streams_;  // not yet tried
  uint64_t streams_id_ = 0;
  std::string host_;
  std::unique_ptr<TcpDial> dial_;
  std::shared_ptr<StreamConnection> connection_;
};

}  // namespace

std::unique_ptr<ClientTransport> DialStreams(Reactor& reactor, std::unique_ptr<StreamFinder> finder,
                                             const StreamOptions& options) {
  return std::make_unique<StreamClient>(reactor, std::move(finder), options);
}

}  // namespace weir::net
