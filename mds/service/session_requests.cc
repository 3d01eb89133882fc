// Sessions, maps, OSDs that register and watch.
#include <algorithm>
#include <set>
#include <utility>

#include "common/base/log.h"
#include "common/base/units.h"
#include "common/placement/times_wire.h"
#include "common/wire/build.h"
#include "mds/ns/class_space.h"
#include "mds/ns/find_path.h"
#include "mds/ns/ops/ops.h"
#include "mds/service/mds_core.h"

namespace weir::mds {
namespace {

constexpr Duration kWatchMax = std::chrono::seconds(10);  // well below a lease
constexpr Duration kOsdWatchMax = std::chrono::seconds(1);

template <typename Request>
bool Decode(const MdsCore::Call& call, Request* request) {
  if (request->ParseFromString(call->body())) return true;
  call->Respond(Status(ErrorCode::kBadMessage, request->GetTypeName() + " does not parse"));
  return false;
}

template <typename Times, typename Rows>
std::map<ClassId, Times> SumsOf(const Rows& rows) {
  std::map<ClassId, Times> sums;
  for (const auto& row : rows) sums[ClassId(row.class_id())] = weir::FromWire(row);
  return sums;
}

}  // namespace

bool MdsCore::HandleSession(const Call& call) {
  switch (call->method()) {
    case wire::MDS_OPEN_SESSION:
      OpenSession(call);
      return true;
    case wire::MDS_CLOSE_SESSION:
      CloseSession(call);
      return true;
    case wire::MDS_COMMIT:
      Commit(call);
      return true;
    case wire::MDS_REPLAY:
      Replay(call);
      return true;
    case wire::MDS_REPLAYED:
      if (!sessions_->IsOpen(call->session())) {
        call->Respond(Status(ErrorCode::kStaleEpoch, "the session is not open"));
        return true;
      }
      OriginOf(call);  // a sign of life
      Replayed(call);
      return true;
    case wire::MDS_YIELD:
      Yield(call);
      return true;
    case wire::MDS_WATCH:
      Watch(call);
      return true;
    case wire::MDS_GIVE_BACK:
      GiveBack(call);
      return true;
    case wire::MDS_REGISTER_OSD:
      RegisterOsd(call);
      return true;
    case wire::MDS_DIVIDE_LIMITS:
      DivideLimits(call);
      return true;
    case wire::MDS_GET_MAP:
      GetMap(call);
      return true;
    case wire::MDS_STATUS:
      GetStatus(call);
      return true;
    default:
      return false;
  }
}

// One that had been given up keeps again what it is told from now on: the next MDS has to know that
// first.
void MdsCore::Replayed(const Call& call) {
  const uint64_t session = call->session();
  auto done = [this, call, session](Status status, const std::string&) {
    const bool goes_on = status.ok();
    call->Respond(std::move(status));
    if (goes_on) replays_.Done(session);
  };
  if (!replays_.HasLost(session)) return done(Status::Ok(), {});
  RequestOrigin origin;
  origin.session = session;
  names_->Execute(
      origin,
      [this, session](Operation& op) -> Result<std::string> {
        if (!sessions_->IsOpen(session)) {
          return Status(ErrorCode::kStaleEpoch, "the session has ended meanwhile");
        }
        names_->AddKeeper(op, /*knows_loss=*/true);
        return std::string();
      },
      std::move(done));
}

// What was answered in the life before this one has to be repeated first.
void MdsCore::Commit(const Call& call) {
  OriginOf(call);  // a sign of life
  Replays::Work commit = [this, call](bool /*given_up*/) {
    names_->Commit([call](Status status, std::string body) {
      call->Respond(std::move(status), std::move(body), {});
    });
  };
  if (!replays_.Park(call->session(), &commit)) commit(false);
}

wire::ClusterMap MdsCore::WireMap() const {
  wire::ClusterMap map = ToWire(*keeper_->map());
  map.set_tag_epoch(tag_epoch_.load());
  return map;
}

// One that does not exist is a matter for the mount to refuse, and for a reconnecting one to bear.
Status MdsCore::CheckMountClass(const wire::OpenSessionRequest& request) const {
  const std::string& name = request.mount_class();
  if (name.empty() || !request.has_mounter() || !keeper_->ClassIdOf(name).has_value()) {
    return Status::Ok();
  }
  const wire::Caller& mounter = request.mounter();
  Credentials who;
  who.uid = mounter.uid();
  who.gid = mounter.gid();
  who.groups.assign(mounter.groups().begin(), mounter.groups().end());
  return keeper_->MayTag(name, who);
}

void MdsCore::OpenSession(const Call& call) {
  wire::OpenSessionRequest request;
  if (!Decode(call, &request)) return;
  const uint64_t session = call->session();
  if (const Status may = CheckMountClass(request); !may.ok()) {
    call->Respond(may);
    return;
  }
  if (evictions_->Evicting(session)) {
    call->Respond(Status(ErrorCode::kBusy, "the session is being evicted"));
    return;
  }
  std::string before;
  const bool reopened = sessions_->Touch(session, &before);
  const bool admitted_unasked = !reopened && sessions_->Knows(session);
  // Early answers only once it is on the medium that a restart has to wait for this session: else
  // it could not repeat them.
  const Duration ordered_within = std::chrono::milliseconds(request.ordered_within_ms());
  Status opened =
      sessions_->Open(session, {request.client_name(), request.mount_class(), request.exclusive(),
                                Duration::zero(), request.build()});
  if (!opened.ok()) {
    call->Respond(std::move(opened));
    return;
  }
  if (request.exclusive()) keeper_->limits().NobodyElse();
  if (!request.repeats()) replays_.Done(session);
  auto reply = std::make_shared<wire::OpenSessionReply>();
  if (request.leases()) {
    reply->set_lease_epoch(names_->leases().Begin(session));
    names_->file_leases().Begin(session, reply->lease_epoch());
  }
  const std::vector<uint64_t> open_inodes(request.open_inodes().begin(),
                                          request.open_inodes().end());
  names_->Reclaim(session, open_inodes, request.resumes());
  names_->Keep(session, {request.kept().begin(), request.kept().end()}, request.resumes());
  const std::vector<wire::FileLock> lost =
      locks_->Reclaim(session, {request.locks().begin(), request.locks().end()}, request.resumes());
  std::set<uint64_t> lost_of;
  for (const wire::FileLock& lock : lost) lost_of.insert(lock.inode());
  if (!lost.empty()) {
    WEIR_LOG_WARN("mount '{}' comes back too late for its locks on {} files",
                  LogClient(request.client_name()), lost_of.size());
  }
  if (request.settles_locks()) locks_->CanSettle(session);
  // What it was told before it said its mount class may have been wrong.
  if (admitted_unasked && !request.mount_class().empty()) names_->BumpTagEpoch();
  const auto klass = keeper_->ClassIdOf(request.mount_class());
  if (!request.mount_class().empty() && !klass.has_value()) {
    WEIR_LOG_WARN("mount '{}' names class '{}', which does not exist: served as best-effort",
                  LogClient(request.client_name()), LogClass(request.mount_class()));
  }
  *reply->mutable_map() = WireMap();
  reply->set_lease_ms(
      std::chrono::duration_cast<std::chrono::milliseconds>(sessions_->lease()).count());
  reply->set_mount_class_id(klass.value_or(kBestEffort.value));
  reply->mutable_lost()->Add(lost.begin(), lost.end());
  reply->mutable_lost_locks()->Add(lost_of.begin(), lost_of.end());
  reply->set_life(names_->life());
  RequestOrigin origin;
  origin.session = session;
  names_->Execute(
      origin,
      [this, reply, session, path = request.subtree(), open_inodes,
       keeps = request.keeps() && !replays_.HasLost(session), repeats = request.repeats(),
       resumes = request.resumes()](Operation& op) -> Result<std::string> {
        if (!sessions_->IsOpen(session)) {
          return Status(ErrorCode::kStaleEpoch, "the session has ended meanwhile");
        }
        op.effects.may_write = !open_inodes.empty();
        if (!resumes) op.context.grants.EndSession(op.context.session);  // it has forgotten them
        if (keeps) names_->AddKeeper(op, /*knows_loss=*/!repeats);
        const Result<Inode> root = FindDirectory(op, path);
        if (!op.txn.missing().empty()) return root.status();
        WEIR_RETURN_IF_ERROR(names_->CameBack(op, open_inodes));
        if (!root.ok()) return root.status().Annotate("cannot mount '/" + path + "'");
        reply->set_root_inode(root->id);
        return reply->SerializeAsString();
      },
      [this, call, session, ordered_within](Status status, std::string body) {
        if (status.ok()) sessions_->SetOrdered(session, ordered_within);
        call->Respond(std::move(status), std::move(body), {});
      });
}

void MdsCore::CloseSession(const Call& call) {
  replays_.Drop(call->session());
  sessions_->Close(call->session());
  operations_.DropSession(call->session());
  keeper_->times().MountGone(call->session());
  keeper_->limits().MountGone(call->session());
  names_->DropSession(call->session(), true);
  locks_->EndSession(call->session());
  names_->ForgetAnswers(call->session());
  names_->Commit([call](Status status, const std::string&) { call->Respond(std::move(status)); });
}

void MdsCore::Yield(const Call& call) {
  wire::YieldRequest request;
  if (!Decode(call, &request)) return;
  sessions_->Touch(call->session());
  const std::vector<uint64_t> inodes(request.inodes().begin(), request.inodes().end());
  const FileLeases::Grant as_of{request.epoch(), request.seq()};
  if (names_->file_leases().Yield(call->session(), as_of, inodes)) names_->RetryParked();
  call->Respond(Status::Ok());
}

void MdsCore::Watch(const Call& call) {
  wire::WatchRequest request;
  if (!Decode(call, &request)) return;
  Duration wait = std::min<Duration>(std::chrono::milliseconds(request.wait_ms()), kWatchMax);
  bool known = false;
  if (request.has_osd_id()) {
    wait = std::min(wait, kOsdWatchMax);
    known = keeper_->OsdHeard(OsdId(request.osd_id()), Epoch(request.have_epoch()),
                              request.used_bytes(), Epoch(request.fence_epoch()));
    // Between ticks, as a disk may fill before the next.
    if (known && keeper_->NearFullMoves()) Post([this] { keeper_->Tick(); });
    if (known && request.has_measures()) {
      keeper_->OsdMeasured(OsdId(request.osd_id()), request.measures());
    }
    if (known) {
      const auto sums = SumsOf<OsdClassTimes>(request.osd_times());
      keeper_->times().OsdSaid(OsdId(request.osd_id()), sums, clock_.Now());
      keeper_->skew().OsdSaid(OsdId(request.osd_id()), sums, clock_.Now());
    }
    watchers_->FlushObeyed();
  } else {
    std::string client;
    known = sessions_->Touch(call->session(), nullptr, &client);
    if (known) {
      const KernelPath path = ToKernelPath(request.kernel_path());
      sessions_->SetPath(call->session(), path);
      keeper_->times().MountSaid(call->session(), client, path,
                                 SumsOf<MountClassTimes>(request.mount_times()), clock_.Now());
    }
    if (names_->leases().Obeyed(call->session(), request.lease_seq())) names_->RetryParked();
  }
  if (known) {
    watchers_->Watch(call,
                     {request.have_epoch(), request.have_tag_epoch(), request.lease_seq(),
                      request.file_lease_seq(), request.lock_seq()},
                     wait);
    return;
  }
  wire::WatchReply reply;
  reply.set_epoch(keeper_->map()->epoch.value);
  reply.set_tag_epoch(tag_epoch_.load());
  reply.set_unknown_session(true);
  call->Respond(reply.SerializeAsString());
}

void MdsCore::GiveBack(const Call& call) {
  wire::GiveBackRequest request;
  if (!Decode(call, &request)) return;
  names_->leases().GiveBackAppend(call->session(), request.inode(), request.grant());
  names_->RetryParked();
  call->Respond(wire::Empty().SerializeAsString());
}

void MdsCore::RegisterOsd(const Call& call) {
  wire::RegisterOsdRequest request;
  if (!Decode(call, &request)) return;
  Post([this, call, request] {
    const Result<OsdId> id = keeper_->RegisterOsd(request);
    if (!id.ok()) {
      WEIR_LOG_WARN("an OSD at '{}' was refused: {}", request.endpoint(), id.status().message());
      call->Respond(id.status());
      return;
    }
    wire::RegisterOsdReply reply;
    reply.set_osd_id(id->value);
    *reply.mutable_map() = WireMap();
    reply.set_cluster_uuid(reply.map().cluster_uuid());
    call->Respond(reply.SerializeAsString());
  });
}

void MdsCore::DivideLimits(const Call& call) {
  wire::DivideLimitsRequest request;
  if (!Decode(call, &request)) return;
  // What it says that it obeys would be taken from those who are known.
  if (!sessions_->Touch(call->session())) {
    call->Respond(Status(ErrorCode::kStale, "limits are divided among open sessions only"));
    return;
  }
  const Result<wire::DivideLimitsReply> reply =
      keeper_->limits().Divide(keeper_->map(), call->session(), request, clock_.Now());
  if (reply.ok()) {
    call->Respond(reply->SerializeAsString());
  } else {
    call->Respond(reply.status());
  }
}

// What OSDs said since the map was last written; it is not written for that.
wire::ClusterMap MdsCore::MapWithUse() const {
  wire::ClusterMap map = WireMap();
  const std::map<OsdId, uint64_t> used = keeper_->UsedBytes();
  for (wire::OsdInfo& osd : *map.mutable_osds()) {
    const auto heard = used.find(OsdId(osd.id()));
    if (heard != used.end()) osd.set_used_bytes(heard->second);
  }
  return map;
}

void MdsCore::GetMap(const Call& call) {
  wire::ClusterMap map = MapWithUse();
  call->Respond(map.SerializeAsString());
}

// Removals that are decided and not durable yet are no purges yet: the answer waits for them, as it
// has read what they change, and counts purges then.
void MdsCore::GetStatus(const Call& call) {
  const auto lingering = std::make_shared<size_t>(0);
  names_->Execute(
      {},
      [this, lingering](Operation& op) -> Result<std::string> {
        WEIR_ASSIGN_OR_RETURN(const wire::StatfsReply space, StatFs(op, {}));
        wire::StatusReply reply;
        *reply.mutable_map() = MapWithUse();
        reply.set_sessions(sessions_->count());
        for (const Sessions::Mount& mount : sessions_->Mounts()) {
          wire::StatusReply::Mount* to = reply.add_mounts();
          to->set_client_name(mount.client);
          to->set_path(static_cast<wire::KernelPath>(mount.path));
          to->set_session(mount.session);
          if (mount.build.wire() != 0) *to->mutable_build() = mount.build;
        }
        *reply.mutable_build() = wire::ThisBuild();
        reply.set_inodes(space.inodes());
        const OpenFiles& opens = op.context.opens;
        *lingering = op.context.lingering.CountUnopened(
            [&opens](uint64_t inode) { return opens.IsOpen(inode); });
        std::vector<uint32_t> classes;
        for (const auto& info : reply.map().classes()) classes.push_back(info.id());
        WEIR_ASSIGN_OR_RETURN(const uint64_t promised, PromisedSpace(op, classes));
        if (promised > space.free_bytes()) {
          reply.add_warnings("capacities promise " + FormatSize(promised) + " more than " +
                             "classes hold, and only " + FormatSize(space.free_bytes()) +
                             " are free");
        }
        for (std::string& warning : keeper_->Warnings()) reply.add_warnings(std::move(warning));
        return reply.SerializeAsString();
      },
      [this, call, lingering](Status status, std::string body) {
        wire::StatusReply last;  // what is appended to a message joins it
        last.set_pending_purges(objects_->pending_purges() + *lingering);
        if (status.ok()) last.AppendToString(&body);
        call->Respond(std::move(status), std::move(body), {});
      });
}

}  // namespace weir::mds
