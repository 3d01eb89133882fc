#include "common/net/inproc_transport.h"

#include <atomic>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "common/net/envelope.h"
#include "common/net/transport_loop.h"

namespace weir::net {
namespace {

// One end of connections: what has been sent to it waits until its reactor comes to it. The other
// side may hold on to it for longer than its transport lives.
class End : public std::enable_shared_from_this<End> {
 public:
  // On the reactor's thread.
  using OnArrival = std::function<void(PeerId, Message)>;

  explicit End(Reactor& reactor) : loop_(TransportLoop::Make(reactor, {})) {}

  // Before anything is sent to it.
  void Start(OnArrival on_arrival) { on_arrival_ = std::move(on_arrival); }
  // Nothing arrives and no task runs afterwards.
  void Stop() {
    RunInLoopAndWait(loop_->reactor(), [this] {
      ended_ = true;
      loop_->End();
    });
  }
  // From any thread. It arrives behind what was sent before, never within the call: at the end of
  // the reactor's turn when sent by its own thread.
  void Arrive(PeerId peer, Message message) {
    bool first = false;
    {
      const std::lock_guard lock(mutex_);
      first = sent_.empty();
      sent_.push_back({peer, std::move(message)});
    }
    Reactor& reactor = loop_->reactor();
    if (reactor.InLoop()) {
      if (std::exchange(taken_at_turn_end_, true)) return;
      reactor.AtTurnEnd([self = shared_from_this()] {
        self->taken_at_turn_end_ = false;
        self->Take();
      });
    } else if (first) {
      reactor.Post([self = shared_from_this()] { self->Take(); });
    }
  }
  [[nodiscard]] TransportLoop& loop() const { return *loop_; }

 private:
  struct Sent {
    PeerId peer;
    Message message;
  };
  void Take() {
    std::vector<Sent> taken;
    taken.swap(spare_);
    {
      const std::lock_guard lock(mutex_);
      taken.swap(sent_);
    }
    for (Sent& sent : taken) {
      if (!ended_) on_arrival_(sent.peer, std::move(sent.message));
    }
    taken.clear();
    spare_ = std::move(taken);
  }

  const std::shared_ptr<TransportLoop> loop_;
  OnArrival on_arrival_;

  // Of the reactor's thread.
  bool ended_ = false;
  bool taken_at_turn_end_ = false;
  std::vector<Sent> spare_;  // kept for its capacity

  std::mutex mutex_;
  std::vector<Sent> sent_;  // guarded by mutex_
};

}  // namespace

struct InprocHub::Names {
  struct Peer {
    std::string endpoint;
    std::shared_ptr<End> end;
    ClientTransport::OnConnect on_connect;
  };
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<End>> servers;  // null: bound but not started
  std::map<PeerId, Peer> peers;
  PeerId last_peer = 0;

  // Gives the client a new connection id, so that answers to the old one are dropped.
  PeerId ConnectLocked(const std::string& endpoint, const std::shared_ptr<End>& end,
                       const ClientTransport::OnConnect& on_connect) {
    peers[++last_peer] = {endpoint, end, on_connect};
    const auto it = servers.find(endpoint);
    if (it != servers.end() && it->second != nullptr) end->loop().Post(on_connect);
    return last_peer;
  }
};

namespace {

using Names = InprocHub::Names;

class InprocServer final : public ServerTransport {
 public:
  InprocServer(std::shared_ptr<Names> names, std::string endpoint, Reactor& reactor)
      : names_(std::move(names)),
        endpoint_(std::move(endpoint)),
        end_(std::make_shared<End>(reactor)) {}
  ~InprocServer() override {
    {
      const std::lock_guard lock(names_->mutex);
      names_->servers.erase(endpoint_);
    }
    end_->Stop();
  }

  Status Start(OnMessage on_message) override {
    end_->Start([this, on_message = std::move(on_message)](PeerId peer, Message message) {
      received_.fetch_add(1, std::memory_order_relaxed);
      if (!DecodeEnvelope(Direction::kToServer, message.header).ok()) {
        malformed_.fetch_add(1, std::memory_order_relaxed);
        return;
      }
      on_message(peer, std::move(message));
    });
    const std::lock_guard lock(names_->mutex);
    names_->servers[endpoint_] = end_;
    for (const auto& [id, peer] : names_->peers) {
      if (peer.endpoint == endpoint_) peer.end->loop().Post(peer.on_connect);
    }
    return Status::Ok();
  }

  void Send(PeerId peer, Message message) override {
    std::shared_ptr<End> client;
    {
      const std::lock_guard lock(names_->mutex);
      const auto it = names_->peers.find(peer);
      if (it == names_->peers.end()) return;
      client = it->second.end;
    }
    sent_.fetch_add(1, std::memory_order_relaxed);
    client->Arrive(peer, std::move(message));
  }

  void RunAfter(Duration delay, std::function<void()> task) override {
    end_->loop().RunAfter(delay, std::move(task));
  }
  [[nodiscard]] const std::string& endpoint() const override { return endpoint_; }
  [[nodiscard]] TransportCounters Counters() const override {
    return {received_.load(), sent_.load(), malformed_.load()};
  }

 private:
  const std::shared_ptr<Names> names_;
  const std::string endpoint_;
  const std::shared_ptr<End> end_;
  std::atomic<uint64_t> received_{0}, sent_{0}, malformed_{0};
};

class InprocClient final : public ClientTransport {
 public:
  InprocClient(std::shared_ptr<Names> names, std::string endpoint, Reactor& reactor)
      : names_(std::move(names)),
        endpoint_(std::move(endpoint)),
        end_(std::make_shared<End>(reactor)) {}
  ~InprocClient() override {
    {
      const std::lock_guard lock(names_->mutex);
      names_->peers.erase(id_);
    }
    end_->Stop();
  }

  Status Start(OnMessage on_message, OnConnect on_connect) override {
    end_->Start([on_message = std::move(on_message)](PeerId /*peer*/, Message message) {
      on_message(std::move(message));
    });
    on_connect_ = std::move(on_connect);
    const std::lock_guard lock(names_->mutex);
    id_ = names_->ConnectLocked(endpoint_, end_, on_connect_);
    return Status::Ok();
  }

  void Send(Message message) override {
    std::shared_ptr<End> server;
    PeerId id = 0;
    {
      const std::lock_guard lock(names_->mutex);
      const auto it = names_->servers.find(endpoint_);
      if (it == names_->servers.end() || it->second == nullptr) return;
      server = it->second;
      id = id_;
    }
    server->Arrive(id, std::move(message));
  }

  void Reset() override {
    const std::lock_guard lock(names_->mutex);
    names_->peers.erase(id_);
    id_ = names_->ConnectLocked(endpoint_, end_, on_connect_);
  }
  void RunAfter(Duration delay, std::function<void()> task) override {
    end_->loop().RunAfter(delay, std::move(task));
  }

 private:
  const std::shared_ptr<Names> names_;
  const std::string endpoint_;
  const std::shared_ptr<End> end_;
  OnConnect on_connect_;
  PeerId id_ = 0;  // guarded by names_->mutex
};

}  // namespace

InprocHub::InprocHub() : names_(std::make_shared<Names>()) {}
InprocHub::~InprocHub() = default;

Result<std::unique_ptr<ServerTransport>> InprocHub::Listen(const std::string& endpoint,
                                                           Reactor& reactor) {
  const std::lock_guard lock(names_->mutex);
  if (!names_->servers.emplace(endpoint, nullptr).second) {
    return {ErrorCode::kBusy, "cannot listen on " + endpoint + ": already in use"};
  }
  return std::unique_ptr<ServerTransport>(new InprocServer(names_, endpoint, reactor));
}

std::unique_ptr<ClientTransport> InprocHub::Dial(const std::string& endpoint, Reactor& reactor) {
  return std::make_unique<InprocClient>(names_, endpoint, reactor);
}

}  // namespace weir::net
