// Extended attributes: setxattr, getxattr, listxattr, removexattr.
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "client/fuse/filesystem.h"

namespace weir::client {
namespace {

// The kernel asks for it before every write.
bool IsCapability(const char* name) {
  return std::strcmp(name, "security.capability") == 0;
}
// ls -l asks for both of every file.
constexpr char kSystem[] = "system.";
constexpr char kTrusted[] = "trusted.";
constexpr char kAclAccess[] = "system.posix_acl_access";
bool IsAcl(const char* name) {
  return std::strcmp(name, kAclAccess) == 0 || std::strcmp(name, "system.posix_acl_default") == 0;
}

// Where a file's data lies, and the like: set on empty files only.
bool IsLayout(std::string_view name) {
  return name.starts_with("user.weir.layout.");
}

// A value or list, or its size when the caller only asks for that.
void ReplyValue(const CallPtr& call, const std::string& value, size_t size) {
  if (size == 0) {
    call->ReplyXattrSize(value.size());
  } else if (value.size() > size) {
    call->ReplyErrno(ERANGE);
  } else {
    call->ReplyRaw(value.data(), value.size());
  }
}

wire::XattrRequest Request(Filesystem& fs, const Call& call, fuse_ino_t ino, const char* name) {
  wire::XattrRequest request;
  fs.FillCaller(call, ino, request.mutable_caller());
  // Kernels ask for these only in the name of who may, whatever the file: overlayfs acts as a user.
  if (std::strncmp(name, kTrusted, sizeof(kTrusted) - 1) == 0) {
    request.mutable_caller()->set_unknown(true);
  }
  request.set_inode(fs.ToInode(ino).value);
  request.set_name(name);
  return request;
}

bool HasNoAcl(Filesystem& fs, const Inode& inode) {
  const FileLeases& leases = fs.core().leases();
  const FileAttr attr = inode.attr();
  const bool known = leases.alone() ? attr.mode != 0 : leases.MayAnswer(inode);
  return known && !attr.has_acl && !S_ISLNK(attr.mode);
}

// Of a file that is open for writing the MDS tells each change elsewhere before it is answered.
bool HearsOfCapability(Filesystem& fs, const Inode& inode) {
  const FileLeases& leases = fs.core().leases();
  return leases.alone() || (inode.has_writers() && leases.Trust() > Duration::zero());
}

bool HasNoCapability(Filesystem& fs, const Inode& inode) {
  const FileAttr attr = inode.attr();
  if (attr.IsRegular() && fs.core().leases().MayAnswer(inode)) return !attr.may_have_capability;
  return HearsOfCapability(fs, inode) && inode.has_no_capability();
}

// The kernel keeps what it hears of a list until it is told to forget that, which a recall of the
// lease on the file does. This is the lease of now; 0: none, or nothing is to be kept.
uint64_t LeaseOnAcl(Filesystem& fs, const Inode& inode) {
  const FileLeases& leases = fs.core().leases();
  if (!fs.KernelMayKeep() || !leases.MayAnswer(inode)) return 0;
  return leases.alone() ? UINT64_MAX : inode.lease();
}

// `lease`: before the list was asked for. If that has not held all along the kernel is told to
// forget the list before it hears it: it then does not keep it.
void AnswerAcl(Filesystem& fs, const InodePtr& inode, uint64_t lease,
               std::function<void()> answer) {
  if (fs.options().exclusive || (lease != 0 && lease == LeaseOnAcl(fs, *inode))) return answer();
  for (const fuse_ino_t number : fs.ToNumbers(inode->id())) {
    fs.kernel_attributes().AskAttributesAgain(number);
  }
  fs.kernel_attributes().WhenTold(std::move(answer));
}

void OnGetxattr(fuse_req_t req, fuse_ino_t ino, const char* name, size_t size) {
  Filesystem& fs = Filesystem::Of(req);
  CallPtr call = fs.Begin(req);
  const bool acl = IsAcl(name);
  if (!acl && std::strncmp(name, kSystem, sizeof(kSystem) - 1) == 0) {
    call->ReplyErrno(EOPNOTSUPP);
    return;
  }
  const InodePtr inode = fs.Find(ino);
  const bool capability = IsCapability(name);
  if (capability && HasNoCapability(fs, *inode)) {
    call->ReplyErrno(ENODATA);
    return;
  }
  const uint64_t lease = acl ? LeaseOnAcl(fs, *inode) : 0;
  if (acl && HasNoAcl(fs, *inode)) {
    AnswerAcl(fs, inode, lease, [call] { call->ReplyErrno(ENODATA); });
    return;
  }
  const bool remembers = capability && HearsOfCapability(fs, *inode);
  auto tell = [call, inode, size, remembers,
               as_of = inode->capability_mark()](const Result<wire::XattrReply>& reply) {
    if (reply.ok()) return ReplyValue(call, reply->value(), size);
    if (remembers && reply.code() == ErrorCode::kNoData) inode->HasNoCapability(as_of);
    call->Reply(reply.status());
  };
  auto answer = [&fs, inode, acl, lease, tell](Result<wire::XattrReply> reply) {
    if (!acl) return tell(reply);
    AnswerAcl(fs, inode, lease, [tell, reply = std::move(reply)] { tell(reply); });
  };
  fs.core().files().TellHeld(inode, [&fs, request = Request(fs, *call, ino, name), answer] {
    fs.CallAs<wire::XattrReply>(wire::MDS_GETXATTR, request, true, answer);
  });
}

void Change(const CallPtr& call, Filesystem& fs, uint32_t method, const wire::XattrRequest& request,
            const InodePtr& inode) {
  fs.core().files().TellHeld(inode, [&fs, call, method, request, inode] {
    fs.CallOnce(call, method, request, [&fs, call, inode](const Result<net::Reply>& reply) {
      fs.core().Changed({inode->id()});
      call->Reply(reply.status());
    });
  });
}

// Whoever asks next must find the attributes that follow from it: `reply` when they are known.
void LearnChange(Filesystem& fs, const CallPtr& call, const InodePtr& inode,
                 const wire::XattrRequest& request) {
  wire::InodeRequest again;
  *again.mutable_caller() = request.caller();
  again.set_inode(request.inode());
  fs.mds().Call<wire::EntryReply>(
      wire::MDS_GETATTR, again, true,
      [&fs, call, inode, asked = fs.core().leases().Asked(),
       as_of = inode->layout_mark()](const Result<wire::EntryReply>& attr) {
        if (attr.ok()) {
          fs.Learn(inode, *attr, asked, Filesystem::Learns::kNoLease);
          inode->KnowsLayout(as_of);
        }
        call->ReplyErrno(0);
      });
}

// The MDS refuses it where there is data: of what was written here, also into the kernel's pages,
// it hears first. What is written next lies where the new layout says, also through descriptors
// that are open, and where nobody knows whether it has been set.
void ChangeLayout(const CallPtr& call, Filesystem& fs, uint32_t method,
                  const wire::XattrRequest& request, const InodePtr& inode) {
  auto answer = [&fs, call, inode, request](const Result<net::Reply>& reply) {
    inode->AskForLayout();
    fs.core().Changed({inode->id()});
    if (reply.ok()) return LearnChange(fs, call, inode, request);
    call->Reply(reply.status());
  };
  fs.kernel_cache().Drop(fs.ToNumber(inode->id()), [&fs, call, method, request, inode, answer] {
    fs.core().files().Sync(inode, false,
                           [&fs, call, method, request, inode, answer](const Status& status) {
                             // A failed write-back belongs to the next fsync or close.
                             if (!status.ok()) inode->RememberError(status);
                             inode->AskForLayout();
                             fs.CallOnce(call, method, request, answer);
                           });
  });
}

// Writes before it took away what is set now, those behind it will: the MDS hears of the former
// first.
void ChangeCapability(const CallPtr& call, Filesystem& fs, uint32_t method,
                      const wire::XattrRequest& request, const InodePtr& inode) {
  inode->AskForCapability();
  auto answer = [&fs, call, inode, request](const Result<net::Reply>& reply) {
    inode->AskForCapability();
    fs.core().Changed({inode->id()});
    if (reply.ok()) return LearnChange(fs, call, inode, request);
    call->Reply(reply.status());
  };
  fs.core().files().Sync(inode, false,
                         [&fs, call, method, request, inode, answer](const Status& status) {
                           if (!status.ok())
                             inode->RememberError(status);  // for the next fsync or close
                           fs.CallOnce(call, method, request, answer);
                         });
}

// The mode follows an ACL; who may not have files that run as their group loses that bit, too.
void ChangeAcl(const CallPtr& call, Filesystem& fs, uint32_t method, wire::XattrRequest request,
               const InodePtr& inode) {
  if ((inode->attr().mode & S_ISGID) != 0) {
    fs.LookAgain(request.mutable_caller());
    fs.LookAtRoot(request.mutable_caller());
  }
  auto changing = fs.core().directories().BeginChange({{DirCache::Kind::kRights, inode->id(), {}}});
  auto answer = [&fs, call, inode, changing, request](const Result<net::Reply>& reply) {
    fs.core().Changed({inode->id()});
    if (reply.ok()) return LearnChange(fs, call, inode, request);
    call->Reply(reply.status());
  };
  fs.core().files().TellHeld(inode, [&fs, call, method, request = std::move(request), answer] {
    fs.CallOnce(call, method, request, answer);
  });
}

// A list that says no more than a mode is a chmod.
bool HoldAcl(Filesystem& fs, const CallPtr& call, const wire::XattrRequest& request,
             const InodePtr& inode) {
  if (request.name() != kAclAccess || fs.options().writeback_cache || fs.options().exclusive) {
    return false;
  }
  const std::string& value = request.value();
  const auto bits = ModeOfAcl({reinterpret_cast<const uint8_t*>(value.data()), value.size()});
  if (!bits.has_value()) return false;
  HeldAttributes change;
  change.mode = (inode->attr().mode & 07000) | *bits;
  change.ctime_ns = fs.core().files().stamps().Next();
  const ClassId charged(request.caller().class_id());
  if (!fs.core().files().HoldAttributes(inode, change, call->context().uid, charged)) return false;
  call->ReplyErrno(0);
  return true;
}

void OnSetxattr(fuse_req_t req, fuse_ino_t ino, const char* name, const char* value, size_t size,
                int flags) {
  Filesystem& fs = Filesystem::Of(req);
  CallPtr call = fs.Begin(req);
  wire::XattrRequest request = Request(fs, *call, ino, name);
  request.set_value(value, size);
  request.set_flags(static_cast<uint32_t>(flags));
  const InodePtr inode = fs.Find(ino);
  if (HoldAcl(fs, call, request, inode)) return;
  if (IsAcl(name)) return ChangeAcl(call, fs, wire::MDS_SETXATTR, request, inode);
  if (IsCapability(name)) return ChangeCapability(call, fs, wire::MDS_SETXATTR, request, inode);
  if (IsLayout(name) && inode->attr().IsRegular()) {
    return ChangeLayout(call, fs, wire::MDS_SETXATTR, request, inode);
  }
  Change(call, fs, wire::MDS_SETXATTR, request, inode);
}

void OnRemovexattr(fuse_req_t req, fuse_ino_t ino, const char* name) {
  Filesystem& fs = Filesystem::Of(req);
  CallPtr call = fs.Begin(req);
  const wire::XattrRequest request = Request(fs, *call, ino, name);
  const InodePtr inode = fs.Find(ino);
  if (IsAcl(name)) return ChangeAcl(call, fs, wire::MDS_REMOVEXATTR, request, inode);
  if (IsCapability(name)) return ChangeCapability(call, fs, wire::MDS_REMOVEXATTR, request, inode);
  Change(call, fs, wire::MDS_REMOVEXATTR, request, inode);
}

void OnListxattr(fuse_req_t req, fuse_ino_t ino, size_t size) {
  Filesystem& fs = Filesystem::Of(req);
  CallPtr call = fs.Begin(req);
  wire::InodeRequest request;
  fs.FillCaller(*call, ino, request.mutable_caller());
  request.set_inode(fs.ToInode(ino).value);
  fs.CallAs<wire::ListXattrReply>(wire::MDS_LISTXATTR, request, true,
                                  [call, size](Result<wire::ListXattrReply> reply) {
                                    if (!reply.ok()) {
                                      call->Reply(reply.status());
                                      return;
                                    }
                                    std::string list;
                                    for (const std::string& name : reply->names()) {
                                      list.append(name).push_back('\0');
                                    }
                                    ReplyValue(call, list, size);
                                  });
}

}  // namespace

void AddXattrOps(fuse_lowlevel_ops* ops) {
  ops->setxattr = OnSetxattr;
  ops->getxattr = OnGetxattr;
  ops->listxattr = OnListxattr;
  ops->removexattr = OnRemovexattr;
}

}  // namespace weir::client
