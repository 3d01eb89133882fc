// Extended attributes: what is stored, the QoS tag, and the virtual ones of layout_xattr.h.
#include <sys/stat.h>
#include <sys/xattr.h>

#include <string>
#include <string_view>

#include "mds/ns/acl.h"
#include "mds/ns/layout_xattr.h"
#include "mds/ns/operation.h"
#include "mds/ns/ops/ops.h"
#include "mds/ns/usage.h"

namespace weir::mds {
namespace {

constexpr std::string_view kTag = "user.qos.class";
constexpr std::string_view kEffective = "qos.effective_class";
constexpr std::string_view kWhy = "qos.why";
constexpr size_t kValueMax = 64 << 10;
constexpr size_t kListMax = 64 << 10;

bool IsVirtual(std::string_view name) {
  return name == kEffective || name == kWhy || name == kWholeLayout || name == kObjects ||
         name == kTreeUsage;
}

Status CheckName(std::string_view name) {
  if (name.empty() || name.size() > kNameMax) {
    return {ErrorCode::kRange, "an attribute's name has 1 to 255 bytes"};
  }
  if (name.find('\0') != std::string_view::npos) {
    return {ErrorCode::kInvalid, "an attribute's name must not contain NUL"};
  }
  for (const std::string_view bare : {"user.", "trusted.", "security.", "system."}) {
    if (name == bare) return {ErrorCode::kInvalid, std::string(name) + " names no attribute"};
  }
  return Status::Ok();
}

// Who may change an attribute of this name.
Status CheckMayChange(const Operation& op, const Inode& inode, std::string_view name,
                      bool removes) {
  if (IsVirtual(name)) {
    return {ErrorCode::kPermission, std::string(name) + " is read-only"};
  }
  if (IsQuota(name) && !op.who().IsRoot()) {
    return {ErrorCode::kPermission, std::string(name) + " is for root"};
  }
  if (name.starts_with("user.")) {
    if (!inode.IsRegular() && !inode.IsDirectory()) {
      return {ErrorCode::kPermission, "user attributes are for files and directories only"};
    }
    const bool sticky = inode.IsDirectory() && (inode.rec.mode() & S_ISVTX) != 0;
    if (sticky && !op.who().Owns(inode.rec)) {
      return InodeError(ErrorCode::kPermission, inode.id, "is sticky and somebody else's");
    }
    return CheckAccess(op.who(), inode.rec, kMayWrite);
  }
  if (IsAcl(name)) {
    if (op.who().Owns(inode.rec)) return Status::Ok();
    return InodeError(ErrorCode::kPermission, inode.id, "belongs to somebody else");
  }
  if (name == kFileCapability) {
    // The kernel takes it away in the name of whoever changes the file.
    if (removes || op.who().Can(Capability::kSetfcap, inode.rec)) return Status::Ok();
    return {ErrorCode::kPermission, std::string(name) + " is for root"};
  }
  if (name.starts_with("trusted.") || name.starts_with("security.")) {
    if (op.who().Can(Capability::kSysAdmin)) return Status::Ok();
    return {ErrorCode::kPermission, std::string(name) + " is for root"};
  }
  return {ErrorCode::kNotSupported, std::string(name) + " is of no supported kind"};
}

Status CheckMayRead(const Operation& op, const Inode& inode, std::string_view name) {
  if (IsVirtual(name)) return Status::Ok();
  if (IsAcl(name)) {
    if (!S_ISLNK(inode.rec.mode())) return Status::Ok();
    return {ErrorCode::kNotSupported, "a symbolic link has no access control list"};
  }
  if (name.starts_with("user.")) {
    if (!inode.IsRegular() && !inode.IsDirectory()) return Status(ErrorCode::kNoData);
    return CheckAccess(op.who(), inode.rec, kMayRead);
  }
  if (name.starts_with("trusted.")) {
    return op.who().Can(Capability::kSysAdmin) ? Status::Ok() : Status(ErrorCode::kNoData);
  }
  if (name.starts_with("security.")) return Status::Ok();
  return {ErrorCode::kNotSupported, std::string(name) + " is of no supported kind"};
}

Status CheckFlags(uint32_t flags, bool exists) {
  if ((flags & XATTR_CREATE) != 0 && exists) return Status(ErrorCode::kExists);
  if ((flags & XATTR_REPLACE) != 0 && !exists) return Status(ErrorCode::kNoData);
  return Status::Ok();
}

Status SetTag(Operation& op, const wire::XattrRequest& request, Inode* inode) {
  WEIR_RETURN_IF_ERROR(CheckFlags(request.flags(), !inode->rec.tag().empty()));
  WEIR_RETURN_IF_ERROR(op.context.cluster.MayTag(request.value(), op.who()));
  inode->rec.set_tag(request.value());
  op.TagsChanged();
  return Status::Ok();
}

Status SetAcl(const Operation& op, std::string_view name, std::string_view value, Inode* inode) {
  return ChangeAcl(name, value, op.who().MayRunAsGroup(inode->rec), &inode->rec);
}

const std::string& AclOf(const Inode& inode, std::string_view name) {
  return name == kAclAccess ? inode.rec.acl_access() : inode.rec.acl_default();
}

Result<size_t> ListBytes(Operation& op, const Inode& inode) {
  size_t bytes = 0;
  const std::string prefix = MakeKey(Table::kXattr, inode.id);
  WEIR_RETURN_IF_ERROR(op.txn.Scan(prefix, PrefixEnd(prefix), [&](std::string_view key, auto) {
    bytes += key.size() - prefix.size() + 1;
    return true;
  }));
  return bytes;
}

Status SetPlain(Operation& op, const wire::XattrRequest& request, const Inode& inode) {
  const std::string key = MakeKey(Table::kXattr, inode.id, request.name());
  WEIR_ASSIGN_OR_RETURN(const Overlay::Value old, op.txn.Get(key));
  WEIR_RETURN_IF_ERROR(CheckFlags(request.flags(), old.has_value()));
  if (!old.has_value()) {
    WEIR_ASSIGN_OR_RETURN(const size_t listed, ListBytes(op, inode));
    if (listed + request.name().size() + 1 > kListMax) {
      return InodeError(ErrorCode::kNoSpace, inode.id,
                        "has as many attribute names as fit into a list of 64 KiB");
    }
  }
  WEIR_RETURN_IF_ERROR(op.CheckRoom());
  op.txn.Put(key, request.value());
  return Status::Ok();
}

}  // namespace

bool IsPlainXattr(std::string_view name) {
  if (name.starts_with("trusted.")) return true;
  return name.starts_with("user.") && name != kTag && !IsQuota(name) &&
         !name.starts_with(kLayoutPrefix);
}

OrderedResult SetXattr(Operation& op, const wire::XattrRequest& request) {
  op.SetCaller(request.caller());
  const std::string& name = request.name();
  WEIR_RETURN_IF_ERROR(CheckName(name));
  if (request.value().size() > kValueMax) {
    return Status(ErrorCode::kTooBig, "an attribute's value has at most 64 KiB");
  }
  WEIR_ASSIGN_OR_RETURN(Inode inode, op.Load(request.inode()));
  if (!op.who().IsRoot()) op.Judges(inode);
  WEIR_RETURN_IF_ERROR(CheckMayChange(op, inode, name, false));
  if (name == kTag) {
    WEIR_RETURN_IF_ERROR(SetTag(op, request, &inode));
  } else if (IsQuota(name)) {
    WEIR_RETURN_IF_ERROR(CheckFlags(request.flags(), GetQuota(inode, name).ok()));
    WEIR_RETURN_IF_ERROR(SetQuota(op, name, request.value(), &inode));
  } else if (IsAcl(name)) {
    WEIR_RETURN_IF_ERROR(CheckFlags(request.flags(), !AclOf(inode, name).empty()));
    WEIR_RETURN_IF_ERROR(SetAcl(op, name, request.value(), &inode));
  } else if (name.starts_with(kLayoutPrefix)) {
    WEIR_RETURN_IF_ERROR(
        SetLayoutWord(op, &inode, name.substr(kLayoutPrefix.size()), request.value()));
  } else {
    WEIR_RETURN_IF_ERROR(SetPlain(op, request, inode));
    const bool capability = name == kFileCapability;
    if (capability || !inode.rec.has_xattrs()) inode.rec.set_capability(capability);
    inode.rec.set_has_xattrs(true);
  }
  op.Changed(&inode);
  op.Store(inode);
  return wire::OrderedAnswer();
}

Result<wire::XattrReply> GetXattr(Operation& op, const wire::XattrRequest& request) {
  op.SetCaller(request.caller());
  const std::string& name = request.name();
  WEIR_RETURN_IF_ERROR(CheckName(name));
  WEIR_ASSIGN_OR_RETURN(const Inode inode, op.Load(request.inode()));
  if (!op.who().IsRoot()) op.Judges(inode);
  WEIR_RETURN_IF_ERROR(CheckMayRead(op, inode, name));
  wire::XattrReply reply;
  if (name == kTag) {
    if (inode.rec.tag().empty()) return Status(ErrorCode::kNoData);
    reply.set_value(inode.rec.tag());
  } else if (IsQuota(name)) {
    WEIR_ASSIGN_OR_RETURN(std::string value, GetQuota(inode, name));
    reply.set_value(std::move(value));
  } else if (name == kTreeUsage) {
    WEIR_ASSIGN_OR_RETURN(std::string value, DescribeUsage(op, inode.id));
    reply.set_value(std::move(value));
  } else if (IsAcl(name)) {
    if (AclOf(inode, name).empty()) return Status(ErrorCode::kNoData);
    reply.set_value(AclOf(inode, name));
  } else if (name == kEffective || name == kWhy) {
    WEIR_ASSIGN_OR_RETURN(ResolvedClass resolved, op.context.classes.Resolve(op, inode, true));
    if (name == kWhy) resolved.reason += "; " + op.context.cluster.WhySlow(resolved.id);
    reply.set_value(std::move(resolved.reason));
  } else if (name == kWholeLayout) {
    reply.set_value(DescribeLayout(op, inode));
  } else if (name == kObjects) {
    if (!inode.IsRegular()) return Status(ErrorCode::kNoData);
    reply.set_value(
        op.context.cluster.DescribeObjects(inode.id, inode.rec.layout(), inode.rec.size(), 4096));
  } else if (name.starts_with(kLayoutPrefix)) {
    WEIR_ASSIGN_OR_RETURN(std::string value,
                          GetLayoutWord(op, inode, name.substr(kLayoutPrefix.size())));
    reply.set_value(std::move(value));
  } else {
    WEIR_ASSIGN_OR_RETURN(Overlay::Value value, op.txn.Get(MakeKey(Table::kXattr, inode.id, name)));
    if (!value.has_value()) return Status(ErrorCode::kNoData);
    reply.set_value(std::move(*value));
  }
  return reply;
}

Result<wire::ListXattrReply> ListXattr(Operation& op, const wire::InodeRequest& request) {
  op.SetCaller(request.caller());
  WEIR_ASSIGN_OR_RETURN(const Inode inode, op.Load(request.inode()));
  wire::ListXattrReply reply;
  if (!inode.rec.tag().empty()) reply.add_names(std::string(kTag));
  for (const std::string_view name : {kAclAccess, kAclDefault}) {
    if (!AclOf(inode, name).empty()) reply.add_names(std::string(name));
  }
  for (const std::string_view name : {kQuotaBytes, kQuotaFiles}) {
    if (op.who().IsRoot() && GetQuota(inode, name).ok()) reply.add_names(std::string(name));
  }
  if (inode.IsDirectory() && inode.rec.layout_explicit()) {
    for (const char* word : kLayoutWords) reply.add_names(std::string(kLayoutPrefix) + word);
    if (!inode.rec.layout().tier().empty()) {
      reply.add_names(std::string(kLayoutPrefix) + "tier");
    }
  }
  if (!inode.rec.has_xattrs()) return reply;
  // The kernel passes lists on as they are.
  const bool shows_trusted = op.who().Can(Capability::kSysAdmin) && !op.who().unknown;
  const std::string prefix = MakeKey(Table::kXattr, inode.id);
  WEIR_RETURN_IF_ERROR(op.txn.Scan(prefix, PrefixEnd(prefix), [&](std::string_view key, auto) {
    const std::string_view name = key.substr(prefix.size());
    if (shows_trusted || !name.starts_with("trusted.")) reply.add_names(std::string(name));
    return true;
  }));
  return reply;
}

OrderedResult RemoveXattr(Operation& op, const wire::XattrRequest& request) {
  op.SetCaller(request.caller());
  const std::string& name = request.name();
  WEIR_RETURN_IF_ERROR(CheckName(name));
  WEIR_ASSIGN_OR_RETURN(Inode inode, op.Load(request.inode()));
  if (!op.who().IsRoot()) op.Judges(inode);
  WEIR_RETURN_IF_ERROR(CheckMayChange(op, inode, name, true));
  if (name == kTag) {
    if (inode.rec.tag().empty()) return Status(ErrorCode::kNoData);
    inode.rec.clear_tag();
    op.TagsChanged();
  } else if (IsQuota(name)) {
    WEIR_RETURN_IF_ERROR(GetQuota(inode, name).status());
    WEIR_RETURN_IF_ERROR(SetQuota(op, name, "0", &inode));
  } else if (IsAcl(name)) {
    if (AclOf(inode, name).empty()) return wire::OrderedAnswer();  // as Linux has it
    WEIR_RETURN_IF_ERROR(SetAcl(op, name, {}, &inode));
  } else if (name.starts_with(kLayoutPrefix)) {
    WEIR_RETURN_IF_ERROR(ResetLayout(op, &inode));
  } else {
    const std::string key = MakeKey(Table::kXattr, inode.id, name);
    WEIR_ASSIGN_OR_RETURN(const Overlay::Value old, op.txn.Get(key));
    if (!old.has_value()) return Status(ErrorCode::kNoData);
    op.txn.Delete(key);
    if (name == kFileCapability) inode.rec.set_capability(false);
  }
  op.Changed(&inode);
  op.Store(inode);
  return wire::OrderedAnswer();
}

}  // namespace weir::mds
