// ModelTree: a namespace as plain as it can be, for tests to compare with.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/base/result.h"

namespace weir::mds {

// What POSIX says, as simply as it can be said. Everybody is root.
class ModelTree {
 public:
  struct Node {
    bool directory = false;
    std::map<std::string, int> names;
  };
  ModelTree() { nodes_[0].directory = true; }

  int Find(int parent, const std::string& name) const {
    const auto found = nodes_.at(parent).names.find(name);
    return found == nodes_.at(parent).names.end() ? -1 : found->second;
  }
  ErrorCode Make(int parent, const std::string& name, bool directory, int id) {
    if (!nodes_.at(parent).directory) return ErrorCode::kNotDirectory;
    if (Find(parent, name) >= 0) return ErrorCode::kExists;
    nodes_[id].directory = directory;
    nodes_[parent].names[name] = id;
    return ErrorCode::kOk;
  }
  // `node` is no directory and has a name already.
  ErrorCode Link(int node, int parent, const std::string& name) {
    if (!nodes_.at(parent).directory) return ErrorCode::kNotDirectory;
    if (Find(parent, name) >= 0) return ErrorCode::kExists;
    nodes_[parent].names[name] = node;
    return ErrorCode::kOk;
  }
  ErrorCode Remove(int parent, const std::string& name, bool directory) {
    if (!nodes_.at(parent).directory) return ErrorCode::kNotDirectory;
    const int node = Find(parent, name);
    if (node < 0) return ErrorCode::kNotFound;
    if (directory && !nodes_[node].directory) return ErrorCode::kNotDirectory;
    if (!directory && nodes_[node].directory) return ErrorCode::kIsDirectory;
    if (!nodes_[node].names.empty()) return ErrorCode::kNotEmpty;
    nodes_[parent].names.erase(name);
    return ErrorCode::kOk;
  }
  ErrorCode Rename(int from, const std::string& a, int to, const std::string& b) {
    if (!nodes_.at(from).directory || !nodes_.at(to).directory) return ErrorCode::kNotDirectory;
    const int source = Find(from, a);
    const int target = Find(to, b);
    if (source < 0) return ErrorCode::kNotFound;
    if (source == target) return ErrorCode::kOk;
    if (target >= 0 && nodes_[target].directory && !nodes_[source].directory) {
      return ErrorCode::kIsDirectory;
    }
    if (target >= 0 && !nodes_[target].directory && nodes_[source].directory) {
      return ErrorCode::kNotDirectory;
    }
    if (target >= 0 && !nodes_[target].names.empty()) return ErrorCode::kNotEmpty;
    if (Contains(source, to)) return ErrorCode::kInvalid;
    nodes_[from].names.erase(a);
    nodes_[to].names[b] = source;
    return ErrorCode::kOk;
  }
  bool Contains(int above, int below) const {
    if (above == below) return true;
    for (const auto& [name, child] : nodes_.at(above).names) {
      if (Contains(child, below)) return true;
    }
    return false;
  }
  const std::map<std::string, int>& Names(int node) const { return nodes_.at(node).names; }
  bool IsDirectory(int node) const { return nodes_.at(node).directory; }
  std::vector<int> Reachable() const {
    std::vector<int> found{0};
    for (size_t i = 0; i < found.size(); ++i) {
      for (const auto& [name, child] : Names(found[i])) found.push_back(child);
    }
    return found;
  }

 private:
  std::map<int, Node> nodes_;
};

}  // namespace weir::mds
