#include "client/fuse/filesystem.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "client/takeover/takeover_log.h"

namespace weir::client {
namespace {

constexpr double kAlways = 86'400;     // in seconds
constexpr uint32_t kKnowsEpochs = 44;  // minor version of the protocol

void OnInit(void* userdata, fuse_conn_info* conn) {
  auto& fs = *static_cast<Filesystem*>(userdata);
  const auto& options = fs.options();
  // Without either of them it could not be told, or not without waiting.
  const bool expires = (conn->capable & FUSE_CAP_EXPIRE_ONLY) != 0;
  if (fs.KernelMayKeep() && expires && conn->proto_minor >= kKnowsEpochs) {
    fs.core().names().Enable();
  }
  conn->want = FUSE_CAP_ASYNC_READ | FUSE_CAP_ASYNC_DIO | FUSE_CAP_PARALLEL_DIROPS |
               FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_DONT_MASK |
               FUSE_CAP_POSIX_ACL | FUSE_CAP_EXPORT_SUPPORT;
  // The kernel never keeps where links point: what it answers by itself moves no access time.
  if (!options.exclusive) {
    conn->want |= FUSE_CAP_AUTO_INVAL_DATA;  // pages follow the attributes
    conn->want |= FUSE_CAP_POSIX_LOCKS | FUSE_CAP_FLOCK_LOCKS;
  }
  if (options.writeback_cache) conn->want |= FUSE_CAP_WRITEBACK_CACHE;
  conn->want &= conn->capable;
  conn->max_write = 1 << 20;
  if (options.readahead_bytes != 0) conn->max_readahead = options.readahead_bytes;
  // Depth is bounded per class by our windows, never by one queue of the kernel for all classes.
  conn->max_background = 4096;
  conn->congestion_threshold = 4096;
}

}  // namespace

InodeId Filesystem::ToInode(fuse_ino_t number) {
  return number == FUSE_ROOT_ID ? mds().root() : NodeNumbers::InodeOf(number);
}

fuse_ino_t Filesystem::ToNumber(InodeId inode) {
  return inode == mds().root() ? FUSE_ROOT_ID : inode.value;
}

std::vector<fuse_ino_t> Filesystem::ToNumbers(InodeId inode) {
  if (options_.exclusive || inode == mds().root()) return {ToNumber(inode)};
  return numbers_.Of(inode);
}

InodePtr Filesystem::Find(fuse_ino_t number) {
  const InodeId id = ToInode(number);
  InodePtr inode = core_.inodes().Find(id);
  if (inode != nullptr) return inode;
  // The kernel has looked it up with a predecessor of this process, and will forget it here.
  const TakeoverLog* const takeover = core_.takeover();
  if (takeover != nullptr && takeover->is_successor()) return core_.inodes().Lookup(id);
  return std::make_shared<Inode>(id);
}

TimePoint Filesystem::GiveUpAt() {
  const TimePoint now = core_.clock().Now();
  const Duration timeout = mds().timeout();
  return timeout < TimePoint::Max() - now ? now + timeout : TimePoint::Max();
}

CallerRights Filesystem::RightsOf(const Call& call) {
  const fuse_ctx& context = call.context();
  return core_.callers().Of({context.uid, context.gid, context.pid});
}

OpenerPtr Filesystem::OpenerOf(const Call& call) {
  const fuse_ctx& context = call.context();
  return core_.classes().Open(context.uid, context.gid, RightsOf(call).groups, context.pid,
                              core_.callers().ThreadGroupOf(context.pid));
}

void Filesystem::FillCaller(const Call& call, const Inode* inode, wire::Caller* caller) {
  const fuse_ctx& context = call.context();
  caller->set_uid(context.uid);
  caller->set_gid(context.gid);
  caller->set_pid(static_cast<uint32_t>(context.pid));
  caller->set_opener(core_.callers().ThreadGroupOf(context.pid));
  const CallerRights rights = RightsOf(call);
  client::ToWire(rights, caller);
  CallerClasses::Program program = core_.classes().ProgramOf(context.uid, context.pid);
  const auto tagged = inode == nullptr ? std::nullopt : inode->tag_class();
  const ClassId charged = tagged.has_value() ? *tagged
                                             : core_.classes().OfCaller(context.uid, context.gid,
                                                                        rights.groups, program);
  caller->set_class_id(charged.value);
  if (!program.exe.empty()) caller->set_exe(std::move(program.exe));
  if (!program.cgroup.empty()) caller->set_cgroup(std::move(program.cgroup));
}

void Filesystem::FillCaller(const Call& call, fuse_ino_t number, wire::Caller* caller) {
  FillCaller(call, core_.inodes().Find(ToInode(number)).get(), caller);
}

bool Filesystem::WasRefused(const Result<net::Reply>& reply) {
  return reply.code() == ErrorCode::kAccess || reply.code() == ErrorCode::kPermission;
}

void Filesystem::AddLeased(uint64_t directory, Leased* leased) {
  Judged judged{core_.inodes().Find(InodeId(directory)), false, {}};
  if (judged.directory != nullptr) {
    judged.leased = core_.leases().MayAnswer(*judged.directory);
    judged.attr = judged.directory->attr();
  }
  leased->push_back(std::move(judged));
}

bool Filesystem::StillLeased(const Leased& leased) {
  if (leased.empty()) return false;
  if (options_.exclusive) return true;
  return std::all_of(leased.begin(), leased.end(), [this](const Judged& judged) {
    if (!judged.leased || !core_.leases().MayAnswer(*judged.directory)) return false;
    const FileAttr& before = judged.attr;
    const FileAttr now = judged.directory->attr();
    return now.mode == before.mode && now.uid == before.uid && now.gid == before.gid &&
           (now.version == before.version || (!now.has_acl && !before.has_acl));
  });
}

bool Filesystem::LookAgain(wire::Caller* caller) {
  const CallerId id{caller->uid(), caller->gid(), static_cast<pid_t>(caller->pid())};
  if (id.uid == 0 || caller->unknown()) return false;
  wire::Caller now = *caller;
  client::ToWire(core_.callers().Anew(id), &now);
  const bool other = now.SerializeAsString() != caller->SerializeAsString();
  *caller = std::move(now);
  return other;
}

void Filesystem::LookAtRoot(wire::Caller* caller) {
  if (caller->uid() != 0) return;
  const CallerRights rights =
      core_.callers().Anew({0, caller->gid(), static_cast<pid_t>(caller->pid())});
  if (!rights.known) return;  // the kernel has judged
  client::ToWire(rights, caller);
  caller->set_limited(true);
}

void Filesystem::SendOnce(const CallPtr& call, uint32_t method,
                          const google::protobuf::MessageLite& request, Again again,
                          MdsClient::RawCallback callback) {
  TakeoverLog* const takeover = core_.takeover();
  const uint64_t number = call->number();
  uint64_t id = takeover == nullptr ? 0 : takeover->IdOf(number);
  if (takeover != nullptr && id == 0) {
    id = mds().ReserveId();
    takeover->ChangeBegins(number, id);
  }
  auto done = [this, call, method, takeover, number, id, again = std::move(again),
               callback = std::move(callback)](Result<net::Reply> reply) {
    const google::protobuf::MessageLite* const better = again ? again(reply) : nullptr;
    if (better == nullptr) callback(std::move(reply));
    if (takeover != nullptr) {
      takeover->ChangeEnds(number);
      mds().FreeId(id);
    }
    if (better != nullptr) SendOnce(call, method, *better, nullptr, callback);
  };
  if (takeover == nullptr) return mds().CallRaw(method, request, false, std::move(done));
  mds().CallReserved(id, method, request, std::move(done));
}

void Filesystem::DropRights(const Call& call, const InodePtr& inode, const RightsLost& lost,
                            std::function<void(const Status&)> then) {
  if (!inode->MayLose(lost)) return then({});
  wire::SetAttrRequest request;
  FillCaller(call, inode.get(), request.mutable_caller());
  if (!inode->Loses(lost, request.caller())) return then({});
  request.set_inode(inode->id().value);
  request.set_kill_suid(lost.set_ids);
  request.set_kill_capability(lost.capability);
  mds().Call<wire::EntryReply>(wire::MDS_SETATTR, request, false,
                               [this, inode, asked = core_.leases().Asked(),
                                then = std::move(then)](const Result<wire::EntryReply>& reply) {
                                 if (!reply.ok()) return then(reply.status());
                                 Learn(inode, *reply, asked);
                                 // It would run the program with the bits that it remembers.
                                 for (const fuse_ino_t number : ToNumbers(inode->id())) {
                                   kernel_attributes_.AskAttributesAgain(number);
                                 }
                                 kernel_attributes_.WhenTold([then] { then({}); });
                               });
}

FileAttr Filesystem::Learn(const InodePtr& inode, const wire::EntryReply& reply, uint64_t asked,
                           Learns learns) {
  core_.LearnClass(*inode, reply, asked);
  inode->set_told(core_.clock().Now().ns);
  const FileAttr attr = core_.inodes().Update(inode, core_.Heard(reply.attr()));
  if (learns == Learns::kAll) core_.leases().Learn(inode, reply, asked);
  return attr;
}

fuse_entry_param Filesystem::LearnEntry(const wire::EntryReply& reply, uint64_t asked,
                                        const NodeNumbers::Place* place, Learns learns) {
  const InodePtr inode = core_.inodes().Lookup(InodeId(reply.attr().inode()));
  const FileAttr attr = Learn(inode, reply, asked, learns);
  return MakeEntry(*inode, attr, place);
}

// Whatever entry the kernel gets is made here.
fuse_entry_param Filesystem::MakeEntry(const Inode& inode, const FileAttr& attr,
                                       const NodeNumbers::Place* place) {
  fuse_entry_param entry{};
  entry.attr = ToStat(attr);
  const bool numbered = place != nullptr && S_ISDIR(attr.mode) && !options_.exclusive;
  entry.ino = numbered ? GiveNumber(inode.id(), *place) : ToNumber(inode.id());
  // Inode numbers are never used twice, but by another cluster. The kernel made its root by itself,
  // of generation 0.
  entry.generation = entry.ino == FUSE_ROOT_ID ? 0 : core_.generation();
  entry.attr_timeout = KeepSeconds(inode);
  entry.entry_timeout = options_.exclusive ? kAlways : 0;
  return entry;
}

fuse_ino_t Filesystem::GiveNumber(InodeId directory, const NodeNumbers::Place& place) {
  if (directory == mds().root()) return FUSE_ROOT_ID;
  const NodeNumbers::Given given = numbers_.Give(directory, place);
  if (given.others.empty()) return given.number;
  // Soon: whoever looks may hold what that takes.
  for (const auto& old : given.elsewhere) kernel_cache_.ForgetPlaceSoon(old.parent, old.name);
  const std::vector<std::string> names = core_.names().Known(directory);
  for (const uint64_t other : given.others) {
    for (const std::string& name : names) kernel_cache_.AskAgainSoon(other, name);
    kernel_cache_.Drop(other, nullptr);
  }
  return given.number;
}

// A reader beside a local writer asks here each time: what the kernel is told of changes elsewhere
// may come to nothing when a write of its own ends in that moment. So may what it drops of a
// directory when it has changed names there, and this comes later.
double Filesystem::KeepSeconds(const Inode& inode) const {
  if (core_.directories().NamesAreChanging(inode.id())) return 0;
  const bool asks = inode.has_writers() || !KernelMayKeep() || !core_.leases().MayAnswer(inode);
  if (!options_.exclusive && (asks || numbers_.Several(inode.id()))) return 0;
  inode.KernelKeeps(true);
  if (options_.exclusive) return kAlways;
  return std::chrono::duration<double>(core_.leases().Trust()).count();
}

void Filesystem::AttributesMoved(const Inode& inode) {
  if (!inode.KernelKeeps(false)) return;
  for (const fuse_ino_t number : ToNumbers(inode.id())) {
    kernel_attributes_.AskAttributesAgain(number);
  }
}

double Filesystem::KeepName(const Inode& directory, std::string_view name, uint64_t asked) {
  if (options_.exclusive) return kAlways;
  if (numbers_.Several(directory.id())) return 0;
  return std::chrono::duration<double>(core_.names().Give(directory, name, asked)).count();
}

void Filesystem::ForgetNames(InodeId directory) {
  std::this_thread::sleep_for(core_.names().ArrivesIn(directory));
  for (;;) {
    const std::vector<std::string> names = core_.names().Take(directory);
    if (names.empty()) return;
    // An operation in the directory holds it in the kernel, and may wait for a mount that waits for
    // this here.
    if (core_.directories().IsChanging(directory)) {
      kernel_cache_.AskAllAgain();
    } else {
      for (const fuse_ino_t number : ToNumbers(directory)) kernel_cache_.AskAgain(number, names);
    }
  }
}

Filesystem::Naming Filesystem::Ask(fuse_ino_t number, std::string name) {
  const InodePtr directory = Find(number);
  return {directory,
          {number, std::move(name)},
          core_.directories().Ask(directory->id()),
          core_.names().Asked(*directory),
          core_.leases().Asked()};
}

fuse_entry_param Filesystem::LearnName(const Naming& naming, const wire::EntryReply& reply) {
  const std::string& name = naming.place.name;
  if (naming.asking != nullptr) core_.directories().Learn(*naming.asking, name, reply);
  fuse_entry_param entry = LearnEntry(reply, naming.asked, &naming.place);
  entry.entry_timeout = KeepName(*naming.directory, name, naming.names_asked);
  return entry;
}

bool Filesystem::CountKnown(const DirCache::Look& look, const NodeNumbers::Place& place,
                            fuse_entry_param* entry) {
  InodeTable& inodes = core_.inodes();
  if (look.kind == DirCache::Look::Kind::kDirectory) {
    const InodePtr directory = inodes.Lookup(look.attr.inode);
    *entry = MakeEntry(*directory, inodes.Update(directory, look.attr), &place);
    return true;
  }
  // Counted before it is judged: the kernel may be about to forget it, and with it would go what is
  // known of it here.
  const InodePtr other = inodes.LookupKnown(look.other);
  if (other == nullptr) return false;
  if (!core_.leases().MayAnswer(*other)) {
    inodes.Forget(look.other, 1);
    return false;
  }
  *entry = MakeEntry(*other, other->attr(), &place);
  return true;
}

void Filesystem::UndoEntry(const fuse_entry_param& entry) {
  Forget(entry.ino, 1);
}

void Filesystem::Forget(fuse_ino_t number, uint64_t count) {
  if (!options_.exclusive) numbers_.Forget(number, count);
  core_.inodes().Forget(ToInode(number), count);
}

void Filesystem::Renamed(const wire::TouchedReply& reply, const NodeNumbers::Place& from,
                         const NodeNumbers::Place& to, bool exchanged) {
  if (options_.exclusive || reply.inodes().empty()) return;
  numbers_.Moved(InodeId(reply.inodes(0)), from, to);
  if (exchanged && reply.inodes_size() > 1) numbers_.Moved(InodeId(reply.inodes(1)), to, from);
}

void Filesystem::ReplyEntry(const CallPtr& call, const fuse_entry_param& entry) {
  if (!call->ReplyEntry(entry)) UndoEntry(entry);
}

void Filesystem::WhenQuotaAllows(const InodePtr& inode, uint64_t end,
                                 std::function<void(const Status&)> ready) {
  if (end == 0 || !inode->has_quota()) return ready({});
  core_.files().Sync(
      inode, false, [this, inode, end, ready = std::move(ready)](const Status& status) {
        if (!status.ok()) inode->RememberError(status);
        wire::InodeRequest request;
        request.set_inode(inode->id().value);
        mds().Call<wire::EntryReply>(
            wire::MDS_GETATTR, request, true,
            [this, inode, end, asked = core_.leases().Asked(),
             ready](const Result<wire::EntryReply>& reply) {
              if (reply.ok()) Learn(inode, *reply, asked, Learns::kNoLease);
              ready(inode->QuotaAllows(end)
                        ? Status::Ok()
                        : Status(ErrorCode::kQuota, "over the quota of a directory"));
            });
      });
}

void Filesystem::WhenSizeIsKnown(const InodePtr& inode, uint64_t end, std::function<void()> ready) {
  if (end <= inode->size()) return ready();
  if (options_.exclusive) {
    if (!options_.writeback_cache || !inode->has_writers()) return ready();
    return kernel_cache_.Drop(ToNumber(inode->id()), std::move(ready));
  }
  wire::InodeRequest request;
  request.set_inode(inode->id().value);
  mds().Call<wire::EntryReply>(wire::MDS_GETATTR, request, true,
                               [this, inode, asked = core_.leases().Asked(),
                                ready = std::move(ready)](const Result<wire::EntryReply>& reply) {
                                 if (reply.ok()) Learn(inode, *reply, asked, Learns::kNoLease);
                                 ready();  // without news the size is what it was
                               });
}

fuse_lowlevel_ops MakeOperations(bool exclusive) {
  fuse_lowlevel_ops ops{};
  ops.init = OnInit;
  AddMetaOps(&ops);
  AddNameOps(&ops);
  AddDirOps(&ops);
  AddOpenOps(&ops);
  AddIoOps(&ops);
  AddRangeOps(&ops);
  AddXattrOps(&ops);
  if (!exclusive) AddLockOps(&ops);
  return ops;
}

}  // namespace weir::client
