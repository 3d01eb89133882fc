#include "client/vfs/node_numbers.h"

#include <algorithm>

namespace weir::client {

uint64_t NodeNumbers::Unused(InodeId directory, const std::vector<Node>& nodes) {
  uint64_t number = directory.value;
  const auto is_it = [&number](const Node& node) { return node.number == number; };
  while (std::any_of(nodes.begin(), nodes.end(), is_it)) number += kInode + 1;
  return number;
}

NodeNumbers::Given NodeNumbers::Give(InodeId directory, const Place& place) {
  Given given;
  const std::lock_guard lock(mutex_);
  std::vector<Node>& nodes = directories_[directory];
  const bool itself = place.name == ".";
  const bool above = place.name == "..";
  for (Node& node : nodes) {
    const bool there = node.place == place || node.place.name.empty();
    if (itself ? node.number != place.parent : !above && !there) continue;
    if (!itself && !above) node.place = place;
    ++node.lookups;
    given.number = node.number;
    return given;
  }
  if (itself || above) {
    given.number = itself ? place.parent : Unused(directory, nodes);
    nodes.push_back({given.number, {}, 1});
    return given;
  }
  for (const Node& node : nodes) {
    given.elsewhere.push_back(node.place);
    given.others.push_back(node.number);
  }
  given.number = Unused(directory, nodes);
  nodes.push_back({given.number, place, 1});
  return given;
}

void NodeNumbers::Moved(InodeId directory, const Place& from, const Place& to) {
  const std::lock_guard lock(mutex_);
  const auto found = directories_.find(directory);
  if (found == directories_.end()) return;
  for (Node& node : found->second) {
    if (node.place == from) node.place = to;
  }
}

void NodeNumbers::Forget(uint64_t number, uint64_t count) {
  const std::lock_guard lock(mutex_);
  const auto found = directories_.find(InodeOf(number));
  if (found == directories_.end()) return;
  std::erase_if(found->second, [&](Node& node) {
    if (node.number != number) return false;
    node.lookups -= std::min(node.lookups, count);
    return node.lookups == 0;
  });
  if (found->second.empty()) directories_.erase(found);
}

std::vector<uint64_t> NodeNumbers::Of(InodeId inode) const {
  const std::lock_guard lock(mutex_);
  const auto found = directories_.find(inode);
  if (found == directories_.end()) return {inode.value};
  std::vector<uint64_t> numbers;
  for (const Node& node : found->second) numbers.push_back(node.number);
  return numbers;
}

bool NodeNumbers::Several(InodeId directory) const {
  const std::lock_guard lock(mutex_);
  const auto found = directories_.find(directory);
  return found != directories_.end() && found->second.size() > 1;
}

}  // namespace weir::client
