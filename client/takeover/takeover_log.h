// TakeoverLog: a mount's notes for its successor: each change of what MountState holds, written
// into a RecordFile before the kernel hears of it. Whoever dies between a note and what it tells of
// leaves one that errs on the safe side: a file that is taken for written and was stored, a change
// that the MDS is asked for again under the same id.
//
// A mount that outgrows the file cannot be taken over any more, and says so in the log.
// Threads: any.
// Errors:  Open: as RecordFile; kCorrupt when a record is of a newer version.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/takeover/mount_state.h"
#include "client/takeover/record_file.h"

namespace weir::client {

class TakeoverLog {
 public:
  // Reads what the predecessor left, if there was one, and begins the next life: with a session
  // that is `new_session` when there was none.
  static Result<std::unique_ptr<TakeoverLog>> Open(int fd, uint64_t new_session);

  // As it was left when this life began: what was dirty is lost.
  [[nodiscard]] const MountState& left() const { return left_; }
  [[nodiscard]] bool is_successor() const { return left_.session != 0; }
  [[nodiscard]] uint64_t session() const { return session_; }
  // Ids of requests and tickets of this life are above; none of an earlier one was.
  [[nodiscard]] uint64_t ids_above() const { return lives_ << 40; }

  void Init(std::string request);
  // That the kernel is to know inodes by, unless a predecessor has told it of another.
  uint32_t Generation(uint32_t ours);
  void Opened(OpenedFile file);
  void Closed(uint64_t number, InodeId inode);
  void Released(const std::vector<InodeId>& inodes);
  void Dirty(InodeId inode);
  void Clean(InodeId inode);
  void Locked(const LockAsk& ask);
  void ChangeBegins(uint64_t unique, uint64_t request_id);
  // A write to the end of a file goes to `offset`.
  void AppendBegins(uint64_t unique, uint64_t offset);
  // Of either.
  void ChangeEnds(uint64_t unique);
  void Fenced(uint64_t epoch);
  void Told(uint64_t number);

  // The id under which a predecessor asked the MDS for this; 0: none has.
  [[nodiscard]] uint64_t IdOf(uint64_t unique) const;
  // The handle that a predecessor made for this and did not tell the kernel of; 0: none.
  [[nodiscard]] uint64_t HandleOf(uint64_t unique) const;
  // Where a predecessor began to write this.
  [[nodiscard]] std::optional<uint64_t> AppendOf(uint64_t unique) const;
  [[nodiscard]] std::vector<uint64_t> LeftIds() const;

 private:
  TakeoverLog(RecordFile file, MountState left) : file_(std::move(file)), left_(std::move(left)) {}
  void Note(const takeover::Record& record);

  std::mutex mutex_;
  RecordFile file_;
  const MountState left_;
  MountState state_;
  uint64_t session_ = 0;
  uint64_t lives_ = 0;
  uint64_t rewrite_at_ = 0;  // bytes
  bool spoilt_ = false;
};

}  // namespace weir::client
