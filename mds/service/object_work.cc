#include "mds/service/object_work.h"

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/base/prng.h"
#include "common/placement/striper.h"

namespace weir::mds {
namespace {

FileLayout ToFileLayout(const LayoutRecord& record) {
  FileLayout layout;
  layout.stripe_unit = record.stripe_unit();
  layout.stripe_count = record.stripe_count();
  layout.object_size = record.object_size();
  layout.pool = PoolId(record.pool());
  layout.tier = TierName::FromWire(record.tier());
  return layout;
}

// Who cuts off an object now, by which chain. False: nobody has it.
bool Aim(const ClusterMap& map, ObjectOrder* order) {
  const ObjectId object{order->inode, order->index};
  const Chain* const chain = map.ChainOf(order->pool, object);
  if (chain == nullptr || chain->empty()) return false;
  order->osd = chain->head();
  order->slot = map.SlotOf(order->pool, object);
  order->chain_version = chain->version;
  return true;
}

}  // namespace

ObjectWork::ObjectWork(OsdPort& osds, Clock& clock, Callbacks callbacks)
    : osds_(osds), clock_(clock), callbacks_(std::move(callbacks)), ids_(RandomSeed()) {}

void ObjectWork::Purge(const PurgeJob& job) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(job);
    to_free_ += job.data_bytes;
  }
  StartNextPurge();
}

void ObjectWork::StartNextPurge() {
  while (true) {
    const auto item = std::make_shared<Item>();
    PurgeJob job;
    {
      const std::lock_guard lock(mutex_);
      if (stopped_ || waiting_.empty() || purging_ >= kPurgesInFlightMax) return;
      job = std::move(waiting_.front());
      waiting_.pop_front();
      ++purging_;
    }
    item->inode = job.inode;
    item->purge = true;
    item->to_free = job.data_bytes;
    item->orders = OrdersOf(job);
    Start(item);
  }
}

void ObjectWork::Truncate(const TruncateJob& job) {
  const auto item = std::make_shared<Item>();
  item->inode = job.inode;
  item->orders = OrdersOf(job);
  Start(item);
}

std::vector<ObjectOrder> ObjectWork::OrdersOf(const PurgeJob& job) const {
  std::vector<ObjectOrder> orders;
  const auto map = callbacks_.map();
  const auto pool = map->pools.find(PoolId(job.layout.pool()));
  if (pool == map->pools.end()) return orders;
  for (const OsdId osd : pool->second.osds) {
    orders.push_back({ObjectOrder::Kind::kDeleteInode,
                      osd,
                      InodeId(job.inode),
                      0,
                      1,
                      0,
                      kSystemPurge,
                      {},
                      pool->first});
  }
  return orders;
}

std::vector<ObjectOrder> ObjectWork::OrdersOf(const TruncateJob& job) const {
  std::vector<ObjectOrder> orders;
  const auto map = callbacks_.map();
  const FileLayout layout = ToFileLayout(job.record.layout());
  const auto pool = map->pools.find(layout.pool);
  if (pool == map->pools.end()) return orders;
  const TruncatePlan plan = PlanTruncate(layout, job.record.size());
  const ClassId charged(job.record.class_id());
  const InodeId inode(job.inode);
  for (const TruncatePlan::Cut& cut : plan.cuts) {
    ObjectOrder order{ObjectOrder::Kind::kTruncate,
                      {},
                      inode,
                      cut.object_index,
                      0,
                      cut.object_size,
                      charged,
                      layout.tier,
                      layout.pool};
    if (Aim(*map, &order)) orders.push_back(order);
  }
  for (const OsdId osd : pool->second.osds) {
    orders.push_back({ObjectOrder::Kind::kDeleteInode,
                      osd,
                      inode,
                      plan.first_gone,
                      0,
                      0,
                      charged,
                      {},
                      layout.pool});
  }
  return orders;
}

void ObjectWork::Start(const Shared& item) {
  if (item->orders.empty()) {
    Finished(item);
  } else {
    Send(item);
  }
}

void ObjectWork::Send(const Shared& item) {
  std::vector<ObjectOrder> orders;
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    orders.swap(item->orders);
    item->in_flight = orders.size();
    item->retry_at = TimePoint::Max();
  }
  for (const ObjectOrder& order : orders) SendOne(item, order);
}

void ObjectWork::SendOne(const Shared& item, ObjectOrder order) {
  const auto map = callbacks_.map();
  if (order.kind == ObjectOrder::Kind::kTruncate) (void)Aim(*map, &order);
  if (!order.IsFirstStep()) {
    const std::lock_guard lock(mutex_);
    const ObjectId object{order.inode, order.index};
    if (order.op.session == 0) order.op = {ids_.session(), ids_.Begin(object)};
    order.floors = ids_.FloorsOf(object);
  }
  osds_.Send(*map, order, [this, item, order](const OrderEnd& end) { Answered(item, order, end); });
}

void ObjectWork::EndLocked(const ObjectOrder& order) {
  if (order.op.session != 0) ids_.End({order.inode, order.index}, order.op.number);
}

void ObjectWork::Freed(const Shared& item, OsdId osd, uint64_t freed_bytes) {
  {
    const std::lock_guard lock(mutex_);
    const uint64_t counted = std::min(freed_bytes, item->to_free);
    item->to_free -= counted;
    to_free_ -= counted;
  }
  callbacks_.freed(osd, freed_bytes);
}

void ObjectWork::Answered(const Shared& item, const ObjectOrder& order, const OrderEnd& end) {
  if (item->purge && end.freed_bytes > 0) Freed(item, order.osd, end.freed_bytes);
  if (end.status.ok() && end.next_index > 0) {
    ObjectOrder rest = order;
    rest.index = end.next_index;
    rest.objects_max = kObjectsAtOnce;
    rest.op = {};
    {
      const std::lock_guard lock(mutex_);
      EndLocked(order);
      if (stopped_) return;
    }
    SendOne(item, rest);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    item->freed_bytes += end.freed_bytes;
    if (!end.status.ok()) {
      WEIR_LOG_DEBUG("cutting off inode {}: {}", item->inode, end.status.message());
      item->orders.push_back(order);
    } else {
      EndLocked(order);
    }
    if (--item->in_flight > 0) return;
    if (!item->orders.empty()) {
      item->retry_at = clock_.Now() + kRetryAfter;
      failed_.push_back(item);
      return;
    }
  }
  Finished(item);
}

void ObjectWork::Finished(const Shared& item) {
  if (!item->purge) {
    callbacks_.truncated(item->inode, item->freed_bytes);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    --purging_;
    to_free_ -= item->to_free;
  }
  callbacks_.purged(item->inode);
  StartNextPurge();
}

void ObjectWork::Tick() {
  std::vector<Shared> due;
  {
    const std::lock_guard lock(mutex_);
    const TimePoint now = clock_.Now();
    std::vector<Shared> later;
    for (Shared& item : failed_) (item->retry_at <= now ? due : later).push_back(std::move(item));
    failed_ = std::move(later);
  }
  for (const Shared& item : due) Send(item);
}

void ObjectWork::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
}

uint64_t ObjectWork::bytes_to_free() const {
  const std::lock_guard lock(mutex_);
  return to_free_;
}

size_t ObjectWork::pending_purges() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size() + purging_;
}

}  // namespace weir::mds
