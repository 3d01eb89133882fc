#include "mds/check/namespace_check.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "common/base/ids.h"
#include "mds/check/namespace_tables.h"
#include "mds/format/ns_keys_format.h"

namespace weir::mds {
namespace {

class NamespaceCheck {
 public:
  NamespaceCheck(KvStore& store, CheckReport* report) : store_(store), tables_(store, report) {}

  Status Run(bool repair) {
    WEIR_RETURN_IF_ERROR(tables_.Read());
    for (const auto& [id, inode] : tables_.inodes) {
      CheckCounts(id, inode);
      CheckPlace(id, inode);
      CheckOrphan(id, inode);
    }
    CheckReach();
    CheckState();
    return repair ? Repair() : Status::Ok();
  }

 private:
  Findings& findings() { return tables_.findings(); }

  void CheckCounts(uint64_t id, const CheckedInode& inode) {
    if (!inode.decoded) return;
    const bool directory = S_ISDIR(inode.mode);
    uint32_t links = directory ? 2 + inode.subdirectories : inode.links;
    if (directory && inode.links == 0 && id != kRootInode.value) links = 0;
    if (inode.nlink != links) {
      findings().Add("link-count",
                     fmt::format("inode {} counts {} links and has {}", id, inode.nlink, links));
      miscounted_.insert(id);
    }
    if (inode.entries != inode.names) {
      findings().Add("link-count", fmt::format("directory {} counts {} names and has {}", id,
                                               inode.entries, inode.names));
      miscounted_.insert(id);
    }
    if (directory && inode.links > 1) {
      findings().Add("tree", fmt::format("directory {} has {} names", id, inode.links));
    }
  }

  void CheckPlace(uint64_t id, const CheckedInode& inode) {
    if (id == kRootInode.value || inode.links == 0 || inode.primary_found) return;
    findings().Add("record", fmt::format("inode {}: its first link '{}' in directory {} is none",
                                         id, inode.name, inode.parent));
  }

  void CheckOrphan(uint64_t id, const CheckedInode& inode) {
    if (tables_.purges.contains(id)) {
      findings().Add("purge", fmt::format("inode {} exists and is to be deleted", id));
    }
    const bool unnamed = inode.links == 0 && id != kRootInode.value;
    if (unnamed == tables_.orphans.contains(id)) return;
    findings().Add("orphan",
                   fmt::format("inode {} has {} and is {}", id, unnamed ? "no name" : "a name",
                               unnamed ? "no orphan" : "an orphan"));
    // Either way the table follows the names: an inode that nobody holds goes at the next start.
    const std::string key = MakeKey(Table::kOrphan, id);
    if (unnamed) {
      tables_.repairs.Put(key, "");
    } else {
      tables_.repairs.Delete(key);
    }
  }

  // Every directory with a name has the root above it; `reached_` keeps this linear.
  void CheckReach() {
    const CheckedInode* root = tables_.Find(kRootInode.value);
    if (root == nullptr || !S_ISDIR(root->mode)) {
      findings().Add("record", "there is no root directory");
      return;
    }
    reached_.insert(kRootInode.value);
    for (const auto& [id, inode] : tables_.inodes) {
      if (S_ISDIR(inode.mode) && inode.links > 0) Climb(id);
    }
  }

  void Climb(uint64_t start) {
    std::set<uint64_t> path;
    uint64_t at = start;
    while (!reached_.contains(at) && path.insert(at).second) {
      const CheckedInode* inode = tables_.Find(at);
      if (inode == nullptr) break;
      at = inode->parent;
    }
    if (!reached_.contains(at)) {
      findings().Add("tree", fmt::format("directory {}: no way up from {} to the root", start, at));
    }
    reached_.insert(path.begin(), path.end());  // told once
  }

  void CheckState() {
    if (!tables_.has_state) return;
    const StateRecord& state = tables_.state;
    if (state.inode_count() != tables_.inodes.size()) {
      findings().Add("count", fmt::format("the state counts {} inodes, there are {}",
                                          state.inode_count(), tables_.inodes.size()));
    }
    if (state.next_inode() <= tables_.highest_inode) {
      findings().Add("count", fmt::format("the next inode would be {}, {} exists",
                                          state.next_inode(), tables_.highest_inode));
    }
  }

  Status Repair() {
    WEIR_RETURN_IF_ERROR(RepairCounts());
    if (findings().CountOf("count") > 0) {
      StateRecord state = tables_.state;
      state.set_inode_count(tables_.inodes.size());
      state.set_next_inode(std::max(state.next_inode(), tables_.highest_inode + 1));
      tables_.repairs.Put(kStateKey, EncodeValue(state));
    }
    if (tables_.repairs.empty()) return Status::Ok();
    WEIR_RETURN_IF_ERROR(store_.Apply(tables_.repairs, Durability::kDurable));
    for (const char* kind : {"link-count", "count", "cookie", "link", "stray", "orphan"}) {
      findings().Repaired(kind);
    }
    return Status::Ok();
  }

  Status RepairCounts() {
    for (const uint64_t id : miscounted_) {
      const std::string key = MakeKey(Table::kInode, id);
      WEIR_ASSIGN_OR_RETURN(const std::string stored, store_.Get(key));
      Result<InodeRecord> record = DecodeValue<InodeRecord>(stored);
      if (!record.ok()) continue;
      const CheckedInode& inode = *tables_.Find(id);
      const bool removed = inode.links == 0 && id != kRootInode.value;
      record->set_nlink(S_ISDIR(inode.mode) ? (removed ? 0 : 2 + inode.subdirectories)
                                            : inode.links);
      record->set_entries(inode.names);
      tables_.repairs.Put(key, EncodeValue(*record));
    }
    return Status::Ok();
  }

  KvStore& store_;
  NamespaceTables tables_;
  std::set<uint64_t> miscounted_, reached_;
};

}  // namespace

Status CheckNamespace(KvStore& store, const NamespaceCheckOptions& options, CheckReport* report) {
  return NamespaceCheck(store, report).Run(options.repair);
}

}  // namespace weir::mds
