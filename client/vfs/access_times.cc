#include "client/vfs/access_times.h"

#include <algorithm>
#include <utility>

namespace weir::client {
namespace {
constexpr Duration kGather = std::chrono::seconds(1);
constexpr size_t kReadsPerMessage = 1024;
}  // namespace

bool AccessTimes::Counts(const Inode& inode, Rule rule) const {
  return rule != Rule::kNever && inode.ReadCounts(roughly_now_, rule == Rule::kStrict);
}

void AccessTimes::Note(const InodePtr& inode, Rule rule) {
  if (!Counts(*inode, rule)) return;
  inode->WasRead(clock_.WallNow().ns);
  std::lock_guard lock(mutex_);
  pending_.strict |= rule == Rule::kStrict;
  if (!pending_.inodes.emplace(inode->id(), inode).second) return;
  inodes_.Pin(inode->id());
  if (pending_.inodes.size() == 1) oldest_ = clock_.Now();
}

void AccessTimes::Tick() {
  roughly_now_ = clock_.WallNow().ns;
  Pending pending;
  {
    std::lock_guard lock(mutex_);
    if (pending_.inodes.empty() || clock_.Now() - oldest_ < kGather) return;
    std::swap(pending, pending_);
  }
  SendSome(std::move(pending));
}

void AccessTimes::SendAll() {
  Pending pending;
  {
    std::lock_guard lock(mutex_);
    std::swap(pending, pending_);
  }
  SendSome(std::move(pending));
}

void AccessTimes::SendSome(Pending pending) {
  const int64_t now = clock_.WallNow().ns;
  std::vector<std::pair<InodePtr, int64_t>> told;  // and when each was read
  std::vector<Read> reads;
  const auto send = [&] {
    send_(std::exchange(reads, {}), pending.strict, [this, told = std::exchange(told, {})] {
      for (const auto& [inode, at] : told) {
        inode->ToldRead(at);
        inodes_.Unpin(inode->id());
      }
    });
  };
  for (auto& [id, inode] : pending.inodes) {
    const int64_t at = inode->read_at();
    if (at != 0) {  // 0: somebody has set another time since
      reads.push_back({id, static_cast<uint64_t>(std::max<int64_t>(now - at, 0))});
    }
    told.emplace_back(std::move(inode), at);
    if (told.size() == kReadsPerMessage) send();
  }
  if (!told.empty()) send();
}

}  // namespace weir::client
