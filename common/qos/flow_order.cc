#include "common/qos/flow_order.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/qos/lane.h"

namespace weir {

// By the part of the request that each of `active` would have had, but not far beyond who is
// served: those who are idle now and then are not counted all the time.
void FlowOrder::Advance(double* time, double start, const Item& item, uint64_t active) {
  const double grown = *time + item.cost / static_cast<double>(active);
  *time = std::max(*time, std::min(grown, start + kQuantum / 2));
}

// Start tags of both sets are compared; the light one may be ahead by a quantum.
bool FlowOrder::User::TurnOfLight() const {
  if (light.openers.empty() || heavy.openers.empty()) return !light.openers.empty();
  const double light_start = std::max(sets_time, light.finish);
  return light_start <= std::max(sets_time, heavy.finish) + kQuantum;
}

FlowOrder::Opener* FlowOrder::Find(FlowKey key) {
  if (last_ != nullptr && last_key_ == key) return last_;
  auto found = openers_.find(key);
  if (found == openers_.end()) {
    // Not for each one, where all that are told apart have something under way.
    const bool full = openers_.size() >= kFlowsMax;
    if (openers_.size() >= sweep_at_ && (!full || untold_ % 256 == 0)) Sweep();
    if (openers_.size() >= kFlowsMax) {
      // One more would be one too many: it shares with another.
      ++untold_;
      const size_t buckets = openers_.bucket_count();
      size_t bucket = KeyHash()(key) % buckets;
      while (openers_.bucket_size(bucket) == 0) bucket = (bucket + 1) % buckets;
      return &openers_.begin(bucket)->second;
    }
    found = openers_.try_emplace(key).first;
    User& user = users_[key.user];
    user.order = this;
    found->second.user = &user;
  }
  last_key_ = key;
  last_ = &found->second;
  return last_;
}

void FlowOrder::Sweep() {
  last_ = nullptr;
  // What one has had beyond its share is kept as long as it can matter.
  std::erase_if(openers_, [](const auto& entry) {
    const Opener& opener = entry.second;
    return opener.under_way == 0 && opener.finish <= opener.user->openers_time;
  });
  if (openers_.size() >= kFlowsMax) {
    std::erase_if(openers_, [](const auto& entry) { return entry.second.under_way == 0; });
  }
  std::unordered_map<const User*, size_t> openers_of;
  for (const auto& [key, opener] : openers_) ++openers_of[opener.user];
  std::erase_if(users_, [&](const auto& entry) {
    const User& user = entry.second;
    const bool few = users_.size() < kFlowsMax;
    return openers_of[&user] == 0 && (!few || user.finish <= time_);
  });
  sweep_at_ = std::clamp<size_t>(2 * openers_.size(), 64, kFlowsMax);
}

void FlowOrder::Add(Item* item, FlowKey key, uint64_t bytes, Duration cost) {
  WEIR_CHECK(item->opener == nullptr, "a request waits once");
  if (under_way_ == 0) time_ = std::max(time_, latest_);  // nobody is ahead of nobody
  Opener* opener = Find(key);
  User& user = *opener->user;
  item->opener = opener;
  item->bytes = bytes;
  item->cost = static_cast<double>(std::clamp(cost, Duration(1), kCostMax).count());
  item->sequence = ++sequence_;
  item->next = nullptr;
  item->previous = opener->tail;
  (opener->tail == nullptr ? opener->head : opener->tail->next) = item;
  opener->tail = item;
  ++under_way_;
  if (opener->under_way == 0) ++user.openers_active;
  if (user.under_way++ == 0) {
    ++users_active_;
    user.sets_time = std::max({user.sets_time, user.light.finish, user.heavy.finish});
    user.openers_time = std::max(user.openers_time, user.openers_latest);
  }
  if (!user.waits()) {
    user.start = std::max(time_, user.finish);
    user.sequence = item->sequence;
  }
  user.bytes += bytes;
  ++opener->under_way;
  opener->bytes += bytes;
  if (opener->head == item) opener->start = std::max(user.openers_time, opener->finish);
  File(opener);
}

FlowOrder::Item* FlowOrder::First() const {
  if (users_waiting_.empty()) return nullptr;
  return FirstOf(*users_waiting_.Top());
}

FlowOrder::Item* FlowOrder::FirstOf(const User& user) {
  const Set& set = user.TurnOfLight() ? user.light : user.heavy;
  return set.openers.Top()->head;
}

FlowOrder::Item* FlowOrder::FirstOf(uint64_t user) const {
  const auto found = users_.find(user);
  return found == users_.end() || !found->second.waits() ? nullptr : FirstOf(found->second);
}

FlowOrder::Item* FlowOrder::FirstOfUser(const Item& item) {
  return FirstOf(*item.opener->user);
}

void FlowOrder::Unlink(Item* item) {
  Opener* opener = item->opener;
  (item->previous == nullptr ? opener->head : item->previous->next) = item->next;
  (item->next == nullptr ? opener->tail : item->next->previous) = item->previous;
  item->next = item->previous = nullptr;
}

void FlowOrder::Take(Item* item) {
  Opener* opener = item->opener;
  User& user = *opener->user;
  Set& set = opener->light ? user.light : user.heavy;
  const Set& other = opener->light ? user.heavy : user.light;

  const double set_start = std::max(user.sets_time, set.finish);
  const double other_start =
      other.openers.empty() ? set_start : std::max(user.sets_time, other.finish);
  user.sets_time = std::min(set_start, other_start);
  set.finish = set_start + item->cost;

  Advance(&user.openers_time, opener->start, *item, user.openers_active);
  opener->finish = opener->start + item->cost;
  if (opener->light) {
    // Its set has paid. Else it would be in debt for ever, once it has more to do.
    opener->finish = std::min(opener->finish, user.openers_time + kQuantum);
  } else {
    user.openers_time = std::max(user.openers_time, opener->start);
  }
  opener->start = opener->finish;
  user.openers_latest = std::max(user.openers_latest, opener->finish);

  Advance(&time_, user.start, *item, users_active_);
  time_ = std::max(time_, users_waiting_.TopKey());
  user.finish = user.start + item->cost;
  user.start = user.finish;
  latest_ = std::max(latest_, user.finish);

  Unlink(item);
  File(opener);
}

void FlowOrder::Leave(Item* item) {
  Unlink(item);
  End(item);
}

void FlowOrder::Done(Item* item) {
  item->opener->user->order->End(item);
}

void FlowOrder::End(Item* item) {
  Opener* opener = item->opener;
  --under_way_;
  if (--opener->under_way == 0) --opener->user->openers_active;
  if (--opener->user->under_way == 0) --users_active_;
  opener->bytes -= item->bytes;
  opener->user->bytes -= item->bytes;
  item->opener = nullptr;
  File(opener);
}

void FlowOrder::File(Opener* opener) {
  User& user = *opener->user;
  const bool light = opener->bytes <= kLightBytes && opener->head != nullptr &&
                     opener->head->bytes <= kInteractiveBytesMax;
  if (light != opener->light || opener->head == nullptr) {
    (opener->light ? user.light : user.heavy).openers.Remove(opener);
  }
  opener->light = light;
  if (light) opener->start = std::min(opener->start, user.openers_time + kQuantum);
  if (opener->head != nullptr) {
    (light ? user.light : user.heavy).openers.Put(opener, opener->start, opener->head->sequence);
  }
  FileUser(&user);
}

void FlowOrder::FileUser(User* user) {
  if (!user->waits()) return users_waiting_.Remove(user);
  const bool light = user->bytes <= kLightBytes && user->TurnOfLight();
  users_waiting_.Put(user, light ? user->start - kQuantum : user->start, user->sequence);
}

bool FlowOrder::IsLight(const Item& item) {
  return item.opener != nullptr && item.bytes <= kInteractiveBytesMax &&
         item.opener->bytes <= kLightBytes;
}

}  // namespace weir
