#include "client/remote/mds_client.h"

#include <algorithm>
#include <future>
#include <thread>

#include "client/remote/ordered_names.h"
#include "client/vfs/dir_cache.h"
#include "client/vfs/file_leases.h"
#include "common/net/sub_session.h"
#include "common/net/transport.h"
#include "common/placement/times_wire.h"
#include "common/wire/early_answers.h"
#include "common/wire/mds.pb.h"

namespace weir::client {
namespace {
// The MDS answers a watch at least this often, which also keeps the session's lease. Far more often
// than leases are believed without it.
constexpr uint32_t kWatchWaitMs = 500;
constexpr Duration kLossPatience = std::chrono::seconds(1);
// An answer that got lost is asked for again: without a session of its own a mount is evicted soon
// after a restart of the MDS, whatever else it asks for.
constexpr Duration kWatchTimeout = std::chrono::seconds(2);

static_assert(ReactorNetworks::kMost <= net::kMostConnections,
              "each reactor has a connection of one session to the MDS");

// What the mount tells or asks by itself, while the next of its kind may follow before the answer:
// those are heard in the order in which they were sent. A process waits for everything else.
bool KeepsOrder(uint32_t method) {
  switch (method) {
    case wire::MDS_OPEN_SESSION:
    case wire::MDS_CLOSE_SESSION:
    case wire::MDS_WATCH:
    case wire::MDS_RELEASE:
    case wire::MDS_YIELD:
    case wire::MDS_APPEND:
    case wire::MDS_GIVE_BACK:
    case wire::MDS_GROW:  // room that releases give back
    case wire::MDS_WROTE:
    case wire::MDS_SETATTR:  // not before a report of the file that nobody waits for
    case wire::MDS_ACCESSED:
    case wire::MDS_LOCK:
    case wire::MDS_LOCK_WAIT:
    case wire::MDS_LOCK_CANCEL:
    case wire::MDS_LOCK_TEST:
    case wire::MDS_LOCKS_SETTLED:
      return true;
    default:
      return false;
  }
}

// Inode that an answer has made, or 0: a CREATE may have opened one that was there, to which that
// does no harm.
uint64_t MadeBy(uint32_t method, const net::Reply& reply) {
  const bool makes =
      method == wire::MDS_CREATE || method == wire::MDS_TMPFILE || method == wire::MDS_MKNOD;
  wire::EntryReply entry;
  return makes && entry.ParseFromString(reply.body) ? entry.attr().inode() : 0;
}

}  // namespace

MdsClient::MdsClient(const ReactorNetworks& networks, Clock& clock, Options options, Events events)
    : networks_(networks),
      clock_(clock),
      options_(std::move(options)),
      events_(std::move(events)) {}

Result<std::unique_ptr<MdsClient>> MdsClient::Connect(const ReactorNetworks& networks, Clock& clock,
                                                      Options options, Events events) {
  std::unique_ptr<MdsClient> client(
      new MdsClient(networks, clock, std::move(options), std::move(events)));
  WEIR_ASSIGN_OR_RETURN(client->rpc_, client->Dial(0));
  return client;
}

Result<std::unique_ptr<net::RpcClient>> MdsClient::Dial(size_t channel) const {
  net::RpcClient::Options options;
  options.session = net::OnConnection(options_.session, static_cast<uint32_t>(channel));
  options.ids_above = options_.ids_above;
  if (channel == 0) options.reserved_ids = options_.reserved_ids;
  return net::RpcClient::Connect(networks_.at(channel), clock_, options_.endpoint, options);
}

size_t MdsClient::ChannelFor(uint32_t method) {
  const size_t here = networks_.Here();
  if (here == 0 || KeepsOrder(method)) return 0;
  channels_[here].wanted.store(true, std::memory_order_relaxed);
  const net::RpcClient* const own = RpcOf(here);
  return own != nullptr && own->connected() ? here : 0;
}

net::RpcClient* MdsClient::RpcOf(size_t channel) const {
  return channel == 0 ? rpc_.get() : channels_[channel].rpc.load(std::memory_order_acquire);
}

MdsClient::~MdsClient() {
  Stop();
}

MdsClient::Use::Use(MdsClient& client) : client_(client) {
  ++client_.users_;
  entered_ = !client_.closing_;
  if (!entered_) --client_.users_;
}

MdsClient::Use::~Use() {
  if (entered_) --client_.users_;
}

void MdsClient::Stop() {
  closing_ = true;
  // Whoever was let in before that hands a message over, and does not wait.
  while (users_ != 0) std::this_thread::yield();
  // Runs what is outstanding with kCancelled while the members still exist.
  for (Channel& channel : channels_) {
    channel.rpc = nullptr;
    channel.owned.reset();
  }
  // reset() would show them no client any more.
  const std::unique_ptr<net::RpcClient> last = std::move(rpc_);
}

wire::OpenSessionRequest MdsClient::SessionRequest(bool first) const {
  wire::OpenSessionRequest request;
  request.set_client_name(options_.client_name);
  request.set_subtree(options_.subtree);
  request.set_mount_class(options_.mount_class);
  request.set_exclusive(options_.exclusive);
  request.set_leases(options_.directories != nullptr);
  request.set_keeps(options_.keeps);
  request.set_repeats(options_.keeps && !first);
  request.set_ordered_within_ms(static_cast<uint32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(options_.ordered_within).count()));
  for (InodeId inode : events_.open_inodes()) request.add_open_inodes(inode.value);
  if (events_.kept_inodes != nullptr) {
    for (InodeId inode : events_.kept_inodes()) request.add_kept(inode.value);
  }
  if (events_.held_locks != nullptr) {
    for (wire::FileLock& lock : events_.held_locks()) *request.add_locks() = std::move(lock);
  }
  request.set_settles_locks(events_.on_lock_question != nullptr);
  request.set_resumes(first && options_.resumes);
  if (!first || options_.resumes)
    return request;  // his right to the class was checked when he mounted
  request.mutable_mounter()->set_uid(options_.mounter.uid);
  request.mutable_mounter()->set_gid(options_.mounter.gid);
  for (const gid_t group : options_.mounter_groups) request.mutable_mounter()->add_groups(group);
  return request;
}

Status MdsClient::TakeMap(MapPtr map) {
  {
    std::lock_guard lock(mutex_);
    if (map_ != nullptr && map->epoch < map_->epoch) return Status::Ok();
    map_ = map;
  }
  events_.on_map(std::move(map));
  return Status::Ok();
}

TimePoint MdsClient::Now() const {
  return options_.directories == nullptr ? TimePoint() : options_.directories->Now();
}

Status MdsClient::TakeSession(const std::string& body, TimePoint asked) {
  wire::OpenSessionReply reply;
  if (!reply.ParseFromString(body)) {
    return {ErrorCode::kBadMessage, "the MDS opened a session with a reply that cannot be read"};
  }
  WEIR_ASSIGN_OR_RETURN(ClusterMap map, weir::FromWire(reply.map()));
  root_ = reply.root_inode();
  lock_seq_ = 0;
  BeginLife(reply.life());
  if (reply.lost_locks_size() > 0 && events_.on_lost_locks != nullptr) {
    std::vector<InodeId> lost;
    for (const uint64_t inode : reply.lost_locks()) lost.emplace_back(inode);
    events_.on_lost_locks(lost);
  }
  if (options_.directories != nullptr) {
    options_.directories->BeginSession(reply.lease_epoch(), asked);
  }
  std::vector<InodeId> written;
  if (options_.files != nullptr) {
    written = options_.files->BeginSession(reply.lease_epoch(), asked);
  }
  const uint64_t tag_epoch = map.tag_epoch;
  WEIR_RETURN_IF_ERROR(TakeMap(std::make_shared<const ClusterMap>(std::move(map))));
  {
    std::lock_guard lock(mutex_);
    tag_epoch_ = tag_epoch;
  }
  events_.on_tags(tag_epoch);
  // After the map: it may say that they are lost.
  if (options_.files != nullptr) events_.on_lost_leases(written);
  return Status::Ok();
}

// What was kept of the life before is to be repeated.
void MdsClient::BeginLife(uint64_t life) {
  const std::lock_guard lock(mutex_);
  const uint64_t before = life_.exchange(life);
  if (!options_.keeps || before == 0 || before == life) return;
  std::vector<KeptRequests::Request> kept = kept_.TakeAll();
  unrepeated_.insert(unrepeated_.end(), kept.begin(), kept.end());
  options_.ordered->BeginLife();
}

Status MdsClient::Open() {
  net::CallOptions call;
  call.timeout = options_.connect_timeout;
  const TimePoint asked = Now();
  return TakeFirst(
      rpc_->CallAndWait(wire::MDS_OPEN_SESSION, SessionRequest(true).SerializeAsString(), {}, call),
      asked);
}

void MdsClient::OpenAsync(std::function<void(const Status&)> done) {
  net::CallOptions call;
  call.timeout = options_.connect_timeout;
  rpc_->Call(wire::MDS_OPEN_SESSION, SessionRequest(true).SerializeAsString(), {}, call,
             [this, asked = Now(), done = std::move(done)](const Result<net::Reply>& reply) {
               done(TakeFirst(reply, asked));
             });
}

Status MdsClient::TakeFirst(const Result<net::Reply>& reply, TimePoint asked) {
  if (!reply.ok()) return reply.status();
  WEIR_RETURN_IF_ERROR(TakeSession(reply->body, asked));
  if (!options_.resumes && !options_.mount_class.empty() &&
      map()->FindClass(options_.mount_class) == nullptr) {
    return {ErrorCode::kNotFound, "there is no class '" + options_.mount_class +
                                      "' to mount with; osdctl class create makes it"};
  }
  StartWatch();
  return Status::Ok();
}

void MdsClient::Close(Duration wait) {
  closing_ = true;
  if (!rpc_->connected()) return;
  net::CallOptions call;
  call.timeout = wait;
  (void)rpc_->CallAndWait(wire::MDS_CLOSE_SESSION, wire::Empty().SerializeAsString(), {}, call);
}

uint64_t MdsClient::ReserveId() {
  const Use use(*this);
  return use ? rpc_->ReserveId() : 0;
}

void MdsClient::FreeId(uint64_t id) {
  const Use use(*this);
  if (use) rpc_->FreeId(id);
}

bool MdsClient::connected() {
  const Use use(*this);
  return use && rpc_->connected();
}

Duration MdsClient::LossPatience() {
  const Use use(*this);
  if (!use) return Duration::zero();
  const Duration patience = std::min(kLossPatience, options_.timeout);
  if (rpc_->connected()) return patience;
  return std::max(patience - std::min(rpc_->silence(), patience), Duration::zero());
}

MapPtr MdsClient::map() const {
  std::lock_guard lock(mutex_);
  return map_;
}

void MdsClient::CallRaw(uint32_t method, const google::protobuf::MessageLite& request,
                        bool idempotent, RawCallback callback, std::optional<Duration> patience) {
  // Of a callback that ran with kCancelled, say.
  const Use use(*this);
  if (!use) return callback(Status(ErrorCode::kCancelled, "the mount is going away"));
  net::CallOptions call;
  call.timeout = patience.value_or(options_.timeout);
  call.idempotent = idempotent;
  const bool noted = !idempotent && options_.ordered_within > Duration::zero();
  const size_t channel = ChannelFor(method);
  std::string body = request.SerializeAsString();
  if (!noted) return RpcOf(channel)->Call(method, std::move(body), {}, call, std::move(callback));
  if (options_.keeps && wire::EarlyAnswerOf(method) == wire::EarlyAnswer::kAlways) {
    KeptRequests::Request kept;
    kept.channel = channel;
    kept.method = method;
    kept.id = RpcOf(channel)->ReserveId();
    kept.body = std::make_shared<const std::string>(std::move(body));
    return SendKept(std::move(kept), call, std::move(callback));
  }
  RpcOf(channel)->Call(method, std::move(body), {}, call,
                       [this, method, callback = std::move(callback)](Result<net::Reply> reply) {
                         wire::Ordered said;
                         if (reply.ok()) Note(method, *reply, &said);
                         callback(std::move(reply));
                       });
}

void MdsClient::SendKept(KeptRequests::Request kept, const net::CallOptions& call,
                         RawCallback callback) {
  net::CallOptions reserved = call;
  reserved.reserved_id = kept.id;
  net::RpcClient* const rpc = RpcOf(kept.channel);
  const uint32_t method = kept.method;
  std::string body = *kept.body;
  rpc->Call(method, std::move(body), {}, reserved,
            [this, kept = std::move(kept), call,
             callback = std::move(callback)](Result<net::Reply> reply) mutable {
              OnKept(std::move(kept), call, std::move(reply), callback);
            });
}

void MdsClient::OnKept(KeptRequests::Request kept, const net::CallOptions& call,
                       Result<net::Reply> reply, const RawCallback& callback) {
  const Use use(*this);
  if (!use) return callback(std::move(reply));
  const size_t channel = kept.channel;
  const uint64_t id = kept.id;
  uint64_t order = 0;
  {
    // With the lock, for what is kept is taken whole when another life begins.
    const std::lock_guard lock(mutex_);
    wire::Ordered said;
    order = reply.ok() ? Note(kept.method, *reply, &said) : 0;
    if (order != 0 && said.life() == life_) {
      kept.inode = MadeBy(kept.method, *reply);
      kept.stamp_ns = said.stamp_ns();
      kept_.Keep(order, kept);
      kept.body = nullptr;
    }
  }
  // An answer of the life before, read late: what was kept of that has been taken without it.
  // Nobody has heard of it.
  if (order != 0 && kept.body != nullptr) return SendKept(std::move(kept), call, callback);
  if (order == 0) RpcOf(channel)->FreeId(id);  // durable, or refused
  FreeDurable();
  callback(std::move(reply));
}

uint64_t MdsClient::Note(uint32_t method, const net::Reply& reply, wire::Ordered* said) const {
  wire::OrderedAnswer answer;
  if (!answer.ParseFromString(reply.body) || !answer.has_ordered()) return 0;
  *said = answer.ordered();
  if (options_.keeps && said->life() != life_) return said->order();  // see OnKept
  return options_.ordered->Heard(*said, InodeId(MadeBy(method, reply)));
}

void MdsClient::NoteDurable(const wire::Ordered& said) {
  {
    const std::lock_guard lock(mutex_);
    if (options_.keeps && said.life() != life_) return;
    (void)options_.ordered->Heard(said);
  }
  FreeDurable();
}

void MdsClient::FreeDurable() {
  const Use use(*this);
  if (!options_.keeps || !use) return;
  std::vector<KeptRequests::Request> durable;
  {
    const std::lock_guard lock(mutex_);
    durable = kept_.TakeDurable(options_.ordered->durable());
  }
  for (const KeptRequests::Request& done : durable) RpcOf(done.channel)->FreeId(done.id);
}

// One after the other: what the MDS has to load for one others could pass.
void MdsClient::Repeat(std::function<void(bool)> done) {
  const Use use(*this);
  if (!use) return;
  wire::ReplayRequest request;
  net::CallOptions call;
  call.timeout = options_.timeout;
  {
    const std::lock_guard lock(mutex_);
    if (!unrepeated_.empty()) {
      const KeptRequests::Request& next = unrepeated_.front();
      request.set_method(next.method);
      request.set_body(*next.body);
      request.set_inode(next.inode);
      request.set_stamp_ns(next.stamp_ns);
      request.set_connection(static_cast<uint32_t>(next.channel));
      request.set_request_id(next.id);
    }
  }
  if (request.request_id() == 0) return EndRepeat(std::move(done));
  rpc_->Call(wire::MDS_REPLAY, request.SerializeAsString(), {}, call,
             [this, done = std::move(done)](const Result<net::Reply>& reply) mutable {
               OnRepeated(reply, std::move(done));
             });
}

void MdsClient::OnRepeated(const Result<net::Reply>& reply, std::function<void(bool)> done) {
  const Use use(*this);
  if (!use) return;
  bool goes_on = false;
  {
    const std::lock_guard lock(mutex_);
    KeptRequests::Request& first = unrepeated_.front();
    wire::Ordered said;
    const uint64_t order = reply.ok() ? Note(first.method, *reply, &said) : 0;
    // It has begun anew meanwhile: so does this, when the session is open there.
    const bool again =
        reply.code() == ErrorCode::kStaleEpoch || (order != 0 && said.life() != life_);
    if (again) {
      std::vector<KeptRequests::Request> repeated = kept_.TakeAll();
      unrepeated_.insert(unrepeated_.begin(), repeated.begin(), repeated.end());
    } else {
      if (order != 0) {
        kept_.Keep(order, std::move(first));
      } else {
        RpcOf(first.channel)->FreeId(first.id);  // durable, or lost
      }
      lost_names_ += reply.ok() ? 0 : 1;
      unrepeated_.pop_front();
    }
    if (!again) goes_on = true;
  }
  if (!goes_on) return done(false);
  Repeat(std::move(done));
}

void MdsClient::EndRepeat(std::function<void(bool)> done) {
  size_t lost = 0;
  {
    const std::lock_guard lock(mutex_);
    options_.ordered->EndRepeating();
    lost = std::exchange(lost_names_, 0);
  }
  if (lost != 0) {
    options_.ordered->Lost();
    if (events_.on_lost_names) events_.on_lost_names(lost);
  }
  net::CallOptions call;
  call.timeout = options_.timeout;
  call.idempotent = true;
  rpc_->Call(wire::MDS_REPLAYED, wire::Empty().SerializeAsString(), {}, call,
             [done = std::move(done)](const Result<net::Reply>& reply) { done(reply.ok()); });
}

void MdsClient::CallReserved(uint64_t id, uint32_t method,
                             const google::protobuf::MessageLite& request, RawCallback callback) {
  const Use use(*this);
  if (!use) return callback(Status(ErrorCode::kCancelled, "the mount is going away"));
  net::CallOptions call;
  call.timeout = options_.timeout;
  call.reserved_id = id;
  rpc_->Call(method, request.SerializeAsString(), {}, call, std::move(callback));
}

void MdsClient::StartWatch() {
  const Use use(*this);
  if (!use) return;
  wire::WatchRequest request;
  {
    std::lock_guard lock(mutex_);
    request.set_have_epoch(map_->epoch.value);
    request.set_have_tag_epoch(tag_epoch_);
  }
  request.set_wait_ms(kWatchWaitMs);
  request.set_lock_seq(lock_seq_);
  if (events_.times) AddTimes(&request);
  if (events_.kernel_path) {
    request.set_kernel_path(static_cast<wire::KernelPath>(events_.kernel_path()));
  }
  if (options_.directories != nullptr) request.set_lease_seq(options_.directories->obeyed());
  if (options_.files != nullptr) request.set_file_lease_seq(options_.files->heard());
  net::CallOptions call;
  call.timeout = kWatchTimeout;
  call.idempotent = true;
  rpc_->Call(wire::MDS_WATCH, request.SerializeAsString(), {}, call,
             [this, asked = Now()](Result<net::Reply> raw) { OnWatch(std::move(raw), asked); });
}

void MdsClient::AddTimes(wire::WatchRequest* request) {
  const std::map<ClassId, MountClassTimes> all = events_.times();
  const TimePoint now = clock_.Now();
  std::lock_guard lock(mutex_);
  for (const auto& [id, times] : all) {
    if (fresh_.IsFresh(id, times.active_ns, now)) {
      weir::ToWire(id, times, request->add_mount_times());
    }
  }
}

void MdsClient::ObeyRecalls(const wire::WatchReply& reply, TimePoint asked) {
  if (options_.directories == nullptr) return;
  std::vector<InodeId> recalled;
  for (const uint64_t directory : reply.recalled()) recalled.emplace_back(directory);
  options_.directories->Renew(reply.lease_epoch(), reply.lease_seq(), recalled, asked);
  std::vector<InodeId> appends;
  for (const uint64_t file : reply.recalled_appends()) appends.emplace_back(file);
  if (!appends.empty() && events_.on_append_recall) events_.on_append_recall(appends);
  if (options_.files == nullptr || reply.lease_epoch() != options_.files->epoch()) return;
  options_.files->Renew(reply.lease_epoch(), reply.file_lease_seq(), asked);
  std::vector<InodeId> files;
  for (const uint64_t inode : reply.recalled_files()) files.emplace_back(inode);
  if (!files.empty()) events_.on_recall(reply.file_lease_seq(), files);
}

void MdsClient::OnWatch(Result<net::Reply> raw, TimePoint asked) {
  if (closing_) return;
  wire::WatchReply reply;
  if (!raw.ok() || !reply.ParseFromString(raw->body)) {
    watch_broken_ = true;  // Tick starts it again
    return;
  }
  // It has opened the session in a new life, and the answer to that did not get here: leases and
  // locks are those of that life.
  const bool other_life = options_.files != nullptr && reply.lease_epoch() != 0 &&
                          reply.lease_epoch() != options_.files->epoch();
  if (reply.unknown_session() || other_life) return Reopen();
  if (reply.has_ordered() && options_.ordered_within > Duration::zero()) {
    NoteDurable(reply.ordered());
  }
  ObeyRecalls(reply, asked);
  if (reply.lock_seq() > lock_seq_ && events_.on_lock_question) {
    lock_seq_ = reply.lock_seq();
    events_.on_lock_question(reply.lock_seq());
  }
  if (reply.has_map()) {
    auto map = weir::FromWire(reply.map());
    if (map.ok()) (void)TakeMap(std::make_shared<const ClusterMap>(std::move(*map)));
  }
  bool newer = false;
  {
    std::lock_guard lock(mutex_);
    newer = reply.tag_epoch() > tag_epoch_;
    if (newer) tag_epoch_ = reply.tag_epoch();
  }
  if (newer) events_.on_tags(reply.tag_epoch());
  StartWatch();
}

void MdsClient::Told(const wire::OpenSessionRequest& request) const {
  const auto tell = [](const auto& event, const auto& inodes) {
    if (event == nullptr || inodes.empty()) return;
    std::vector<InodeId> told;
    for (const uint64_t inode : inodes) told.emplace_back(inode);
    event(told);
  };
  tell(events_.on_told_open, request.open_inodes());
  tell(events_.on_told_kept, request.kept());
}

void MdsClient::Reopen() {
  const Use use(*this);
  if (!use) return;
  net::CallOptions call;
  call.timeout = kWatchTimeout;
  auto request = std::make_shared<const wire::OpenSessionRequest>(SessionRequest(false));
  rpc_->Call(wire::MDS_OPEN_SESSION, request->SerializeAsString(), {}, call,
             [this, request, asked = Now()](Result<net::Reply> raw) {
               if (closing_) return;
               // Without an answer it may have been heard all the same.
               Told(*request);
               if (!raw.ok() || !TakeSession(raw->body, asked).ok()) {
                 watch_broken_ = true;
                 return;
               }
               auto go_on = [this](bool goes_on) {
                 if (closing_) return;
                 if (!goes_on) {
                   watch_broken_ = true;  // which finds out about the other life
                   return;
                 }
                 if (events_.on_session_lost) events_.on_session_lost();
                 StartWatch();
               };
               if (!options_.keeps) return go_on(true);
               Repeat(std::move(go_on));
             });
}

void MdsClient::Tick() {
  const Use use(*this);
  if (!use) return;
  for (size_t i = 1; i < networks_.size(); ++i) {
    Channel& channel = channels_[i];
    if (!channel.wanted || channel.owned != nullptr) continue;
    auto rpc = Dial(i);
    if (!rpc.ok()) continue;  // the first one is there
    channel.owned = *std::move(rpc);
    channel.rpc.store(channel.owned.get(), std::memory_order_release);
  }
  if (watch_broken_.exchange(false)) StartWatch();
}

}  // namespace weir::client
