// InodeNews: what the MDS's replies tell of inodes, on its way to where that is known here: clocks,
// tags, attributes, and what may not be answered any more as a change of ours has moved it.
//
// A change of names moves the attributes of directories, and of what has other names since. The
// reply brings those of some; the others are to be asked for (FileLeases::Changed).
// Until that is settled the directories count as changing (DirCache), and the kernel is given
// nothing of them to keep.
//
// Threads: any. Errors: none; of a change whose end nobody knows, everything is to be asked for.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "client/vfs/class_resolver.h"
#include "client/vfs/dir_cache.h"
#include "client/vfs/file_leases.h"
#include "client/vfs/inode_table.h"
#include "common/base/stamps.h"

namespace weir::wire {
class Attr;
class EntryReply;
class TouchedReply;
}  // namespace weir::wire

namespace weir::client {

class InodeNews {
 public:
  // All outlive it.
  InodeNews(InodeTable& inodes, FileLeases& leases, DirCache& directories, ClassResolver& classes,
            Stamps& stamps)
      : inodes_(inodes),
        leases_(leases),
        directories_(directories),
        classes_(classes),
        stamps_(stamps) {}

  // What a reply tells of an inode; what is stamped here from now on is no older.
  FileAttr Heard(const wire::Attr& attr);
  // A reply may tell what class an inode is tagged with. `asked`: of FileLeases::Asked.
  void LearnClass(Inode& inode, const wire::EntryReply& reply, uint64_t asked);
  // A change of ours has moved the attributes of those, and its reply did not bring them.
  void Changed(std::initializer_list<InodeId> inodes);
  // A change of names has been answered, or failed.
  void NamesChanged(DirCache::Changing* changing, const Result<wire::EntryReply>& reply);
  void NamesChanged(DirCache::Changing* changing, const Result<wire::TouchedReply>& reply);

 private:
  void Take(InodeId id, std::span<const wire::Attr* const> told);
  void TakeDirectories(DirCache::Changing* changing, std::span<const wire::Attr* const> told);

  InodeTable& inodes_;
  FileLeases& leases_;
  DirCache& directories_;
  ClassResolver& classes_;
  Stamps& stamps_;
};

}  // namespace weir::client
