// CheckNamespace: every table of the namespace store against every other (weir-mds --fsck).
//
//   record       a key or value that does not decode, a record that must exist and does not
//   dangling     a name of an inode, or in a directory, that does not exist
//   type         a name that says another type than its inode
//   cookie       what readdir walks is not what is there
//   link-count   nlink, or the number of entries, is not what is there
//   link         an inode whose primary link, or whose other links, are not its names
//   tree         a directory that the root does not reach, or that has two names
//   orphan       an inode without a name that is not in the table of orphans, or with one and there
//   purge        data to be deleted of an inode that is alive
//   intent       a truncation of an inode that does not exist
//   stray        a record about an inode that does not exist
//   count        the number of inodes, or the next one, in the state record
//
// Repaired is what follows from the names without a doubt: link-count, count, cookie and link
// (of links besides the primary), stray, and orphans that are missing from their table.
// Memory: some hundred bytes per inode. Threads: one; nobody else changes the store.
#pragma once

#include "common/base/result.h"
#include "common/fsck/findings.h"
#include "common/kv/kv_store.h"

namespace weir::mds {

struct NamespaceCheckOptions {
  bool repair = false;
};

// Facts: inodes, directories, names, orphans, purges, truncations, answers, unknown_records (of
// tables that this version does not know). Errors: kIo and the like of the store.
Status CheckNamespace(KvStore& store, const NamespaceCheckOptions& options, CheckReport* report);

}  // namespace weir::mds
