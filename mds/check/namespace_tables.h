// What CheckNamespace keeps of the tables, and what reads them. Internal to mds/check.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>

#include "mds/check/namespace_check.h"
#include "mds/format/ns_values_format.h"

namespace weir::mds {

// An inode as its record says and as the names make it.
struct CheckedInode {
  uint32_t mode = 0, nlink = 0;
  uint64_t parent = 0, entries = 0, next_cookie = 0;
  std::string name;  // of the primary link
  bool decoded = false, has_xattrs = false;
  bool primary_found = false;
  uint32_t links = 0, subdirectories = 0;  // found
  uint64_t names = 0;                      // found in it
};

class NamespaceTables {
 public:
  NamespaceTables(KvStore& store, CheckReport* report) : store_(store), report_(*report) {}

  // Reads all tables; findings about single records.
  Status Read();

  using Inodes = std::unordered_map<uint64_t, CheckedInode>;
  Inodes inodes;
  StateRecord state;
  bool has_state = false;
  std::set<uint64_t> orphans, purges;
  uint64_t highest_inode = 0;  // ever seen
  // Changes that make it right again.
  WriteBatch repairs;

  [[nodiscard]] CheckedInode* Find(uint64_t inode);
  Findings& findings() { return report_.findings; }

 private:
  struct Name {
    uint64_t directory, cookie, inode;
    std::string name;
    uint32_t type;
  };
  // Calls `visit` for each record of a table whose key has at least `key_bytes`.
  template <typename Visit>
  Status ForEach(char table, size_t key_bytes, Visit visit);
  template <typename Record>
  bool Decode(std::string_view value, const std::string& what, Record* record);
  Status ReadMeta();
  Status ReadInodes();
  Status ReadNames();
  void TakeName(const Name& name);
  Status ReadCookies();
  Status ReadBackrefs();
  Status CheckCookie(uint64_t directory, uint64_t cookie, const CookieRecord& record,
                     const std::string& key);
  Status ReadSmallTables();
  void TakeXattr(std::string_view key, uint64_t inode);
  Status CountUnknown();
  void Fact(const char* key, uint64_t value) { report_.facts.emplace_back(key, value); }

  KvStore& store_;
  CheckReport& report_;
  std::set<std::string> mended_cookies_;  // keys that `repairs` puts
};

}  // namespace weir::mds
