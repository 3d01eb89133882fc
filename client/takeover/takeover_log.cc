#include "client/takeover/takeover_log.h"

#include <algorithm>

#include "client/takeover/takeover.pb.h"
#include "common/base/log.h"

namespace weir::client {
namespace {
constexpr uint64_t kRewriteLeast = 1 << 20;
// The kernel's numbers of requests that it gives out again have this bit, which the first had not.
constexpr uint32_t kGenerationOfOld = 1;  // where nobody has written it down
constexpr uint64_t kResent = uint64_t{1} << 63;
}  // namespace

Result<std::unique_ptr<TakeoverLog>> TakeoverLog::Open(int fd, uint64_t new_session) {
  WEIR_ASSIGN_OR_RETURN(RecordFile file, RecordFile::Open(fd));
  MountState left;
  bool known = true;
  file.Read([&](std::string_view bytes) {
    takeover::Record record;
    known = known && record.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) &&
            left.Apply(record);
  });
  if (!known) {
    return Status(ErrorCode::kCorrupt,
                  "the state of the mount was written by a newer version of weirfs");
  }
  left.BeginLife();
  std::unique_ptr<TakeoverLog> log(new TakeoverLog(std::move(file), std::move(left)));
  log->state_ = log->left_;
  MountState& state = log->state_;
  if (state.session == 0) state.session = new_session;
  if (!log->file_.Rewrite(state.Snapshot())) {
    return Status(ErrorCode::kNoSpace, "the state of the mount does not fit");
  }
  log->session_ = state.session;
  log->lives_ = state.lives;
  log->rewrite_at_ = std::max(4 * log->file_.used(), kRewriteLeast);
  return log;
}

void TakeoverLog::Note(const takeover::Record& record) {
  const std::string bytes = record.SerializeAsString();
  const std::lock_guard lock(mutex_);
  if (spoilt_) return;
  state_.Apply(record);
  if (file_.used() < rewrite_at_ && file_.Append(bytes)) return;
  if (file_.Rewrite(state_.Snapshot())) {
    rewrite_at_ = std::max(4 * file_.used(), kRewriteLeast);
    return;
  }
  spoilt_ = true;
  file_.Spoil();
  WEIR_LOG_WARN("{} open files are too many to hand on: this mount ends with its process",
                state_.handles.size());
}

void TakeoverLog::Init(std::string request) {
  takeover::Record record;
  record.set_init(std::move(request));
  Note(record);
}

uint32_t TakeoverLog::Generation(uint32_t ours) {
  if (is_successor()) return std::max(left_.generation, kGenerationOfOld);
  takeover::Record record;
  record.set_generation(ours);
  Note(record);
  return ours;
}

void TakeoverLog::Opened(OpenedFile file) {
  file.request &= ~kResent;
  Note(OpenedRecord(file));
}

void TakeoverLog::Closed(uint64_t number, InodeId inode) {
  takeover::Record record;
  record.mutable_closed()->set_number(number);
  record.mutable_closed()->set_inode(inode.value);
  Note(record);
}

void TakeoverLog::Released(const std::vector<InodeId>& inodes) {
  takeover::Record record;
  for (const InodeId inode : inodes) record.mutable_released()->add_inodes(inode.value);
  Note(record);
}

void TakeoverLog::Dirty(InodeId inode) {
  takeover::Record record;
  record.set_dirty(inode.value);
  Note(record);
}

void TakeoverLog::Clean(InodeId inode) {
  takeover::Record record;
  record.set_clean(inode.value);
  Note(record);
}

void TakeoverLog::Locked(const LockAsk& ask) {
  Note(LockedRecord(ask));
}

void TakeoverLog::ChangeBegins(uint64_t unique, uint64_t request_id) {
  takeover::Record record;
  record.mutable_change_begins()->set_unique(unique & ~kResent);
  record.mutable_change_begins()->set_request_id(request_id);
  Note(record);
}

void TakeoverLog::AppendBegins(uint64_t unique, uint64_t offset) {
  takeover::Record record;
  record.mutable_append_begins()->set_unique(unique & ~kResent);
  record.mutable_append_begins()->set_offset(offset);
  Note(record);
}

void TakeoverLog::ChangeEnds(uint64_t unique) {
  takeover::Record record;
  record.set_change_ends(unique & ~kResent);
  Note(record);
}

void TakeoverLog::Fenced(uint64_t epoch) {
  takeover::Record record;
  record.set_fenced(epoch);
  Note(record);
}

void TakeoverLog::Told(uint64_t number) {
  takeover::Record record;
  record.set_told(number);
  Note(record);
}

uint64_t TakeoverLog::IdOf(uint64_t unique) const {
  if ((unique & kResent) == 0) return 0;
  const auto found = left_.changes.find(unique & ~kResent);
  return found == left_.changes.end() ? 0 : found->second;
}

uint64_t TakeoverLog::HandleOf(uint64_t unique) const {
  if ((unique & kResent) == 0) return 0;
  const auto found = std::find_if(left_.handles.begin(), left_.handles.end(), [&](const auto& one) {
    return one.second.request == (unique & ~kResent);
  });
  return found == left_.handles.end() ? 0 : found->first;
}

std::optional<uint64_t> TakeoverLog::AppendOf(uint64_t unique) const {
  if ((unique & kResent) == 0) return std::nullopt;
  const auto found = left_.appends.find(unique & ~kResent);
  return found == left_.appends.end() ? std::nullopt : std::optional(found->second);
}

std::vector<uint64_t> TakeoverLog::LeftIds() const {
  std::vector<uint64_t> ids;
  for (const auto& [unique, id] : left_.changes) ids.push_back(id);
  return ids;
}

}  // namespace weir::client
