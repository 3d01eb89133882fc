// AccessTimes: which reads through this mount move access times, and telling the MDS of them, many
// at once and at most a second late. Until it knows, this mount shows the time by itself (Inode).
//
// Reads that the kernel answers from its pages never get here. Access times are no promise: those
// that were not told when the mount died are lost.
// Threads: any; `send` with no lock held.
#pragma once

#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "client/vfs/inode_table.h"
#include "common/base/time.h"

namespace weir::client {

class AccessTimes {
 public:
  enum class Rule { kNever, kRelative, kStrict };  // as mount(8) has them
  struct Options {
    Rule files = Rule::kRelative;  // and symbolic links
    Rule directories = Rule::kRelative;
  };
  struct Read {
    InodeId inode;
    uint64_t age_ns = 0;
  };
  using Send = std::function<void(std::vector<Read>, std::function<void()> done)>;

  AccessTimes(Clock& clock, InodeTable& inodes, const Options& options, Send send)
      : clock_(clock), inodes_(inodes), options_(options), send_(std::move(send)) {}

  void FileRead(const InodePtr& inode) { Note(inode, options_.files); }
  void DirectoryRead(const InodePtr& inode) { Note(inode, options_.directories); }
  [[nodiscard]] bool strict() const { return options_.files == Rule::kStrict; }

  void Tick();
  // Sends what there is, at the end.
  void SendAll();

 private:
  using Pending = std::unordered_map<InodeId, InodePtr>;  // pinned
  void Note(const InodePtr& inode, Rule rule);
  void SendSome(Pending pending);

  Clock& clock_;
  InodeTable& inodes_;
  const Options options_;
  const Send send_;
  std::mutex mutex_;
  Pending pending_;
  TimePoint oldest_;  // of them
};

}  // namespace weir::client
