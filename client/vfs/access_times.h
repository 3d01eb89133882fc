// AccessTimes: which reads through this mount move access times, and telling the MDS of them, many
// at once and at most a second late. Until it knows, this mount shows the time by itself (Inode).
//
// Reads that the kernel answers from its pages never get here: at an open for reading it is to be
// made to ask when FileReadCounts. Access times are no promise: those that were not told when the
// mount died are lost.
// Threads: any; `send` and `rules` with no lock held.
#pragma once

#include <atomic>
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
  struct Rules {
    Rule files = Rule::kRelative;  // and symbolic links
    Rule directories = Rule::kRelative;
    friend bool operator==(const Rules&, const Rules&) = default;
  };
  struct Read {
    InodeId inode;
    uint64_t age_ns = 0;
  };
  // `strict`: any read counts.
  using Send = std::function<void(std::vector<Read>, bool strict, std::function<void()> done)>;

  // `rules`: those that hold right now; asked for every read.
  AccessTimes(Clock& clock, InodeTable& inodes, std::function<Rules()> rules, Send send)
      : clock_(clock),
        inodes_(inodes),
        rules_(std::move(rules)),
        send_(std::move(send)),
        roughly_now_(clock.WallNow().ns) {}

  void FileRead(const InodePtr& inode) { Note(inode, rules_().files); }
  void DirectoryRead(const InodePtr& inode) { Note(inode, rules_().directories); }
  // Whether a read would be noted.
  [[nodiscard]] bool FileReadCounts(const Inode& inode) const {
    return Counts(inode, rules_().files);
  }
  [[nodiscard]] bool DirectoryReadCounts(const Inode& inode) const {
    return Counts(inode, rules_().directories);
  }
  [[nodiscard]] bool EachDirectoryReadCounts() const {
    return rules_().directories == Rule::kStrict;
  }

  void Tick();
  // The first read for long: Tick has not looked at the clock lately.
  void Wake() { roughly_now_ = clock_.WallNow().ns; }
  // Sends what there is, at the end.
  void SendAll();

 private:
  struct Pending {
    std::unordered_map<InodeId, InodePtr> inodes;  // pinned
    bool strict = false;                           // some of them count by that rule only
  };
  [[nodiscard]] bool Counts(const Inode& inode, Rule rule) const;
  void Note(const InodePtr& inode, Rule rule);
  void SendSome(Pending pending);

  Clock& clock_;
  InodeTable& inodes_;
  const std::function<Rules()> rules_;
  const Send send_;
  std::atomic<int64_t> roughly_now_;  // as of the last tick: for what is a day old
  std::mutex mutex_;
  Pending pending_;
  TimePoint oldest_;  // of them
};

}  // namespace weir::client
