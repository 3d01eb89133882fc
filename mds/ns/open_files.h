// OpenFiles: which session holds which inode open. In memory only: after a restart sessions reclaim
// theirs. Threads: under the NamespaceDb lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace weir::mds {

class OpenFiles {
 public:
  // `write`: may change data. A session that opened before keeps what it had.
  void Open(uint64_t session, uint64_t inode, bool write) {
    bool& writes = holders_[inode][session];
    writes = writes || write;
    inodes_[session].insert(inode);
  }
  // As before an Open that did not happen. None: it was not open; else whether for writing.
  void TakeBack(uint64_t session, uint64_t inode, std::optional<bool> before) {
    if (!before.has_value()) return Close(session, inode);
    holders_[inode][session] = *before;
  }
  void Close(uint64_t session, uint64_t inode) {
    if (const auto held = inodes_.find(session); held != inodes_.end()) {
      held->second.erase(inode);
      if (held->second.empty()) inodes_.erase(held);
    }
    const auto holders = holders_.find(inode);
    if (holders == holders_.end()) return;
    holders->second.erase(session);
    if (holders->second.empty()) holders_.erase(holders);
  }
  [[nodiscard]] std::vector<uint64_t> OpenBy(uint64_t session) const {
    const auto held = inodes_.find(session);
    if (held == inodes_.end()) return {};
    return {held->second.begin(), held->second.end()};
  }
  // Closes all of a session; returns what it had open.
  std::vector<uint64_t> CloseAll(uint64_t session) {
    std::vector<uint64_t> closed = OpenBy(session);
    for (const uint64_t inode : closed) Close(session, inode);
    return closed;
  }
  [[nodiscard]] std::vector<uint64_t> WrittenBy(uint64_t session) const {
    std::vector<uint64_t> written;
    const auto held = inodes_.find(session);
    if (held == inodes_.end()) return written;
    for (const uint64_t inode : held->second) {
      if (IsWrittenBy(session, inode)) written.push_back(inode);
    }
    return written;
  }
  [[nodiscard]] std::vector<uint64_t> Sessions() const {
    std::vector<uint64_t> sessions;
    sessions.reserve(inodes_.size());
    for (const auto& [session, inodes] : inodes_) sessions.push_back(session);
    return sessions;
  }
  [[nodiscard]] bool IsOpen(uint64_t inode) const { return holders_.contains(inode); }
  [[nodiscard]] bool OpenElsewhere(uint64_t session, uint64_t inode) const {
    const auto holders = holders_.find(inode);
    if (holders == holders_.end()) return false;
    return holders->second.size() > (holders->second.contains(session) ? 1 : 0);
  }
  [[nodiscard]] bool IsOpenBy(uint64_t session, uint64_t inode) const {
    const auto holders = holders_.find(inode);
    return holders != holders_.end() && holders->second.contains(session);
  }
  [[nodiscard]] bool IsWritten(uint64_t inode) const {
    const auto holders = holders_.find(inode);
    if (holders == holders_.end()) return false;
    return std::any_of(holders->second.begin(), holders->second.end(),
                       [](const auto& holder) { return holder.second; });
  }
  [[nodiscard]] bool IsWrittenBy(uint64_t session, uint64_t inode) const {
    return IsOpenBy(session, inode) && holders_.at(inode).at(session);
  }
  // Has a file open of which it may change data.
  [[nodiscard]] bool MayWrite(uint64_t session) const {
    const auto held = inodes_.find(session);
    if (held == inodes_.end()) return false;
    return std::any_of(held->second.begin(), held->second.end(),
                       [&](uint64_t inode) { return holders_.at(inode).at(session); });
  }
  // Nobody else has it open at all.
  [[nodiscard]] bool WritesAlone(uint64_t session, uint64_t inode) const {
    const auto holders = holders_.find(inode);
    if (holders == holders_.end() || holders->second.size() != 1) return false;
    const auto [holder, writes] = *holders->second.begin();
    return holder == session && writes;
  }
  [[nodiscard]] bool WrittenElsewhere(uint64_t session, uint64_t inode) const {
    const auto holders = holders_.find(inode);
    if (holders == holders_.end()) return false;
    for (const auto& [holder, writes] : holders->second) {
      if (holder != session && writes) return true;
    }
    return false;
  }

 private:
  std::unordered_map<uint64_t, std::unordered_map<uint64_t, bool>> holders_;
  std::unordered_map<uint64_t, std::unordered_set<uint64_t>> inodes_;
};

}  // namespace weir::mds
