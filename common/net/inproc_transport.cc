#include "common/net/inproc_transport.h"

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "common/base/check.h"
#include "common/net/envelope.h"
#include "common/net/io_thread.h"

namespace weir::net {
namespace {

// What the other side may hold on to: posts to a thread that has stopped are dropped.
struct ServerEnd {
  IoThread loop;
  ServerTransport::OnMessage on_message;
  std::atomic<uint64_t> received{0}, sent{0}, malformed{0};
};
struct ClientEnd {
  IoThread loop;
  ClientTransport::OnMessage on_message;
  ClientTransport::OnConnect on_connect;
};

thread_local bool lent = false;

template <typename End>
void HandOver(const std::shared_ptr<End>& to, IoThread::Task task) {
  if (lent) {
    to->loop.RunOrPost(std::move(task), to);
  } else {
    to->loop.Post(std::move(task));
  }
}

}  // namespace

struct InprocHub::Names {
  struct Peer {
    std::string endpoint;
    std::shared_ptr<ClientEnd> end;
  };
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<ServerEnd>> servers;  // null: bound but not started
  std::map<PeerId, Peer> peers;
  PeerId last_peer = 0;

  // Gives the client a new connection id, so that answers to the old one are dropped.
  PeerId ConnectLocked(const std::string& endpoint, const std::shared_ptr<ClientEnd>& end) {
    peers[++last_peer] = {endpoint, end};
    const auto it = servers.find(endpoint);
    if (it != servers.end() && it->second != nullptr) {
      end->loop.Post([client = end.get()] { client->on_connect(); });
    }
    return last_peer;
  }
};

namespace {

using Names = InprocHub::Names;

class InprocServer final : public ServerTransport {
 public:
  InprocServer(std::shared_ptr<Names> names, std::string endpoint)
      : names_(std::move(names)), endpoint_(std::move(endpoint)) {}
  ~InprocServer() override {
    {
      const std::lock_guard lock(names_->mutex);
      names_->servers.erase(endpoint_);
    }
    end_->loop.Stop();
  }

  Status Start(OnMessage on_message) override {
    end_->on_message = std::move(on_message);
    end_->loop.Start();
    const std::lock_guard lock(names_->mutex);
    names_->servers[endpoint_] = end_;
    for (auto& [id, peer] : names_->peers) {
      if (peer.endpoint != endpoint_) continue;
      peer.end->loop.Post([client = peer.end.get()] { client->on_connect(); });
    }
    return Status::Ok();
  }

  void Send(PeerId peer, Message message) override {
    std::shared_ptr<ClientEnd> client;
    {
      const std::lock_guard lock(names_->mutex);
      const auto it = names_->peers.find(peer);
      if (it == names_->peers.end()) return;
      client = it->second.end;
    }
    end_->sent.fetch_add(1, std::memory_order_relaxed);
    HandOver(client, [to = client.get(), message = std::move(message)]() mutable {
      to->on_message(std::move(message));
    });
  }

  void RunAfter(Duration delay, std::function<void()> task) override {
    end_->loop.RunAfter(delay, std::move(task));
  }
  [[nodiscard]] const std::string& endpoint() const override { return endpoint_; }
  [[nodiscard]] TransportCounters Counters() const override {
    return {end_->received.load(), end_->sent.load(), end_->malformed.load()};
  }

 private:
  std::shared_ptr<Names> names_;
  std::string endpoint_;
  std::shared_ptr<ServerEnd> end_ = std::make_shared<ServerEnd>();
};

class InprocClient final : public ClientTransport {
 public:
  InprocClient(std::shared_ptr<Names> names, std::string endpoint)
      : names_(std::move(names)), endpoint_(std::move(endpoint)) {}
  ~InprocClient() override {
    {
      const std::lock_guard lock(names_->mutex);
      names_->peers.erase(id_);
    }
    end_->loop.Stop();
  }

  Status Start(OnMessage on_message, OnConnect on_connect) override {
    end_->on_message = std::move(on_message);
    end_->on_connect = std::move(on_connect);
    end_->loop.Start();
    const std::lock_guard lock(names_->mutex);
    id_ = names_->ConnectLocked(endpoint_, end_);
    return Status::Ok();
  }

  void Send(Message message) override {
    std::shared_ptr<ServerEnd> server;
    PeerId id = 0;
    {
      const std::lock_guard lock(names_->mutex);
      const auto it = names_->servers.find(endpoint_);
      if (it == names_->servers.end() || it->second == nullptr) return;
      server = it->second;
      id = id_;
    }
    HandOver(server, [to = server.get(), id, message = std::move(message)]() mutable {
      to->received.fetch_add(1, std::memory_order_relaxed);
      if (!DecodeEnvelope(Direction::kToServer, message.header).ok()) {
        to->malformed.fetch_add(1, std::memory_order_relaxed);
        return;
      }
      to->on_message(id, std::move(message));
    });
  }

  void Reset() override {
    const std::lock_guard lock(names_->mutex);
    names_->peers.erase(id_);
    id_ = names_->ConnectLocked(endpoint_, end_);
  }
  void RunAfter(Duration delay, std::function<void()> task) override {
    end_->loop.RunAfter(delay, std::move(task));
  }

 private:
  std::shared_ptr<Names> names_;
  std::string endpoint_;
  PeerId id_ = 0;
  std::shared_ptr<ClientEnd> end_ = std::make_shared<ClientEnd>();
};

}  // namespace

LendThread::LendThread() : before_(std::exchange(lent, true)) {}
LendThread::~LendThread() {
  lent = before_;
}

InprocHub::InprocHub() : names_(std::make_shared<Names>()) {}
InprocHub::~InprocHub() = default;

Result<std::unique_ptr<ServerTransport>> InprocHub::Listen(const std::string& endpoint) {
  const std::lock_guard lock(names_->mutex);
  if (!names_->servers.emplace(endpoint, nullptr).second) {
    return {ErrorCode::kBusy, "cannot listen on " + endpoint + ": already in use"};
  }
  return std::unique_ptr<ServerTransport>(new InprocServer(names_, endpoint));
}

std::unique_ptr<ClientTransport> InprocHub::Dial(const std::string& endpoint) {
  return std::make_unique<InprocClient>(names_, endpoint);
}

}  // namespace weir::net
