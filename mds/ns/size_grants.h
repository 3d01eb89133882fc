// SizeGrants: how far sessions were allowed to write beyond what files are charged for. The room
// that a grant promises counts as taken until the session reports the data, cuts the file, closes
// it or ends. In memory only: after a restart sessions ask again. Threads: under the NamespaceDb
// lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <unordered_map>

namespace weir::mds {

class SizeGrants {
 public:
  // The session may write the file, which counts against that class, up to `end`. Charged(inode)
  // has to follow.
  void Allow(uint64_t session, uint64_t inode, uint32_t class_id, uint64_t end) {
    Grant& grant = grants_[inode];
    Count(grant, 0);
    grant.class_id = class_id;
    uint64_t& granted = grant.ends[session];
    granted = std::max(granted, end);
  }
  // The file is charged to that class, so many bytes: what is promised beyond is the rest.
  void Charged(uint64_t inode, uint32_t class_id, uint64_t bytes) {
    const auto found = grants_.find(inode);
    if (found == grants_.end()) return;
    Grant& grant = found->second;
    grant.charged = class_id == grant.class_id ? bytes : 0;
    Recount(grant);
  }
  void End(uint64_t session, uint64_t inode) {
    const auto found = grants_.find(inode);
    if (found == grants_.end() || found->second.ends.erase(session) == 0) return;
    Recount(found->second);
    if (found->second.ends.empty()) grants_.erase(found);
  }
  void EndSession(uint64_t session) {
    for (auto it = grants_.begin(); it != grants_.end();) {
      const uint64_t inode = (it++)->first;
      End(session, inode);
    }
  }
  void EndFile(uint64_t inode) {
    const auto found = grants_.find(inode);
    if (found == grants_.end()) return;
    Count(found->second, 0);
    grants_.erase(found);
  }

  // Bytes that a class's files may still grow by, on somebody's word; of one file.
  [[nodiscard]] uint64_t PromisedIn(uint32_t class_id) const {
    const auto found = promised_.find(class_id);
    return found == promised_.end() ? 0 : found->second;
  }
  [[nodiscard]] uint64_t PromisedOf(uint64_t inode, uint32_t class_id) const {
    const auto found = grants_.find(inode);
    if (found == grants_.end() || found->second.class_id != class_id) return 0;
    return found->second.beyond;
  }

 private:
  struct Grant {
    uint32_t class_id = 0;
    uint64_t charged = 0;               // to that class
    uint64_t beyond = 0;                // of the largest end: what the class has promised
    std::map<uint64_t, uint64_t> ends;  // by session
  };
  void Count(Grant& grant, uint64_t beyond) {
    uint64_t& sum = promised_[grant.class_id];
    sum = sum - grant.beyond + beyond;
    grant.beyond = beyond;
    if (sum == 0) promised_.erase(grant.class_id);
  }
  void Recount(Grant& grant) {
    uint64_t end = 0;
    for (const auto& [session, granted] : grant.ends) end = std::max(end, granted);
    Count(grant, end > grant.charged ? end - grant.charged : 0);
  }

  std::unordered_map<uint64_t, Grant> grants_;
  std::map<uint32_t, uint64_t> promised_;
};

}  // namespace weir::mds
