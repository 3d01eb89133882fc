// readdir and readdirplus, in the order of cookies: a cookie is given to a name when it is made and
// stays, so that a listing neither repeats nor skips what was there all the time. What is made, or
// gets another name, after a listing began stands behind the end that it was given then.
#include <algorithm>
#include <vector>

#include "mds/ns/operation.h"
#include "mds/ns/ops/ops.h"

namespace weir::mds {
namespace {
// Keep a reply far below the transport's limit of 1 MiB: a plain entry has at most ~300 bytes, one
// with attributes ~500 and the path of a tag.
constexpr uint32_t kEntriesMax = 1024;
constexpr size_t kReplyBytesMax = 256 << 10;
}  // namespace

Result<wire::ReaddirReply> ReadDirectory(Operation& op, const wire::ReaddirRequest& request) {
  op.SetCaller(request.caller());
  WEIR_ASSIGN_OR_RETURN(const Inode directory, op.LoadDirectory(request.inode()));
  WEIR_RETURN_IF_ERROR(CheckAccess(op.who(), directory.rec, kMayRead));
  const uint32_t wanted = request.max_entries() == 0 ? kEntriesMax : request.max_entries();
  const uint32_t limit = std::min(wanted, kEntriesMax);

  wire::ReaddirReply reply;
  reply.set_parent(directory.rec.parent());
  reply.set_end(true);
  if (request.after_cookie() == 0) op.FillAttr(directory, reply.mutable_directory());
  const uint64_t next = directory.rec.next_cookie();
  const uint64_t before = request.before_cookie() == 0 ? next : request.before_cookie();
  reply.set_before_cookie(before);
  if (request.after_cookie() >= before - 1) return reply;
  size_t bytes = 0;
  Status bad;
  const std::string begin = MakeKey(Table::kCookie, directory.id, request.after_cookie() + 1);
  const std::string end = MakeKey(Table::kCookie, directory.id, before);
  const auto visit = [&](std::string_view key, std::string_view value) {
    if (static_cast<uint32_t>(reply.entries_size()) == limit || bytes > kReplyBytesMax) {
      reply.set_end(false);
      return false;
    }
    Result<CookieRecord> record = DecodeValue<CookieRecord>(value);
    if (!record.ok()) {
      bad = record.status();
      return false;
    }
    wire::DirEntry* entry = reply.add_entries();
    entry->set_name(record->name());
    entry->set_inode(record->inode());
    entry->set_mode(record->mode());
    entry->set_cookie(ReadBigEndian(key, kSecondNumber));
    bytes += record->name().size() + 32;
    return true;
  };
  WEIR_RETURN_IF_ERROR(op.txn.Scan(begin, end, visit));
  WEIR_RETURN_IF_ERROR(bad);
  if (!request.plus()) return reply;

  std::vector<uint64_t> inodes;
  for (const wire::DirEntry& entry : reply.entries()) inodes.push_back(entry.inode());
  WEIR_RETURN_IF_ERROR(op.Fetch(inodes));
  bytes = 0;
  for (int i = 0; i < reply.entries_size(); ++i) {
    wire::DirEntry* entry = reply.mutable_entries(i);
    WEIR_ASSIGN_OR_RETURN(const Inode inode, op.Load(entry->inode()));
    WEIR_RETURN_IF_ERROR(op.FillEntry(inode, entry->mutable_entry()));
    WEIR_RETURN_IF_ERROR(op.OfferFileLease(inode.id, entry->mutable_entry()));
    bytes += entry->ByteSizeLong();
    if (bytes <= kReplyBytesMax) continue;
    reply.mutable_entries()->DeleteSubrange(i + 1, reply.entries_size() - i - 1);
    reply.set_end(false);
  }
  return reply;
}

}  // namespace weir::mds
