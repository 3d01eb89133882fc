// ClassResolver: brings the tags of open files up to date when tags or names have moved. (Rules
// come with the map: caller_classes.h.)
//
// The watch tells of a new tag epoch at once; every inode of `open_inodes` is then asked for again,
// in batches. A change that comes meanwhile starts another round. A reply that was asked for before
// tags moved, and comes by another connection than the watch, may tell an old tag after that round:
// its inode is asked for once more.
// Threads: any.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <unordered_set>
#include <vector>

#include "client/vfs/inode_table.h"

namespace weir::client {

class ClassResolver {
 public:
  struct Answer {
    std::vector<std::optional<ClassId>> classes;  // of their tags, in the order asked
    uint64_t tag_epoch = 0;
  };
  using Ask = std::function<void(const std::vector<InodeId>&, std::function<void(Result<Answer>)>)>;

  ClassResolver(InodeTable& inodes, std::function<std::vector<InodeId>()> open_inodes, Ask ask);

  // `moment`: of a count; what is asked from now on is asked at that moment or a later one.
  void TagsMoved(uint64_t tag_epoch, uint64_t moment = 0);
  // A reply tells the tag of an inode, asked at that moment.
  void Heard(Inode& inode, std::optional<ClassId> tag, uint64_t asked);
  // Starts a round again that failed.
  void Tick();
  // The epoch that all open inodes are known to obey.
  [[nodiscard]] uint64_t resolved_epoch() const;

  static constexpr size_t kBatch = 1024;

 private:
  void StartRound();
  void NextBatch(size_t begin);
  void OnAnswer(size_t begin, const std::vector<InodeId>& batch, Result<Answer> answer);

  InodeTable& inodes_;
  const std::function<std::vector<InodeId>()> open_inodes_;
  const Ask ask_;
  mutable std::mutex mutex_;
  std::atomic<uint64_t> moved_at_{0};
  bool running_ = false;
  bool failed_ = false;
  uint64_t wanted_ = 0;
  uint64_t round_epoch_ = 0;  // what was wanted when the running round began
  uint64_t resolved_ = 0;
  std::unordered_set<InodeId> again_;  // asked for in the next round, whether open or not
  std::vector<InodeId> round_;
};

}  // namespace weir::client
