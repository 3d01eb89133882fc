// ClassResolver: brings the tags of open files up to date when tags or names have moved. (Rules
// come with the map: caller_classes.h.)
//
// The watch tells of a new tag epoch at once; every inode of `open_inodes` is then asked for again,
// in batches. A change that comes meanwhile starts another round.
// Threads: any.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
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

  void TagsMoved(uint64_t tag_epoch);
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
  bool running_ = false;
  bool failed_ = false;
  uint64_t wanted_ = 0;
  uint64_t round_epoch_ = 0;  // what was wanted when the running round began
  uint64_t resolved_ = 0;
  std::vector<InodeId> round_;
};

}  // namespace weir::client
