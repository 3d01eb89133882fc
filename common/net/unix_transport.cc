#include "common/net/unix_transport.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>

#include "common/base/check.h"
#include "common/base/inheriting_mutex.h"
#include "common/net/abstract_socket.h"
#include "common/net/io_thread.h"
#include "common/net/unix_connection.h"

namespace weir::net {
namespace {

constexpr uint64_t kOwnKey =
    0;  // of an epoll's owner: the listener, or the timer; then connections
constexpr Duration kFirstRedial = std::chrono::milliseconds(50);
constexpr Duration kLongestRedial = std::chrono::seconds(1);

class Epoll {
 public:
  Epoll() : fd_(epoll_create1(EPOLL_CLOEXEC)) {
    WEIR_CHECK(fd_ >= 0, "no file descriptor left for an epoll; raise ulimit -n");
  }
  ~Epoll() { close(fd_); }
  Epoll(const Epoll&) = delete;
  Epoll& operator=(const Epoll&) = delete;
  [[nodiscard]] int fd() const { return fd_; }
  void WatchOwn(int fd) const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = kOwnKey;
    WEIR_CHECK(epoll_ctl(fd_, EPOLL_CTL_ADD, fd, &event) == 0, "an epoll takes no descriptor");
  }
  // What has happened; never waits.
  std::span<const epoll_event> Take() {
    const int count = epoll_wait(fd_, events_.data(), static_cast<int>(events_.size()), 0);
    return std::span(events_).first(static_cast<size_t>(std::max(count, 0)));
  }

 private:
  const int fd_;
  std::array<epoll_event, 64> events_{};
};

class UnixServer final : public ServerTransport {
 public:
  UnixServer(std::string name, int listener)
      : endpoint_(std::move(name)), listener_(listener), spare_(open("/dev/null", O_CLOEXEC)) {
    epoll_.WatchOwn(listener_);
  }
  ~UnixServer() override {
    loop_.Stop();
    close(listener_);
    if (spare_ >= 0) close(spare_);
  }

  Status Start(OnMessage on_message) override {
    on_message_ = std::move(on_message);
    loop_.Start(
        {epoll_.fd()}, [this] { return Drain(); }, true);
    return Status::Ok();
  }
  void Send(PeerId peer, Message message) override {
    const std::shared_ptr<UnixConnection> connection = Find(peer);
    if (connection && connection->Send(std::move(message))) ++sent_;
  }
  void RunAfter(Duration delay, std::function<void()> task) override {
    loop_.RunAfter(delay, std::move(task));
  }
  [[nodiscard]] const std::string& endpoint() const override { return endpoint_; }
  [[nodiscard]] TransportCounters Counters() const override {
    return {received_.load(), sent_.load(), malformed_.load()};
  }

 private:
  std::shared_ptr<UnixConnection> Find(PeerId peer) {
    const std::lock_guard lock(mutex_);
    const auto it = peers_.find(peer);
    return it == peers_.end() ? nullptr : it->second;
  }
  bool Drain() {
    const auto events = epoll_.Take();
    for (const epoll_event& event : events) {
      if (event.data.u64 == kOwnKey) {
        Accept();
      } else if (const auto connection = Find(event.data.u64)) {
        if ((event.events & EPOLLOUT) != 0) connection->SendMore();
        if ((event.events & ~EPOLLOUT) != 0) Receive(event.data.u64, *connection);
      }
    }
    return !events.empty();
  }
  void Receive(PeerId peer, UnixConnection& connection) {
    const auto state = connection.Receive([&](Message message) {
      ++received_;
      on_message_(peer, std::move(message));
    });
    if (state == UnixConnection::State::kOpen) return;
    if (state == UnixConnection::State::kRubbish) ++malformed_;
    const std::lock_guard lock(mutex_);
    peers_.erase(peer);
  }
  void Accept() {
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket >= 0) {
      const PeerId peer = ++last_peer_;
      auto connection =
          std::make_shared<UnixConnection>(socket, Direction::kToClient, epoll_.fd(), peer);
      const std::lock_guard lock(mutex_);
      peers_.emplace(peer, std::move(connection));
    } else if (errno == EMFILE && spare_ >= 0) {
      HangUpOnOne();
    }
  }
  // With no descriptor left it could not even be told to go away, and would make us look for ever.
  void HangUpOnOne() {
    close(spare_);
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket >= 0) close(socket);
    spare_ = open("/dev/null", O_CLOEXEC);
  }

  const std::string endpoint_;
  Epoll epoll_;
  const int listener_;
  int spare_;
  PeerId last_peer_ = kOwnKey;
  OnMessage on_message_;
  std::atomic<uint64_t> received_{0}, sent_{0}, malformed_{0};

  InheritingMutex mutex_;
  std::unordered_map<PeerId, std::shared_ptr<UnixConnection>> peers_;
  IoThread loop_;  // last: stops before what it uses goes
};

class UnixClient final : public ClientTransport {
 public:
  explicit UnixClient(std::string name)
      : name_(std::move(name)),
        redial_timer_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
    WEIR_CHECK(redial_timer_ >= 0, "no file descriptor left for a timer; raise ulimit -n");
    epoll_.WatchOwn(redial_timer_);
  }
  ~UnixClient() override {
    loop_.Stop();
    close(redial_timer_);
  }

  Status Start(OnMessage on_message, OnConnect on_connect) override {
    on_message_ = std::move(on_message);
    on_connect_ = std::move(on_connect);
    Dial();
    loop_.Start(
        {epoll_.fd()}, [this] { return Drain(); }, true);
    return Status::Ok();
  }
  void Send(Message message) override {
    if (const auto connection = Current()) (void)connection->Send(std::move(message));
  }
  [[nodiscard]] bool broken() const override { return broken_; }
  void Reset() override {
    loop_.Post([this] {
      HangUp();
      Dial();
    });
  }
  void RunAfter(Duration delay, std::function<void()> task) override {
    loop_.RunAfter(delay, std::move(task));
  }

 private:
  std::shared_ptr<UnixConnection> Current() {
    const std::lock_guard lock(mutex_);
    return connection_;
  }
  void Dial() {
    const Result<int> socket = DialOurs(name_);
    if (!socket.ok()) return DialLater();
    auto connection =
        std::make_shared<UnixConnection>(*socket, Direction::kToServer, epoll_.fd(), ++last_key_);
    const std::lock_guard lock(mutex_);
    connection_ = std::move(connection);
    is_new_ = true;
  }
  void DialLater() {
    const int64_t ns = redial_.count();
    redial_ = std::min(2 * redial_, kLongestRedial);
    itimerspec when{};
    when.it_value = {ns / 1'000'000'000, ns % 1'000'000'000};
    WEIR_CHECK(timerfd_settime(redial_timer_, 0, &when, nullptr) == 0, "a timer cannot be set");
  }
  void HangUp() {
    const std::lock_guard lock(mutex_);
    connection_ = nullptr;
  }
  bool Drain() {
    const bool connected = std::exchange(is_new_, false);
    if (connected) {
      broken_ = false;
      on_connect_();
    }
    const auto events = epoll_.Take();
    for (const epoll_event& event : events) {
      if (event.data.u64 == kOwnKey) {
        uint64_t rings = 0;
        if (read(redial_timer_, &rings, sizeof(rings)) > 0 && !Current()) Dial();
      } else if (event.data.u64 == last_key_) {
        if (const auto connection = Current()) Work(event.events, *connection);
      }
    }
    return connected || !events.empty();
  }
  void Work(uint32_t events, UnixConnection& connection) {
    if ((events & EPOLLOUT) != 0) connection.SendMore();
    if ((events & ~EPOLLOUT) == 0) return;
    const auto state = connection.Receive([this](Message message) {
      redial_ = kFirstRedial;
      on_message_(std::move(message));
    });
    if (state == UnixConnection::State::kOpen) return;
    broken_ = true;
    HangUp();
    DialLater();
  }

  const std::string name_;
  Epoll epoll_;
  const int redial_timer_;
  Duration redial_ = kFirstRedial;  // how long until the next attempt
  uint64_t last_key_ = kOwnKey;     // of the connection, which is the last one made
  bool is_new_ = false;             // on_connect_ has not heard of it
  OnMessage on_message_;
  OnConnect on_connect_;
  std::atomic<bool> broken_{false};

  InheritingMutex mutex_;
  std::shared_ptr<UnixConnection> connection_;
  IoThread loop_;  // last: stops before what it uses goes
};

}  // namespace

Result<std::unique_ptr<ServerTransport>> ListenUnix(const std::string& name) {
  WEIR_ASSIGN_OR_RETURN(const int listener, ListenAt(name));
  return std::unique_ptr<ServerTransport>(std::make_unique<UnixServer>(name, listener));
}

std::unique_ptr<ClientTransport> DialUnix(const std::string& name) {
  return std::make_unique<UnixClient>(name);
}

}  // namespace weir::net
