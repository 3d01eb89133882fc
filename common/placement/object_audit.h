// ObjectAudit: whether the objects at the OSDs are those of the files at the MDS.
//
//   leak        an object of an inode that is not there, nor waits to be purged
//   misplaced   an object at an OSD where the map has none of that file
//   overlong    an object that is longer than its file's layout lets it be
//   behind-end  an object that lies wholly behind the end of its file; what a mount wrote and had
//               not reported when it died. It goes with the file, and is no damage
//
// Of a cluster at work: list the objects first and look for their inodes afterwards, since inodes
// come before their objects, go after them, and their numbers are never used twice.
// Pure. Threads: one.
#pragma once

#include <optional>

#include "common/base/ids.h"
#include "common/fsck/findings.h"
#include "common/placement/cluster_map.h"
#include "common/placement/striper.h"

namespace weir {

// What the MDS says of an inode.
struct AuditedFile {
  FileLayout layout;
  uint64_t size = 0;
  bool purging = false;  // its objects are being deleted; size and layout may be missing
};

class ObjectAudit {
 public:
  explicit ObjectAudit(const ClusterMap& map) : map_(map) {}

  // `file`: none: the MDS knows no such inode.
  void Saw(OsdId osd, ObjectId id, uint64_t size, const std::optional<AuditedFile>& file);

  // Facts: objects, bytes, purging_objects, behind_end_objects.
  [[nodiscard]] CheckReport Report() const;

 private:
  const ClusterMap& map_;
  Findings findings_;
  uint64_t objects_ = 0, bytes_ = 0, purging_ = 0, behind_end_ = 0;
};

}  // namespace weir
