// The POSIX operations, one per file. Each prepares: it reads through the Operation, decides,
// checks permissions and leaves writes and effects in it; the answer it returns goes out when they
// are durable. Errors:  POSIX's, as codes of common/base/result.h; nothing is written then.
#pragma once

#include <string_view>

#include "common/base/result.h"
#include "common/wire/mds.pb.h"

namespace weir::mds {

class Operation;
struct Inode;

using EntryResult = Result<wire::EntryReply>;
using EmptyResult = Result<wire::Empty>;
using TouchedResult = Result<wire::TouchedReply>;
using OrderedResult = Result<wire::OrderedAnswer>;

EntryResult Lookup(Operation& op, const wire::NameRequest& request);
EntryResult GetAttr(Operation& op, const wire::InodeRequest& request);
EntryResult SetAttr(Operation& op, const wire::SetAttrRequest& request);
EntryResult Create(Operation& op, const wire::CreateRequest& request);
EntryResult MakeUnnamed(Operation& op, const wire::CreateRequest& request);
EntryResult MakeNode(Operation& op, const wire::CreateRequest& request);
// The rest of it and of CREATE: the caller may pass `parent`, which has nothing of that name.
EntryResult MakeAbsent(Operation& op, const wire::CreateRequest& request, uint32_t mode,
                       Inode parent);
TouchedResult Unlink(Operation& op, const wire::NameRequest& request);
TouchedResult RemoveDirectory(Operation& op, const wire::NameRequest& request);
TouchedResult Rename(Operation& op, const wire::RenameRequest& request);
EntryResult Link(Operation& op, const wire::LinkRequest& request);
Result<wire::ReadlinkReply> ReadLink(Operation& op, const wire::InodeRequest& request);
Result<wire::ReaddirReply> ReadDirectory(Operation& op, const wire::ReaddirRequest& request);
EntryResult Open(Operation& op, const wire::OpenRequest& request);
EmptyResult Release(Operation& op, const wire::ReleaseRequest& request);
OrderedResult SetXattr(Operation& op, const wire::XattrRequest& request);
Result<wire::XattrReply> GetXattr(Operation& op, const wire::XattrRequest& request);
Result<wire::ListXattrReply> ListXattr(Operation& op, const wire::InodeRequest& request);
OrderedResult RemoveXattr(Operation& op, const wire::XattrRequest& request);
// Of an attribute from which only programs draw conclusions: it is no right, class, quota or
// layout, and no label of the kernel's.
bool IsPlainXattr(std::string_view name);
Result<wire::StatfsReply> StatFs(Operation& op, const wire::Empty& request);
EntryResult Wrote(Operation& op, const wire::WroteRequest& request);
// Data of the file changed then; 0: now.
void TakeWriteTime(const Operation& op, int64_t mtime_ns, Inode* inode);
EntryResult Allocated(Operation& op, const wire::AllocatedRequest& request);
Result<wire::GrowReply> Grow(Operation& op, const wire::GrowRequest& request);
Result<wire::ResolveClassesReply> ResolveClasses(Operation& op,
                                                 const wire::ResolveClassesRequest& request);
EmptyResult Accessed(Operation& op, const wire::AccessedRequest& request);
EmptyResult Access(Operation& op, const wire::AccessRequest& request);
Result<wire::AppendReply> Append(Operation& op, const wire::InodeRequest& request);

}  // namespace weir::mds
