#include "mds/check/namespace_tables.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "mds/format/ns_keys_format.h"

namespace weir::mds {
namespace {

constexpr char kTables[] = "abcdhilmoptuvwx";

}  // namespace

CheckedInode* NamespaceTables::Find(uint64_t inode) {
  const auto found = inodes.find(inode);
  return found == inodes.end() ? nullptr : &found->second;
}

template <typename Visit>
Status NamespaceTables::ForEach(char table, size_t key_bytes, Visit visit) {
  const auto it = store_.NewIterator();
  for (it->Seek(std::string(1, table)); it->Valid() && it->key()[0] == table; it->Next()) {
    if (it->key().size() < key_bytes) {
      findings().Add("record", fmt::format("a key of table '{}' is too short", table));
      continue;
    }
    visit(it->key(), it->value());
  }
  return it->status();
}

template <typename Record>
bool NamespaceTables::Decode(std::string_view value, const std::string& what, Record* record) {
  Result<Record> decoded = DecodeValue<Record>(value);
  if (!decoded.ok()) {
    findings().Add("record", what + ": " + decoded.status().message());
    return false;
  }
  *record = *std::move(decoded);
  return true;
}

Status NamespaceTables::Read() {
  WEIR_RETURN_IF_ERROR(ReadMeta());
  WEIR_RETURN_IF_ERROR(ReadInodes());
  WEIR_RETURN_IF_ERROR(ReadNames());
  WEIR_RETURN_IF_ERROR(ReadCookies());
  WEIR_RETURN_IF_ERROR(ReadBackrefs());
  WEIR_RETURN_IF_ERROR(ReadSmallTables());
  return CountUnknown();
}

Status NamespaceTables::ReadMeta() {
  const Result<std::string> stored = store_.Get(kStateKey);
  if (stored.ok()) {
    has_state = Decode(*stored, "the state record", &state);
  } else if (stored.code() == ErrorCode::kNotFound) {
    findings().Add("record", "there is no state record");
  } else {
    return stored.status();
  }
  const Result<std::string> cluster = store_.Get(kClusterKey);
  if (cluster.ok()) {
    ClusterRecord record;
    Decode(*cluster, "the cluster record", &record);
    return Status::Ok();
  }
  if (cluster.code() != ErrorCode::kNotFound) return cluster.status();
  findings().Add("record", "there is no cluster record");
  return Status::Ok();
}

Status NamespaceTables::ReadInodes() {
  uint64_t directories = 0;
  WEIR_RETURN_IF_ERROR(ForEach('i', 9, [&](std::string_view key, std::string_view value) {
    const uint64_t id = ReadBigEndian(key, kFirstNumber);
    CheckedInode& inode = inodes[id];  // exists, even when it does not decode
    highest_inode = std::max(highest_inode, id);
    InodeRecord record;
    if (!Decode(value, fmt::format("inode {}", id), &record)) return;
    inode.decoded = true;
    inode.mode = record.mode();
    inode.nlink = record.nlink();
    inode.parent = record.parent();
    inode.entries = record.entries();
    inode.next_cookie = record.next_cookie();
    inode.name = record.name();
    inode.has_xattrs = record.has_xattrs();
    directories += S_ISDIR(inode.mode) ? 1 : 0;
  }));
  Fact("inodes", inodes.size());
  Fact("directories", directories);
  return Status::Ok();
}

Status NamespaceTables::ReadNames() {
  uint64_t names = 0;
  WEIR_RETURN_IF_ERROR(ForEach('d', 10, [&](std::string_view key, std::string_view value) {
    ++names;
    Name name{ReadBigEndian(key, kFirstNumber), 0, 0, std::string(key.substr(kSecondNumber)), 0};
    DentryRecord record;
    if (!Decode(value, fmt::format("name '{}' in directory {}", name.name, name.directory),
                &record)) {
      return;
    }
    name.inode = record.inode();
    name.cookie = record.cookie();
    name.type = record.mode() & S_IFMT;
    TakeName(name);
  }));
  Fact("names", names);
  return Status::Ok();
}

void NamespaceTables::TakeName(const Name& name) {
  const std::string what = fmt::format("name '{}' in directory {}", name.name, name.directory);
  CheckedInode* directory = Find(name.directory);
  if (directory == nullptr || !S_ISDIR(directory->mode)) {
    findings().Add("dangling", what + ": there is no such directory");
  } else {
    ++directory->names;
    if (name.type == S_IFDIR) ++directory->subdirectories;
  }
  CheckedInode* inode = Find(name.inode);
  if (inode == nullptr) {
    findings().Add("dangling", fmt::format("{}: there is no inode {}", what, name.inode));
    return;
  }
  ++inode->links;
  if ((inode->mode & S_IFMT) != name.type) {
    findings().Add("type", fmt::format("{} has type {:o}, inode {} has {:o}", what, name.type,
                                       name.inode, inode->mode & S_IFMT));
  }
  const bool primary = inode->parent == name.directory && inode->name == name.name;
  inode->primary_found = inode->primary_found || primary;
  const std::string backref = MakeKey(Table::kBackref, name.inode, name.directory, name.name);
  if (!primary && store_.Get(backref).code() == ErrorCode::kNotFound) {
    findings().Add("link", fmt::format("inode {} does not know its {}", name.inode, what));
    repairs.Put(backref, "");
  }
  const std::string key = MakeKey(Table::kCookie, name.directory, name.cookie);
  const Result<std::string> stored = store_.Get(key);
  const auto walked = stored.ok() ? DecodeValue<CookieRecord>(*stored) : stored.status();
  if (walked.ok() && walked->name() == name.name && walked->inode() == name.inode &&
      walked->mode() == name.type) {
    return;
  }
  findings().Add("cookie", fmt::format("{}: readdir does not find it at {}", what, name.cookie));
  CookieRecord right;
  right.set_name(name.name);
  right.set_inode(name.inode);
  right.set_mode(name.type);
  repairs.Put(key, EncodeValue(right));
  mended_cookies_.insert(key);
}

// A cookie without its name: readdir would show what is not there.
Status NamespaceTables::ReadCookies() {
  Status bad;
  WEIR_RETURN_IF_ERROR(ForEach('c', 17, [&](std::string_view key, std::string_view value) {
    CookieRecord record;
    const uint64_t directory = ReadBigEndian(key, kFirstNumber);
    const uint64_t cookie = ReadBigEndian(key, kSecondNumber);
    if (!Decode(value, fmt::format("entry {} of directory {}", cookie, directory), &record)) return;
    const Status checked = CheckCookie(directory, cookie, record, std::string(key));
    if (!checked.ok()) bad = checked;
  }));
  return bad;
}

Status NamespaceTables::CheckCookie(uint64_t directory, uint64_t cookie, const CookieRecord& record,
                                    const std::string& key) {
  const std::string what =
      fmt::format("entry {} of directory {}, '{}'", cookie, directory, record.name());
  const CheckedInode* inode = Find(directory);
  if (inode != nullptr && cookie >= inode->next_cookie) {
    findings().Add("record", what + " has a number that was never given");
  }
  const Result<std::string> stored = store_.Get(MakeKey(Table::kDentry, directory, record.name()));
  if (!stored.ok() && stored.code() != ErrorCode::kNotFound) return stored.status();
  const auto dentry = stored.ok() ? DecodeValue<DentryRecord>(*stored) : stored.status();
  if (dentry.ok() && dentry->cookie() == cookie) return Status::Ok();
  findings().Add("cookie", what + " has no such name");
  if (!mended_cookies_.contains(key)) repairs.Delete(key);
  return Status::Ok();
}

Status NamespaceTables::ReadBackrefs() {
  Status bad;
  WEIR_RETURN_IF_ERROR(ForEach('b', 18, [&](std::string_view key, std::string_view) {
    const uint64_t id = ReadBigEndian(key, kFirstNumber);
    const uint64_t directory = ReadBigEndian(key, kSecondNumber);
    const std::string name(key.substr(kNameAfterTwo));
    const Result<std::string> stored = store_.Get(MakeKey(Table::kDentry, directory, name));
    if (!stored.ok() && stored.code() != ErrorCode::kNotFound) bad = stored.status();
    const auto dentry = stored.ok() ? DecodeValue<DentryRecord>(*stored) : stored.status();
    const CheckedInode* inode = Find(id);
    const bool primary = inode != nullptr && inode->parent == directory && inode->name == name;
    if (dentry.ok() && dentry->inode() == id && !primary) return;
    findings().Add("link", fmt::format("inode {} takes '{}' in directory {} for {} link of its own",
                                       id, name, directory, primary ? "a second" : "a"));
    repairs.Delete(key);
  }));
  return bad;
}

Status NamespaceTables::ReadSmallTables() {
  uint64_t truncations = 0, answers = 0;
  WEIR_RETURN_IF_ERROR(ForEach('o', 9, [&](std::string_view key, std::string_view) {
    const uint64_t id = ReadBigEndian(key, kFirstNumber);
    orphans.insert(id);
    if (Find(id) != nullptr) return;
    findings().Add("stray", fmt::format("orphan {} does not exist", id));
    repairs.Delete(key);
  }));
  WEIR_RETURN_IF_ERROR(ForEach('p', 9, [&](std::string_view key, std::string_view value) {
    const uint64_t id = ReadBigEndian(key, kFirstNumber);
    PurgeRecord record;
    Decode(value, fmt::format("purge of inode {}", id), &record);
    purges.insert(id);
    highest_inode = std::max(highest_inode, id);
  }));
  WEIR_RETURN_IF_ERROR(ForEach('t', 9, [&](std::string_view key, std::string_view value) {
    const uint64_t id = ReadBigEndian(key, kFirstNumber);
    TruncateRecord record;
    Decode(value, fmt::format("truncation of inode {}", id), &record);
    ++truncations;
    if (Find(id) == nullptr) {
      findings().Add("intent", fmt::format("truncation of inode {}, which does not exist", id));
    }
  }));
  WEIR_RETURN_IF_ERROR(ForEach('x', 10, [&](std::string_view key, std::string_view) {
    TakeXattr(key, ReadBigEndian(key, kFirstNumber));
  }));
  WEIR_RETURN_IF_ERROR(ForEach('a', 17, [&](std::string_view key, std::string_view value) {
    AnswerRecord record;
    Decode(value, fmt::format("answer {}", ReadBigEndian(key, kSecondNumber)), &record);
    ++answers;
  }));
  Fact("orphans", orphans.size());
  Fact("purges", purges.size());
  Fact("truncations", truncations);
  Fact("answers", answers);
  return Status::Ok();
}

void NamespaceTables::TakeXattr(std::string_view key, uint64_t inode) {
  const CheckedInode* owner = Find(inode);
  if (owner != nullptr && owner->has_xattrs) return;
  findings().Add(owner == nullptr ? "stray" : "record",
                 fmt::format("attribute '{}' of inode {}, which {}", key.substr(9), inode,
                             owner == nullptr ? "does not exist" : "knows of none"));
  if (owner == nullptr) repairs.Delete(key);
}

Status NamespaceTables::CountUnknown() {
  uint64_t unknown = 0;
  const auto it = store_.NewIterator();
  for (it->Seek(""); it->Valid();) {
    const char table = it->key().empty() ? '\0' : it->key()[0];
    if (std::string_view(kTables).find(table) != std::string_view::npos) {
      it->Seek(std::string(1, static_cast<char>(table + 1)));
      continue;
    }
    ++unknown;
    it->Next();
  }
  Fact("unknown_records", unknown);
  return it->status();
}

}  // namespace weir::mds
