#include "osd/qos/dispatch/finish_order.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/prng.h"

namespace weir::osd::qos {

void FinishOrder::Update(uint32_t index) {
  Node& node = nodes_[index];
  const uint32_t before = CountOf(node.left);
  node.count = before + 1 + CountOf(node.right);
  node.least = Earlier(node.finish, before + 1);
  if (node.left != kNone) node.least = std::min(node.least, nodes_[node.left].least);
  if (node.right != kNone) {
    node.least = std::min(node.least, Earlier(nodes_[node.right].least, before + 1));
  }
}

void FinishOrder::UpdateAll(uint32_t index) {
  if (index == kNone) return;
  UpdateAll(nodes_[index].left);
  UpdateAll(nodes_[index].right);
  Update(index);
}

void FinishOrder::Split(uint32_t node, int64_t finish, uint64_t sequence, uint32_t* left,
                        uint32_t* right) {
  if (node == kNone) {
    *left = *right = kNone;
    return;
  }
  if (Before(nodes_[node], finish, sequence)) {
    uint32_t middle = kNone;
    Split(nodes_[node].right, finish, sequence, &middle, right);
    nodes_[node].right = middle;
    *left = node;
  } else {
    uint32_t middle = kNone;
    Split(nodes_[node].left, finish, sequence, left, &middle);
    nodes_[node].left = middle;
    *right = node;
  }
  Update(node);
}

uint32_t FinishOrder::Merge(uint32_t left, uint32_t right) {
  if (left == kNone) return right;
  if (right == kNone) return left;
  if (nodes_[left].priority > nodes_[right].priority) {
    const uint32_t merged = Merge(nodes_[left].right, right);
    nodes_[left].right = merged;
    Update(left);
    return left;
  }
  const uint32_t merged = Merge(left, nodes_[right].left);
  nodes_[right].left = merged;
  Update(right);
  return right;
}

void FinishOrder::Add(Request* request) {
  uint32_t index = static_cast<uint32_t>(nodes_.size());
  if (free_.empty()) {
    nodes_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
    nodes_[index] = Node{};
  }
  Node& node = nodes_[index];
  node.finish = request->finish_time.ns;
  node.sequence = request->sequence;
  node.request = request;
  node.priority = static_cast<uint32_t>(MixHash(request->sequence, 0));
  Update(index);
  uint32_t left = kNone;
  uint32_t right = kNone;
  Split(root_, request->finish_time.ns, request->sequence, &left, &right);
  root_ = Merge(Merge(left, index), right);
}

void FinishOrder::Remove(const Request& request) {
  uint32_t left = kNone;
  uint32_t rest = kNone;
  uint32_t self = kNone;
  uint32_t right = kNone;
  Split(root_, request.finish_time.ns, request.sequence, &left, &rest);
  Split(rest, request.finish_time.ns, request.sequence + 1, &self, &right);
  WEIR_CHECK(self != kNone && nodes_[self].request == &request, "the request is in the order");
  free_.push_back(self);
  root_ = Merge(left, right);
}

Request* FinishOrder::First() const {
  uint32_t node = root_;
  while (nodes_[node].left != kNone) node = nodes_[node].left;
  return nodes_[node].request;
}

void FinishOrder::SetService(Duration service) {
  if (service.count() == service_) return;
  service_ = service.count();
  UpdateAll(root_);
}

}  // namespace weir::osd::qos
