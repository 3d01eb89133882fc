#include "client/remote/mds_client.h"

#include <algorithm>
#include <set>
#include <utility>

#include "client/vfs/dir_cache.h"
#include "client/vfs/file_leases.h"
#include "common/placement/times_wire.h"
#include "common/wire/build.h"
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

}  // namespace

MdsClient::MdsClient(const ReactorNetworks& networks, Clock& clock, Options options, Events events)
    : clock_(clock),
      options_(std::move(options)),
      events_(std::move(events)),
      channels_(networks, clock,
                {options_.endpoint, options_.session, options_.ids_above, options_.reserved_ids,
                 options_.resend_interval}),
      ordered_(channels_,
               {options_.ordered, options_.ordered_within, options_.keeps, options_.timeout,
                events_.on_lost_names, events_.on_told_open, events_.on_told_kept}) {}

MdsClient::~MdsClient() {
  Stop();
}

Result<std::unique_ptr<MdsClient>> MdsClient::Connect(const ReactorNetworks& networks, Clock& clock,
                                                      Options options, Events events) {
  std::unique_ptr<MdsClient> client(
      new MdsClient(networks, clock, std::move(options), std::move(events)));
  WEIR_RETURN_IF_ERROR(client->channels_.Connect());
  return client;
}

// While the members exist that callbacks use.
void MdsClient::Stop() {
  channels_.Stop();
  ordered_.Stop();
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
  *request.mutable_build() = wire::ThisBuild();
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
  ordered_.BeginLife(reply.life());
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
  if (events_.on_lost_locks != nullptr) events_.on_lost_locks(LostLocks(reply));
  events_.on_tags(tag_epoch);
  // After the map: it may say that they are lost.
  if (options_.files != nullptr) events_.on_lost_leases(written);
  return Status::Ok();
}

// An older MDS says of which files only: then all of those count as lost.
std::vector<wire::FileLock> MdsClient::LostLocks(const wire::OpenSessionReply& reply) const {
  std::vector<wire::FileLock> lost(reply.lost().begin(), reply.lost().end());
  if (!lost.empty() || reply.lost_locks().empty()) return lost;
  const std::set<uint64_t> files(reply.lost_locks().begin(), reply.lost_locks().end());
  for (wire::FileLock& held : events_.held_locks()) {
    if (files.contains(held.inode())) lost.push_back(std::move(held));
  }
  return lost;
}

Status MdsClient::Open() {
  net::CallOptions call;
  call.timeout = options_.connect_timeout;
  const TimePoint asked = Now();
  return TakeFirst(channels_.first().CallAndWait(
                       wire::MDS_OPEN_SESSION, SessionRequest(true).SerializeAsString(), {}, call),
                   asked);
}

void MdsClient::OpenAsync(std::function<void(const Status&)> done) {
  net::CallOptions call;
  call.timeout = options_.connect_timeout;
  channels_.first().Call(wire::MDS_OPEN_SESSION, SessionRequest(true).SerializeAsString(), {}, call,
                         [this, asked = Now(), done = std::move(done)](
                             const Result<net::Reply>& reply) { done(TakeFirst(reply, asked)); });
}

Status MdsClient::TakeFirst(const Result<net::Reply>& reply, TimePoint asked) {
  if (!reply.ok()) return reply.status();
  WEIR_RETURN_IF_ERROR(TakeSession(reply->body, asked));
  if (!options_.resumes && !options_.mount_class.empty() &&
      map()->FindClass(options_.mount_class) == nullptr) {
    return {ErrorCode::kNotFound, "there is no class '" + options_.mount_class +
                                      "' to mount with (-o class); osdctl class create makes it"};
  }
  StartWatch();
  return Status::Ok();
}

void MdsClient::Close(Duration wait) {
  channels_.Close();
  net::RpcClient& rpc = channels_.first();
  if (!rpc.connected()) return;
  net::CallOptions call;
  call.timeout = wait;
  (void)rpc.CallAndWait(wire::MDS_CLOSE_SESSION, wire::Empty().SerializeAsString(), {}, call);
}

uint64_t MdsClient::ReserveId() {
  const MdsChannels::Use use(channels_);
  return use ? channels_.first().ReserveId() : 0;
}

void MdsClient::FreeId(uint64_t id) {
  const MdsChannels::Use use(channels_);
  if (use) channels_.first().FreeId(id);
}

bool MdsClient::connected() {
  const MdsChannels::Use use(channels_);
  return use && channels_.first().connected();
}

Duration MdsClient::LossPatience() {
  const MdsChannels::Use use(channels_);
  if (!use) return Duration::zero();
  const Duration patience = std::min(kLossPatience, options_.timeout);
  if (channels_.first().connected()) return patience;
  return std::max(patience - std::min(channels_.first().silence(), patience), Duration::zero());
}

MapPtr MdsClient::map() const {
  std::lock_guard lock(mutex_);
  return map_;
}

void MdsClient::CallRaw(uint32_t method, const google::protobuf::MessageLite& request,
                        bool idempotent, RawCallback callback, std::optional<Duration> patience) {
  // Of a callback that ran with kCancelled, say.
  const MdsChannels::Use use(channels_);
  if (!use) return callback(Status(ErrorCode::kCancelled, "the mount is going away"));
  net::CallOptions call;
  call.timeout = patience.value_or(options_.timeout);
  call.idempotent = idempotent;
  ordered_.Call(KeepsOrder(method) ? 0 : channels_.Here(), method, request.SerializeAsString(),
                call, std::move(callback));
}

void MdsClient::CallReserved(uint64_t id, uint32_t method,
                             const google::protobuf::MessageLite& request, RawCallback callback) {
  const MdsChannels::Use use(channels_);
  if (!use) return callback(Status(ErrorCode::kCancelled, "the mount is going away"));
  net::CallOptions call;
  call.timeout = options_.timeout;
  call.reserved_id = id;
  channels_.first().Call(method, request.SerializeAsString(), {}, call, std::move(callback));
}

void MdsClient::StartWatch() {
  const MdsChannels::Use use(channels_);
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
  channels_.first().Call(
      wire::MDS_WATCH, request.SerializeAsString(), {}, call,
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
  if (channels_.closing()) return;
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
  if (reply.has_ordered()) ordered_.Heard(reply.ordered());
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
  const MdsChannels::Use use(channels_);
  if (!use) return;
  net::CallOptions call;
  call.timeout = kWatchTimeout;
  auto request = std::make_shared<const wire::OpenSessionRequest>(SessionRequest(false));
  channels_.first().Call(wire::MDS_OPEN_SESSION, request->SerializeAsString(), {}, call,
                         [this, request, asked = Now()](Result<net::Reply> raw) {
                           if (channels_.closing()) return;
                           // Without an answer it may have been heard all the same.
                           Told(*request);
                           if (!raw.ok() || !TakeSession(raw->body, asked).ok()) {
                             watch_broken_ = true;
                             return;
                           }
                           auto go_on = [this](bool goes_on) {
                             if (channels_.closing()) return;
                             if (!goes_on) {
                               watch_broken_ = true;  // which finds out about the other life
                               return;
                             }
                             if (events_.on_session_lost) events_.on_session_lost();
                             StartWatch();
                           };
                           ordered_.Repeat(std::move(go_on));
                         });
}

void MdsClient::Tick() {
  const MdsChannels::Use use(channels_);
  if (!use) return;
  channels_.Tick();
  ordered_.Tick();
  if (watch_broken_.exchange(false)) StartWatch();
}

}  // namespace weir::client
