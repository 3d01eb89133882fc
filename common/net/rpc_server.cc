#include <atomic>
#include <condition_variable>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/log.h"
#include "common/base/prng.h"
#include "common/net/envelope.h"
#include "common/net/hello.h"
#include "common/net/rpc.h"
#include "common/net/session_memory.h"
#include "common/wire/rpc.pb.h"

namespace weir::net {
namespace {

constexpr Duration kSessionIdle = std::chrono::minutes(10);
constexpr Duration kSweepInterval = std::chrono::minutes(1);

// Shared with every unanswered call, which may outlive the server.
class ServerCore : public std::enable_shared_from_this<ServerCore> {
 public:
  ServerCore(std::unique_ptr<ServerTransport> transport, Clock& clock, RpcServer::Handler handler,
             const RpcServerOptions& options)
      : clock_(clock),
        handler_(std::move(handler)),
        options_(options),
        incarnation_(RandomSeed() | 1),
        transport_(std::move(transport)) {}

  Status Start() {
    WEIR_RETURN_IF_ERROR(transport_->Start(
        [this](PeerId peer, Message message) { OnMessage(peer, std::move(message)); }));
    ArmSweep();
    return Status::Ok();
  }
  void Stop();
  void Respond(const IncomingCall& call, size_t bytes, const Status& status, std::string body,
               Buffer payload);
  // As if it had never come: its client asks again.
  void Drop(const IncomingCall& call, size_t bytes);
  [[nodiscard]] const std::string& endpoint() const { return transport_->endpoint(); }

 private:
  void OnMessage(PeerId peer, Message message);
  void OnHello(PeerId peer, const wire::RpcHeader& header);
  void OnPing(PeerId peer, const wire::RpcHeader& header);
  void OnRequest(PeerId peer, wire::RpcHeader header, Buffer payload);
  void Refuse(PeerId peer, const wire::RpcHeader& request, uint16_t version);
  [[nodiscard]] wire::RpcHeader MakePong(const wire::RpcHeader& ping) const;
  Message MakeReply(uint64_t session, uint64_t id, const Status& status, std::string body,
                    Buffer payload) const;
  void ReplyTo(PeerId peer, const wire::RpcHeader& request, const Status& status);
  [[nodiscard]] Message MakeRetryLater(uint64_t session, uint64_t id, const char* why) const;
  // Counted in sending_ by the caller.
  void SendToAll(const std::vector<PeerId>& peers, const Message& reply);
  void ArmSweep();
  void Sweep();

  Clock& clock_;
  RpcServer::Handler handler_;
  const RpcServerOptions options_;
  const uint64_t incarnation_;

  bool refused_ = false;  // a peer of another version; of the transport's thread

  std::mutex mutex_;
  std::condition_variable sent_;
  bool stopped_ = false;
  int sending_ = 0;  // answers on their way to transport_, which must stay
  uint64_t queued_bytes_ = 0;
  std::unordered_map<uint64_t, SessionMemory> sessions_;  // by sub-session
  std::unique_ptr<ServerTransport> transport_;
};

class Call final : public IncomingCall {
 public:
  Call(std::shared_ptr<ServerCore> core, wire::RpcHeader header, Buffer payload)
      : core_(std::move(core)) {
    method_ = header.method();
    sub_session_ = header.session();
    request_id_ = header.request_id();
    acked_below_ = header.acked_below();
    body_ = std::move(*header.mutable_body());
    payload_ = std::move(payload);
    bytes_ = body_.size() + payload_.size();
  }
  ~Call() override {
    if (!answered_.exchange(true)) core_->Drop(*this, bytes_);
  }
  using IncomingCall::Respond;
  void Respond(Status status, std::string body, Buffer payload) override {
    WEIR_CHECK(!answered_.exchange(true), "a call is answered twice");
    core_->Respond(*this, bytes_, status, std::move(body), std::move(payload));
  }

 private:
  std::shared_ptr<ServerCore> core_;
  size_t bytes_ = 0;
  std::atomic<bool> answered_{false};
};

void ServerCore::Stop() {
  {
    std::unique_lock lock(mutex_);
    stopped_ = true;
    sent_.wait(lock, [this] { return sending_ == 0; });
  }
  // Not under the lock: the I/O thread may be waiting for it in OnMessage. Nobody else looks at
  // the transport once stopped_ is set.
  transport_.reset();
  handler_ = nullptr;
}

void ServerCore::OnMessage(PeerId peer, Message message) {
  wire::RpcHeader header;
  bool payload_matches = false;
  uint16_t version = 0;
  const Status decoded = DecodeFrame(Direction::kToServer, message.header, message.payload.size(),
                                     &header, &payload_matches, &version);
  if (!decoded.ok()) return;
  if (header.kind() == wire::RpcHeader::HELLO) return OnHello(peer, header);
  if (version != kProtocolVersion) return Refuse(peer, header, version);
  if (header.kind() == wire::RpcHeader::PING) return OnPing(peer, header);
  if (header.kind() != wire::RpcHeader::REQUEST || !payload_matches) {
    const std::lock_guard lock(mutex_);
    const char* why = payload_matches ? "a server takes requests and pings only"
                                      : "the payload is not as long as its header says";
    if (!stopped_) ReplyTo(peer, header, {ErrorCode::kBadMessage, why});
    return;
  }
  OnRequest(peer, std::move(header), std::move(message.payload));
}

void ServerCore::OnHello(PeerId peer, const wire::RpcHeader& header) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  transport_->Send(peer, EncodeHelloAnswer({header.session(), header.request_id()}, incarnation_,
                                           transport_->streams()));
}

void ServerCore::OnPing(PeerId peer, const wire::RpcHeader& header) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  const auto it = sessions_.find(header.session());
  if (it != sessions_.end()) {
    it->second.last_heard = clock_.Now();
    it->second.Acknowledge(header.acked_below(), {header.acked().begin(), header.acked().end()});
  }
  transport_->Send(peer, {*EncodeFrame(Direction::kToClient, MakePong(header), 0), {}});
}

wire::RpcHeader ServerCore::MakePong(const wire::RpcHeader& ping) const {
  wire::RpcHeader pong;
  pong.set_kind(wire::RpcHeader::PONG);
  pong.set_session(ping.session());
  pong.set_incarnation(incarnation_);
  return pong;
}

// In words of the peer's own version, which has no HELLO. It sends no request before its ping was
// answered.
void ServerCore::Refuse(PeerId peer, const wire::RpcHeader& request, uint16_t version) {
  const bool ping = request.kind() == wire::RpcHeader::PING;
  if (!ping && request.kind() != wire::RpcHeader::REQUEST) return;
  wire::RpcHeader answer = MakePong(request);
  if (!ping) {
    const std::string why = "this server speaks wire version " + std::to_string(kProtocolVersion) +
                            ", its client version " + std::to_string(version) +
                            "; install the same release on both";
    answer.set_kind(wire::RpcHeader::REPLY);
    answer.set_request_id(request.request_id());
    answer.set_status(static_cast<uint32_t>(ErrorCode::kNotSupported));
    answer.set_error(why);
    if (!std::exchange(refused_, true)) WEIR_LOG_ERROR("a client was refused: {}", why);
  }
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  transport_->Send(peer, {*EncodeFrame(Direction::kToClient, answer, 0, version), {}});
}

void ServerCore::OnRequest(PeerId peer, wire::RpcHeader header, Buffer payload) {
  const uint64_t id = header.request_id();
  const size_t bytes = header.body().size() + payload.size();
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    auto [it, created] =
        sessions_.try_emplace(header.session(), options_.remembered_replies_per_session);
    SessionMemory& session = it->second;
    session.last_heard = clock_.Now();
    session.Acknowledge(header.acked_below(), {header.acked().begin(), header.acked().end()});
    const Message* answer = nullptr;
    switch (session.Arrive(id, peer, header.idempotent(), &answer)) {
      case SessionMemory::Seen::kNew:
        break;
      case SessionMemory::Seen::kAnswered:
        transport_->Send(peer, *answer);
        return;
      case SessionMemory::Seen::kForgotten:
        ReplyTo(peer, header,
                {ErrorCode::kCancelled, "the request was applied, but its answer is forgotten"});
        return;
      case SessionMemory::Seen::kInProgress:
      case SessionMemory::Seen::kObsolete:
        return;
    }
    // One request always fits, whatever its size, or it would never be served.
    if (queued_bytes_ != 0 && queued_bytes_ + bytes > options_.max_queued_bytes) {
      session.Retract(id);
      transport_->Send(peer, MakeRetryLater(header.session(), id, "the server's queue is full"));
      return;
    }
    queued_bytes_ += bytes;
  }
  handler_(std::make_shared<Call>(shared_from_this(), std::move(header), std::move(payload)));
}

Message ServerCore::MakeReply(uint64_t session, uint64_t id, const Status& status, std::string body,
                              Buffer payload) const {
  wire::RpcHeader header;
  header.set_kind(wire::RpcHeader::REPLY);
  header.set_session(session);
  header.set_request_id(id);
  header.set_incarnation(incarnation_);
  header.set_status(static_cast<uint32_t>(status.code()));
  header.set_error(status.message());
  header.set_body(std::move(body));
  auto frame = EncodeFrame(Direction::kToClient, header, payload.size());
  if (frame.ok()) return {*std::move(frame), std::move(payload)};
  header.clear_body();
  header.set_status(static_cast<uint32_t>(frame.code()));
  header.set_error("the answer does not fit: " + frame.status().message());
  return {*EncodeFrame(Direction::kToClient, header, 0), {}};
}

void ServerCore::ReplyTo(PeerId peer, const wire::RpcHeader& request, const Status& status) {
  transport_->Send(peer, MakeReply(request.session(), request.request_id(), status, {}, {}));
}

Message ServerCore::MakeRetryLater(uint64_t session, uint64_t id, const char* why) const {
  wire::RpcHeader header;
  header.set_kind(wire::RpcHeader::REPLY);
  header.set_session(session);
  header.set_request_id(id);
  header.set_incarnation(incarnation_);
  header.set_status(static_cast<uint32_t>(ErrorCode::kBusy));
  header.set_error(why);
  header.set_retry_later(true);
  return {*EncodeFrame(Direction::kToClient, header, 0), {}};
}

void ServerCore::Respond(const IncomingCall& call, size_t bytes, const Status& status,
                         std::string body, Buffer payload) {
  Message reply =
      MakeReply(call.sub_session(), call.request_id(), status, std::move(body), std::move(payload));
  std::vector<PeerId> peers;
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    queued_bytes_ -= bytes;
    const auto it = sessions_.find(call.sub_session());
    WEIR_CHECK(it != sessions_.end(), "a session with an unanswered call was forgotten");
    peers = it->second.Finish(call.request_id(), reply);
    ++sending_;
  }
  SendToAll(peers, reply);
}

void ServerCore::Drop(const IncomingCall& call, size_t bytes) {
  const uint64_t session = call.sub_session();
  std::vector<PeerId> peers;
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    queued_bytes_ -= bytes;
    const auto it = sessions_.find(session);
    WEIR_CHECK(it != sessions_.end(), "a session with an unanswered call was forgotten");
    peers = it->second.Retract(call.request_id());
    ++sending_;
  }
  SendToAll(peers, MakeRetryLater(session, call.request_id(), "the request was dropped"));
}

// Not under the lock: a receiver in this process may work on it here and now.
void ServerCore::SendToAll(const std::vector<PeerId>& peers, const Message& reply) {
  for (const PeerId peer : peers) transport_->Send(peer, reply);
  const std::lock_guard lock(mutex_);
  if (--sending_ == 0 && stopped_) sent_.notify_all();
}

void ServerCore::ArmSweep() {
  transport_->RunAfter(kSweepInterval, [this] { Sweep(); });
}

void ServerCore::Sweep() {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  const TimePoint now = clock_.Now();
  std::erase_if(sessions_, [&](const auto& entry) {
    return !entry.second.HasInProgress() && now - entry.second.last_heard > kSessionIdle;
  });
  ArmSweep();
}

class Server final : public RpcServer {
 public:
  explicit Server(std::shared_ptr<ServerCore> core)
      : core_(std::move(core)), endpoint_(core_->endpoint()) {}
  ~Server() override { core_->Stop(); }
  [[nodiscard]] const std::string& endpoint() const override { return endpoint_; }

 private:
  std::shared_ptr<ServerCore> core_;
  std::string endpoint_;
};

}  // namespace

Result<std::unique_ptr<RpcServer>> RpcServer::Start(Network& network, Clock& clock,
                                                    const std::string& endpoint, Handler handler,
                                                    const RpcServerOptions& options) {
  WEIR_ASSIGN_OR_RETURN(auto transport, network.Listen(endpoint));
  auto core =
      std::make_shared<ServerCore>(std::move(transport), clock, std::move(handler), options);
  auto server = std::make_unique<Server>(core);
  WEIR_RETURN_IF_ERROR(core->Start());
  return std::unique_ptr<RpcServer>(std::move(server));
}

}  // namespace weir::net
