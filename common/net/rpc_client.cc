#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/net/envelope.h"
#include "common/net/rpc.h"
#include "common/wire/rpc.pb.h"

namespace weir::net {
namespace {

constexpr Duration kFirstBackoff = std::chrono::milliseconds(1);
constexpr Duration kLongestBackoff = std::chrono::milliseconds(50);
// After a reconnect: so many requests go out again at once, twice as many after the pause, and so
// on. A connection that breaks sooner than kSound halves the first and doubles the second.
constexpr size_t kFirstResends = 32;
constexpr Duration kResendPause = std::chrono::milliseconds(1);
constexpr Duration kLongestResendPause = std::chrono::milliseconds(32);
constexpr Duration kSound = std::chrono::seconds(1);
// Acknowledgements that one message carries at most; the ping takes along what is left.
constexpr size_t kMostAcks = 512;
// Records of calls that have ended, kept for the next ones.
constexpr size_t kMostSpare = 64;

// The clients of a process ping at the same moments, which wake it once for all of them.
constexpr Duration kPingGrid = std::chrono::milliseconds(250);
// A new connection on which the server has not spoken: all that is outstanding waits for that.
constexpr Duration kPingUnproven = std::chrono::milliseconds(500);

TimePoint Later(TimePoint now, Duration delay) {
  return delay > TimePoint::Max() - now ? TimePoint::Max() : now + delay;
}

class Client final : public RpcClient {
 public:
  Client(std::unique_ptr<ClientTransport> transport, Clock& clock, std::string endpoint,
         const Options& options)
      : clock_(clock),
        endpoint_(std::move(endpoint)),
        options_(options),
        last_id_(options.ids_above),
        reserved_(options.reserved_ids.begin(), options.reserved_ids.end()),
        unrepeatable_(reserved_),
        next_ping_(clock.Now()),
        patient_until_(Later(clock.Now(), options.peer_timeout)),
        transport_(std::move(transport)) {}
  ~Client() override;

  Status Start();
  void Call(uint32_t method, std::string body, Buffer payload, const CallOptions& options,
            Callback callback) override;
  uint64_t ReserveId() override;
  void FreeId(uint64_t id) override;
  [[nodiscard]] bool connected() const override;
  [[nodiscard]] Duration silence() const override;

 private:
  struct Pending {
    wire::RpcHeader header;
    Buffer payload;
    Callback callback;
    std::shared_ptr<std::string> error_body;
    TimePoint deadline;
    TimePoint resend_at;       // when it goes out again, for whichever reason
    Duration backoff{0};       // of the last refusal; 0: none yet
    Duration resend_delay{0};  // of the next resend without an answer
    uint64_t connection = 0;   // the one it was last sent on; 0: none
  };
  using Calls = std::map<uint64_t, Pending>;
  // Callbacks run after the lock is released.
  using Done = std::vector<std::pair<Callback, Result<Reply>>>;

  void OnMessage(Message message);
  void OnConnect();
  void OnTimer();

  void HeardLocked(uint64_t incarnation);
  void OnReplyLocked(wire::RpcHeader header, Buffer payload, Done* done);
  void BeginResendsLocked(TimePoint now);
  void ResendSomeLocked(TimePoint now);
  void SendLocked(Pending& call);
  Message StampedLocked(Pending& call);
  void SendPingLocked();
  void StampLocked(wire::RpcHeader* header);
  void ScheduleLocked(uint64_t id, Pending& call, TimePoint at);
  Pending& NewCallLocked(uint64_t id);
  Callback FinishLocked(Calls::iterator it);
  void ExpireLocked(TimePoint now, Done* done);
  void ArmLocked();
  [[nodiscard]] TimePoint PingAt(TimePoint heard) const;
  [[nodiscard]] bool ConnectedLocked() const;
  [[nodiscard]] Status TimeoutLocked(const Pending& call) const;
  static void Run(Done done);

  Clock& clock_;
  const std::string endpoint_;
  const Options options_;

  mutable std::mutex mutex_;
  bool closing_ = false;
  uint64_t last_id_;
  Calls calls_;
  std::vector<Calls::node_type> spare_;  // of calls that have ended
  std::set<uint64_t> reserved_;          // until FreeId
  std::set<uint64_t> unrepeatable_;      // those, and ids of calls_ that are not idempotent
  std::set<std::pair<TimePoint, uint64_t>> deadlines_;
  std::set<std::pair<TimePoint, uint64_t>> resends_;
  std::vector<uint64_t> acks_;
  uint64_t connection_ = 0;  // counts connections; 0: none yet
  bool proven_ = false;      // the server has spoken on this connection
  uint64_t incarnation_ = 0;
  TimePoint proven_at_;  // the last time a connection was
  size_t first_resends_ = kFirstResends;
  Duration resend_pause_ = kResendPause;
  size_t resends_at_once_ = 0;
  uint64_t resent_up_to_ = 0;                  // ids; those below had their turn on this connection
  TimePoint next_resends_ = TimePoint::Max();  // Max: nothing is left to send again
  std::optional<TimePoint> last_heard_;
  bool resting_ = false;  // nothing is asked, and the server was there when it answered last
  TimePoint next_ping_;
  TimePoint patient_until_;  // redial if nothing was heard by then
  TimePoint armed_ = TimePoint::Max();
  std::unique_ptr<ClientTransport> transport_;
};

Status Client::Start() {
  WEIR_RETURN_IF_ERROR(
      transport_->Start([this](Message m) { OnMessage(std::move(m)); }, [this] { OnConnect(); }));
  const std::lock_guard lock(mutex_);
  ArmLocked();
  return Status::Ok();
}

Client::~Client() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  transport_.reset();  // not under the lock: its thread may be waiting for it
  Done done;
  for (auto& [id, call] : calls_) {
    done.emplace_back(std::move(call.callback),
                      Status(ErrorCode::kCancelled, "the connection to " + endpoint_ + " closes"));
  }
  calls_.clear();
  Run(std::move(done));
}

void Client::Call(uint32_t method, std::string body, Buffer payload, const CallOptions& options,
                  Callback callback) {
  Status refused;
  std::optional<Message> message;
  {
    const std::lock_guard lock(mutex_);
    // Room for the other fields of the header, acknowledgements included.
    constexpr size_t kMaxBody = kMaxHeaderBytes - 16UL * 1024;
    if (closing_) {
      refused = {ErrorCode::kCancelled, "the connection to " + endpoint_ + " closes"};
    } else if (body.size() > kMaxBody || payload.size() > kMaxPayloadBytes) {
      refused = {ErrorCode::kTooBig, "request " + std::to_string(method) + " to " + endpoint_ +
                                         " is over the limit (body " + std::to_string(kMaxBody) +
                                         ", payload " + std::to_string(kMaxPayloadBytes) +
                                         " bytes); send it in pieces"};
    } else {
      const uint64_t id = options.reserved_id != 0 ? options.reserved_id : ++last_id_;
      Pending& call = NewCallLocked(id);
      call.header.set_method(method);
      call.header.set_session(options_.session);
      call.header.set_request_id(id);
      call.header.set_idempotent(options.idempotent);
      call.header.set_body(std::move(body));
      call.payload = std::move(payload);
      call.callback = std::move(callback);
      call.error_body = options.error_body;
      call.deadline = Later(clock_.Now(), options.timeout);
      call.resend_at = TimePoint::Max();
      call.resend_delay = options_.resend_interval;
      if (resting_) HeardLocked(incarnation_);  // its silence meanwhile says nothing
      if (!options.idempotent) unrepeatable_.insert(id);
      if (call.deadline != TimePoint::Max()) deadlines_.emplace(call.deadline, id);
      if (connection_ != 0) message = StampedLocked(call);
      ArmLocked();
    }
  }
  // Not under the lock: a receiver in this process may work on it here and now.
  if (message) transport_->Send(*std::move(message));
  // NOLINTNEXTLINE(bugprone-use-after-move): kept only when not refused
  if (!refused.ok()) callback(refused);
}

uint64_t Client::ReserveId() {
  const std::lock_guard lock(mutex_);
  const uint64_t id = ++last_id_;
  reserved_.insert(id);
  unrepeatable_.insert(id);
  return id;
}

void Client::FreeId(uint64_t id) {
  const std::lock_guard lock(mutex_);
  if (reserved_.erase(id) == 0 || calls_.contains(id)) return;
  if (unrepeatable_.erase(id) != 0) acks_.push_back(id);
}

bool Client::connected() const {
  const std::lock_guard lock(mutex_);
  return ConnectedLocked();
}

Duration Client::silence() const {
  const std::lock_guard lock(mutex_);
  return last_heard_ ? clock_.Now() - *last_heard_ : Duration::max();
}

TimePoint Client::PingAt(TimePoint heard) const {
  const TimePoint latest = Later(heard, options_.ping_after);
  if (latest == TimePoint::Max()) return latest;
  const TimePoint together{latest.ns - latest.ns % kPingGrid.count()};
  return std::max(together, heard + options_.ping_after / 2);
}

bool Client::ConnectedLocked() const {
  return last_heard_ && !closing_ && !transport_->broken() &&
         (resting_ || clock_.Now() - *last_heard_ < options_.peer_timeout);
}

void Client::OnConnect() {
  const std::lock_guard lock(mutex_);
  if (closing_) return;
  ++connection_;
  proven_ = false;
  resting_ = false;
  next_resends_ = TimePoint::Max();
  // What is outstanding goes out when the server has spoken: it may not live long enough to read
  // megabytes, and its incarnation decides whether they are news to it.
  SendPingLocked();
  next_ping_ = Later(clock_.Now(), kPingUnproven);
  // Who has rested has waited for nothing: a peer that says nothing is given up like any other.
  if (patient_until_ == TimePoint::Max()) {
    patient_until_ = Later(clock_.Now(), options_.peer_timeout);
  }
  ArmLocked();
}

void Client::OnMessage(Message message) {
  wire::RpcHeader header;
  bool payload_matches = false;
  const Status decoded = DecodeFrame(Direction::kToClient, message.header, message.payload.size(),
                                     &header, &payload_matches);
  if (!decoded.ok() || header.session() != options_.session) return;
  Done done;
  {
    const std::lock_guard lock(mutex_);
    if (closing_) return;
    HeardLocked(header.incarnation());
    if (header.kind() == wire::RpcHeader::REPLY && payload_matches) {
      OnReplyLocked(std::move(header), std::move(message.payload), &done);
    }
    ArmLocked();
  }
  Run(std::move(done));
}

void Client::HeardLocked(uint64_t incarnation) {
  const TimePoint now = clock_.Now();
  last_heard_ = now;
  resting_ = false;
  next_ping_ = PingAt(now);
  patient_until_ = Later(now, options_.peer_timeout);
  // A timer that would find nothing to do wakes the process: it is put off, now and then.
  if (armed_ < next_ping_ && armed_ - now < options_.ping_after / 2) {
    armed_ = TimePoint::Max();
    ArmLocked();
  }
  if (incarnation != incarnation_) {
    if (incarnation_ != 0 && proven_) ++connection_;  // replaced without a sign of the transport
    incarnation_ = incarnation;
  } else if (proven_) {
    return;
  }
  if (connection_ == 0) connection_ = 1;
  proven_ = true;
  BeginResendsLocked(now);
}

void Client::BeginResendsLocked(TimePoint now) {
  const bool again = proven_at_ != TimePoint() && now - proven_at_ < kSound;
  first_resends_ = again ? std::max<size_t>(first_resends_ / 2, 1) : kFirstResends;
  resend_pause_ = again ? std::min(2 * resend_pause_, kLongestResendPause) : kResendPause;
  proven_at_ = now;
  resends_at_once_ = first_resends_;
  resent_up_to_ = 0;
  ResendSomeLocked(now);
}

void Client::ResendSomeLocked(TimePoint now) {
  next_resends_ = TimePoint::Max();
  size_t left = resends_at_once_;
  for (auto it = calls_.lower_bound(resent_up_to_); it != calls_.end(); ++it) {
    if (it->second.connection == connection_) continue;
    if (left == 0) {
      resent_up_to_ = it->first;
      resends_at_once_ *= 2;
      next_resends_ = Later(now, resend_pause_);
      return;
    }
    // What another connection lost says nothing of this one.
    it->second.resend_delay = options_.resend_interval;
    SendLocked(it->second);
    --left;
  }
}

void Client::OnReplyLocked(wire::RpcHeader header, Buffer payload, Done* done) {
  const auto it = calls_.find(header.request_id());
  if (it == calls_.end()) return;  // answered before, or given up
  Pending& call = it->second;
  if (header.retry_later()) {
    call.backoff =
        call.backoff.count() == 0 ? kFirstBackoff : std::min(2 * call.backoff, kLongestBackoff);
    ScheduleLocked(it->first, call, Later(clock_.Now(), call.backoff));
    return;
  }
  const auto code = static_cast<ErrorCode>(header.status());
  if (code != ErrorCode::kOk && call.error_body != nullptr) {
    *call.error_body = std::move(*header.mutable_body());
  }
  Callback callback = FinishLocked(it);
  if (code == ErrorCode::kOk) {
    done->emplace_back(std::move(callback),
                       Reply{std::move(*header.mutable_body()), std::move(payload)});
  } else {
    done->emplace_back(std::move(callback), Status(code, std::move(*header.mutable_error())));
  }
}

Client::Pending& Client::NewCallLocked(uint64_t id) {
  if (spare_.empty()) return calls_[id];
  Calls::node_type node = std::move(spare_.back());
  spare_.pop_back();
  node.key() = id;
  node.mapped() = {};
  return calls_.insert(calls_.end(), std::move(node))->second;
}

RpcClient::Callback Client::FinishLocked(Calls::iterator it) {
  const uint64_t id = it->first;
  Pending& call = it->second;
  if (call.deadline != TimePoint::Max()) deadlines_.erase({call.deadline, id});
  if (call.resend_at != TimePoint::Max()) resends_.erase({call.resend_at, id});
  if (!reserved_.contains(id) && unrepeatable_.erase(id) != 0) acks_.push_back(id);
  Callback callback = std::move(call.callback);
  call.payload = {};
  // Freeing it here takes a lock of the allocator, which has it from another thread, and the caller
  // still waits for this answer.
  if (spare_.size() < kMostSpare) {
    spare_.push_back(calls_.extract(it));
  } else {
    calls_.erase(it);
  }
  return callback;
}

void Client::ScheduleLocked(uint64_t id, Pending& call, TimePoint at) {
  if (call.resend_at != TimePoint::Max()) resends_.erase({call.resend_at, id});
  call.resend_at = at;
  if (at != TimePoint::Max()) resends_.emplace(at, id);
}

void Client::StampLocked(wire::RpcHeader* header) {
  header->set_acked_below(unrepeatable_.empty() ? last_id_ + 1 : *unrepeatable_.begin());
  header->clear_acked();
  const size_t count = std::min(acks_.size(), kMostAcks);
  for (size_t i = acks_.size() - count; i < acks_.size(); ++i) header->add_acked(acks_[i]);
  acks_.resize(acks_.size() - count);
}

void Client::SendLocked(Pending& call) {
  transport_->Send(StampedLocked(call));
}

// The message as it goes out now.
Message Client::StampedLocked(Pending& call) {
  const TimePoint now = clock_.Now();
  StampLocked(&call.header);
  if (call.deadline != TimePoint::Max()) {
    call.header.set_timeout_us(
        static_cast<uint64_t>(std::max<int64_t>((call.deadline - now).count() / 1000, 1)));
  }
  call.connection = connection_;
  ScheduleLocked(call.header.request_id(), call, Later(now, call.resend_delay));
  call.resend_delay = std::min(call.resend_delay, Duration::max() / 4) * 2;
  return {*EncodeFrame(Direction::kToServer, call.header, call.payload.size()), call.payload};
}

void Client::SendPingLocked() {
  wire::RpcHeader ping;
  ping.set_kind(wire::RpcHeader::PING);
  ping.set_session(options_.session);
  StampLocked(&ping);
  transport_->Send({*EncodeFrame(Direction::kToServer, ping, 0), {}});
}

void Client::OnTimer() {
  Done done;
  {
    const std::lock_guard lock(mutex_);
    if (closing_) return;
    armed_ = TimePoint::Max();
    const TimePoint now = clock_.Now();
    ExpireLocked(now, &done);
    if (next_resends_ <= now) ResendSomeLocked(now);
    while (!resends_.empty() && resends_.begin()->first <= now) {
      SendLocked(calls_.at(resends_.begin()->second));
    }
    if (next_ping_ <= now && calls_.empty() && acks_.empty() && proven_ && ConnectedLocked()) {
      resting_ = true;
      next_ping_ = patient_until_ = TimePoint::Max();
    }
    if (next_ping_ <= now) {
      next_ping_ = proven_ ? PingAt(now) : Later(now, kPingUnproven);
      if (connection_ != 0) SendPingLocked();
    }
    if (patient_until_ <= now) {
      patient_until_ = Later(now, options_.peer_timeout);
      transport_->Reset();
    }
    ArmLocked();
  }
  Run(std::move(done));
}

void Client::ExpireLocked(TimePoint now, Done* done) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const auto it = calls_.find(deadlines_.begin()->second);
    const Status status = TimeoutLocked(it->second);
    done->emplace_back(FinishLocked(it), status);
  }
}

Status Client::TimeoutLocked(const Pending& call) const {
  if (!ConnectedLocked()) {
    return {ErrorCode::kUnreachable,
            "no contact with " + endpoint_ + "; is its daemon running and the network up?"};
  }
  return {ErrorCode::kTimedOut, endpoint_ + " lives but did not answer request " +
                                    std::to_string(call.header.method()) + " in time"};
}

void Client::ArmLocked() {
  TimePoint next = std::min({next_ping_, patient_until_, next_resends_});
  if (!deadlines_.empty()) next = std::min(next, deadlines_.begin()->first);
  if (!resends_.empty()) next = std::min(next, resends_.begin()->first);
  if (next >= armed_) return;  // that one comes first and arms again
  armed_ = next;
  transport_->RunAfter(next - clock_.Now(), [this] { OnTimer(); });
}

void Client::Run(Done done) {
  for (auto& [callback, result] : done) callback(std::move(result));
}

}  // namespace

Result<std::unique_ptr<RpcClient>> RpcClient::Connect(Network& network, Clock& clock,
                                                      const std::string& endpoint,
                                                      const Options& options) {
  WEIR_ASSIGN_OR_RETURN(auto transport,
                        options.control ? network.DialControl(endpoint) : network.Dial(endpoint));
  auto client = std::make_unique<Client>(std::move(transport), clock, endpoint, options);
  WEIR_RETURN_IF_ERROR(client->Start());
  return std::unique_ptr<RpcClient>(std::move(client));
}

Result<Reply> RpcClient::CallAndWait(uint32_t method, std::string body, Buffer payload,
                                     const CallOptions& options) {
  struct Waiter {
    std::mutex mutex;
    std::condition_variable done;
    std::optional<Result<Reply>> result;
  };
  // Shared: the callback still holds the mutex when the waiter is free to go.
  auto waiter = std::make_shared<Waiter>();
  Call(method, std::move(body), std::move(payload), options, [waiter](Result<Reply> result) {
    const std::lock_guard lock(waiter->mutex);
    waiter->result = std::move(result);
    waiter->done.notify_one();
  });
  std::unique_lock lock(waiter->mutex);
  waiter->done.wait(lock, [&] { return waiter->result.has_value(); });
  return *std::move(waiter->result);
}

}  // namespace weir::net
