#include "client/remote/object_stamps.h"

#include <algorithm>
#include <utility>

namespace weir::client {

void ObjectStamps::SetMap(std::shared_ptr<const ClusterMap> map) {
  if (map_ != nullptr) {
    for (const auto& [id, entry] : map_->classes) {
      if (map->classes.contains(id)) continue;
      tokens_sent_.Forget(id);
      requests_sent_.Forget(id);
    }
  }
  map_ = std::move(map);
  cluster_hash_ = map_->ClusterHash();
}

ObjectSender::Stamp ObjectStamps::Leaves(PendingOp* pending) {
  const ObjectOp& op = pending->op;
  pending->delays.resize(std::min(pending->delays.size(), pending->path.size()));
  for (size_t i = pending->delays.size(); i < pending->path.size(); ++i) {
    pending->delays.push_back(DelayOf(op.class_id, pending->path[i], op.cost()));
  }
  ObjectSender::Stamp stamp;
  stamp.osd = pending->osd;
  stamp.delays = pending->delays;
  stamp.epoch = map_->epoch.value;
  stamp.cluster = cluster_hash_;
  stamp.slot = pending->slot;
  stamp.chain_version = pending->chain_version;
  if (op.write && ids_.session() != 0) {
    if (pending->number == 0) pending->number = ids_.Begin(op.object);
    stamp.op = {ids_.session(), pending->number};
    stamp.floors = ids_.FloorsOf(op.object);
  }
  return stamp;
}

// In the unit of the OSD's cost.
uint64_t ObjectStamps::DelayOf(ClassId id, OsdId osd, uint64_t bytes) {
  const int64_t tokens = tokens_sent_.OnSend(id, osd, TokensOf(bytes));
  const int64_t requests = requests_sent_.OnSend(id, osd, 1);
  const auto entry = map_->osds.find(osd);
  const bool counts_requests =
      entry != map_->osds.end() && entry->second.qos.cost == CostKind::kRequests;
  return static_cast<uint64_t>(counts_requests ? requests : tokens);
}

void ObjectStamps::End(PendingOp* pending) {
  if (pending->number != 0) ids_.End(pending->op.object, std::exchange(pending->number, 0));
}

}  // namespace weir::client
