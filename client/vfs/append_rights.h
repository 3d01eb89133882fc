// AppendRights: which files this mount may append to, knowing their size.
//
// The MDS gives the right to one mount at a time and asks it back when another mount appends,
// truncates or reports what it wrote there. Before a right goes back, everything that was written
// under it is on the OSDs and its size at the MDS: so the next mount appends behind it. A mount
// alone with a file asks once.
//
// Threads: any; callbacks run with no lock held.
#pragma once

#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "common/base/ids.h"
#include "common/base/result.h"

namespace weir::client {

class AppendRights {
 public:
  using Then = std::function<void(const Status&)>;
  struct Actions {
    // Asks the MDS for the right; its size of the file is known here when it is answered, with the
    // number of the right. 0: it gives none, and this one append goes without.
    std::function<void(InodeId, std::function<void(Result<uint64_t>)>)> ask;
    // Writes and reports what this mount has of the file, whatever comes of it.
    std::function<void(InodeId, std::function<void()>)> settle;
    std::function<void(InodeId, uint64_t grant)> give_back;
  };
  explicit AppendRights(Actions actions) : actions_(std::move(actions)) {}

  // Runs `then` under the right; whoever got an ok calls Done when the size he makes is known here.
  void Use(InodeId inode, Then then);
  void Done(InodeId inode);
  // The MDS wants them back, or nobody has the files open any more.
  void Recall(const std::vector<InodeId>& inodes);
  // The MDS has forgotten whom it gave rights: all that are held go.
  void Lost();

 private:
  struct Right {
    bool held = false;
    uint64_t grant = 0;
    bool asking = false;
    bool wanted_back = false;
    bool settling = false;
    size_t users = 0;
    std::vector<Then> waiting;
  };
  void Ask(InodeId inode);
  void Answered(InodeId inode, const Result<uint64_t>& given);
  void SettleIfDue(InodeId inode);
  void Settled(InodeId inode);

  const Actions actions_;
  std::mutex mutex_;
  std::unordered_map<InodeId, Right> rights_;
};

}  // namespace weir::client
