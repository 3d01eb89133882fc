#include "client/fuse/filesystem.h"

#include <algorithm>

#include "client/takeover/takeover_log.h"

namespace weir::client {
namespace {

void OnInit(void* userdata, fuse_conn_info* conn) {
  const auto& options = static_cast<Filesystem*>(userdata)->options();
  conn->want = FUSE_CAP_ASYNC_READ | FUSE_CAP_ASYNC_DIO | FUSE_CAP_PARALLEL_DIROPS |
               FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_DONT_MASK;
  if (options.exclusive) {
    conn->want |= FUSE_CAP_CACHE_SYMLINKS | FUSE_CAP_POSIX_ACL;
  } else {
    // Pages follow the attributes; set-id bits fall with the report of a write.
    conn->want |= FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_HANDLE_KILLPRIV;
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
  return number == FUSE_ROOT_ID ? mds().root() : InodeId(number);
}

fuse_ino_t Filesystem::ToNumber(InodeId inode) {
  return inode == mds().root() ? FUSE_ROOT_ID : inode.value;
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

std::vector<gid_t> Filesystem::GroupsOf(const Call& call) {
  const fuse_ctx& context = call.context();
  return core_.groups().Of({context.uid, context.gid, context.pid}, [&]() -> std::vector<gid_t> {
    std::vector<gid_t> list(64);
    int count = fuse_req_getgroups(call.request(), static_cast<int>(list.size()), list.data());
    if (count > static_cast<int>(list.size())) {
      list.resize(static_cast<size_t>(count));
      count = fuse_req_getgroups(call.request(), count, list.data());
    }
    list.resize(static_cast<size_t>(std::max(count, 0)));
    return list;
  });
}

OpenerPtr Filesystem::OpenerOf(const Call& call) {
  const fuse_ctx& context = call.context();
  return core_.classes().Open(context.uid, context.gid, GroupsOf(call), context.pid);
}

void Filesystem::FillCaller(const Call& call, const Inode* inode, wire::Caller* caller) {
  const fuse_ctx& context = call.context();
  caller->set_uid(context.uid);
  caller->set_gid(context.gid);
  caller->set_pid(static_cast<uint32_t>(context.pid));
  const std::vector<gid_t> groups = GroupsOf(call);
  for (gid_t group : groups) caller->add_groups(group);
  std::string exe = core_.classes().ExeOf(context.uid, context.pid);
  const auto tagged = inode == nullptr ? std::nullopt : inode->tag_class();
  const ClassId charged = tagged.has_value()
                              ? *tagged
                              : core_.classes().OfCaller(context.uid, context.gid, groups, exe);
  caller->set_class_id(charged.value);
  if (!exe.empty()) caller->set_exe(std::move(exe));
}

void Filesystem::FillCaller(const Call& call, fuse_ino_t number, wire::Caller* caller) {
  FillCaller(call, core_.inodes().Find(ToInode(number)).get(), caller);
}

void Filesystem::CallOnce(const CallPtr& call, uint32_t method,
                          const google::protobuf::MessageLite& request,
                          MdsClient::RawCallback callback) {
  TakeoverLog* const takeover = core_.takeover();
  if (takeover == nullptr) return mds().CallRaw(method, request, false, std::move(callback));
  const uint64_t number = call->number();
  uint64_t id = takeover->IdOf(number);
  if (id == 0) {
    id = mds().ReserveId();
    takeover->ChangeBegins(number, id);
  }
  auto done = [this, takeover, number, id,
               callback = std::move(callback)](Result<net::Reply> reply) {
    callback(std::move(reply));
    takeover->ChangeEnds(number);
    mds().FreeId(id);
  };
  mds().CallReserved(id, method, request, std::move(done));
}

FileAttr Filesystem::Learn(const InodePtr& inode, const wire::EntryReply& reply, uint64_t asked) {
  if (reply.has_effective_class()) {
    const wire::EffectiveClass& found = reply.effective_class();
    inode->set_tag_class(found.tagged() ? std::optional(ClassId(found.class_id())) : std::nullopt);
  }
  inode->set_told(core_.clock().Now().ns);
  const FileAttr attr = inode->Update(FromWire(reply.attr()));
  if (asked != 0 && attr.IsRegular()) core_.leases().Learn(inode, reply, asked);
  return attr;
}

fuse_entry_param Filesystem::LearnEntry(const wire::EntryReply& reply, uint64_t asked) {
  const InodePtr inode = core_.inodes().Lookup(InodeId(reply.attr().inode()));
  return MakeEntry(inode->id(), Learn(inode, reply, asked));
}

fuse_entry_param Filesystem::MakeEntry(InodeId inode, const FileAttr& attr) {
  fuse_entry_param entry{};
  entry.attr = ToStat(attr);
  entry.ino = ToNumber(inode);
  entry.generation = 1;  // inode numbers are never used twice
  entry.attr_timeout = KeepSeconds();
  entry.entry_timeout = KeepSeconds();
  return entry;
}

fuse_entry_param Filesystem::CountEntry(const FileAttr& attr) {
  const InodePtr inode = core_.inodes().Lookup(attr.inode);
  return MakeEntry(inode->id(), inode->Update(attr));
}

void Filesystem::UndoEntry(const fuse_entry_param& entry) {
  core_.inodes().Forget(ToInode(entry.ino), 1);
}

void Filesystem::ReplyEntry(const CallPtr& call, const Result<wire::EntryReply>& reply,
                            uint64_t asked) {
  if (!reply.ok()) {
    call->Reply(reply.status());
    return;
  }
  const fuse_entry_param entry = LearnEntry(*reply, asked);
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
            [this, inode, end, ready](const Result<wire::EntryReply>& reply) {
              if (reply.ok()) Learn(inode, *reply);
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
  mds().Call<wire::EntryReply>(
      wire::MDS_GETATTR, request, true,
      [this, inode, ready = std::move(ready)](const Result<wire::EntryReply>& reply) {
        if (reply.ok()) Learn(inode, *reply);
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
  if (exclusive) {
    ops.access = nullptr;
  } else {
    AddLockOps(&ops);
  }
  return ops;
}

}  // namespace weir::client
