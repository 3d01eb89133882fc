#include "osd/qos/surplus/dsfq.h"

#include <algorithm>

#include "common/qos/delay_function.h"

namespace weir::osd::qos {

double Dsfq::HybridFactorOf(const ClassSpec& spec) const {
  const double phi = std::min(1.0, spec.weight / total_weight_);
  // A minimum of nothing would make K infinite; a millionth of the share is nothing.
  const double phi_min = std::clamp(spec.min_weight / total_weight_, phi * 1e-6, phi);
  return HybridFactor(phi, phi_min);
}

void Dsfq::Offer(ClassQueue* queue) {
  Request& head = *queue->requests.front();
  const double weight = queue->spec.weight;
  const double factor = config_.sharing == SharingKind::kHybrid ? HybridFactorOf(queue->spec) : 0;
  const double delay = CountedDelay(config_.sharing, head.elsewhere, head.cost, factor);
  queue->owed_after_head = 0;
  head.start_tag = config_.sharing == SharingKind::kHybridH
                       ? StartWithHistory(queue, head)
                       : std::max(head.v_arrival, queue->finish_tag + delay / weight);
  head.finish_tag = head.start_tag + static_cast<double>(head.cost) / weight;
  by_start_.Put(queue, head.start_tag, head.sequence);
  if (FlowOrder::IsLight(head.in_flow)) {
    by_finish_.Put(queue, head.finish_tag, head.sequence);
  } else {
    by_finish_.Remove(queue);
  }
}

// One that has more to do than it seemed is not looked at before it is offered again.
ClassQueue* Dsfq::PickLight(bool free) {
  const Request& next = *by_start_.Top()->requests.front();
  const double end = next.start_tag + std::max(longest_, next.finish_tag - next.start_tag);
  while (!by_finish_.empty()) {
    ClassQueue* queue = by_finish_.Top();
    if (!free && (queue == by_start_.Top() || by_finish_.TopKey() > end)) return nullptr;
    if (IsLight(*queue->requests.front())) return queue;
    by_finish_.Remove(queue);
  }
  return nullptr;
}

double Dsfq::StartWithHistory(ClassQueue* queue, const Request& head) const {
  const double weight = queue->spec.weight;
  const double most_owed = weight * (virtual_time_ - past_[slot_ % kSlots]);
  const double owed = std::min(queue->owed + static_cast<double>(head.elsewhere), most_owed);
  const double as_total = queue->finish_tag + owed / weight;
  if (as_total <= head.v_arrival) return head.v_arrival;
  const double most = HybridFactorOf(queue->spec) * static_cast<double>(head.cost) / weight;
  const double start = std::min(as_total, std::max(head.v_arrival, queue->finish_tag) + most);
  queue->owed_after_head = (as_total - start) * weight;
  return start;
}

void Dsfq::ForgiveIdle(const ClassQueue& queue, Request* request) const {
  const double most = HybridFactorOf(queue.spec) * static_cast<double>(request->cost);
  request->elsewhere = std::min(request->elsewhere, static_cast<int64_t>(most));
}

// After a pause nobody owes anything.
void Dsfq::SetTime(TimePoint now) {
  if (now < slot_ends_) return;
  if (now - slot_ends_ >= kMemory) past_.fill(virtual_time_);
  past_[slot_++ % kSlots] = virtual_time_;
  slot_ends_ = now + kMemory / kSlots;
}

void Dsfq::OfferAgain(ClassQueue* queue) {
  Request& head = *queue->requests.front();
  head.v_arrival = std::max(head.v_arrival, virtual_time_);
  Offer(queue);
}

void Dsfq::Released(ClassQueue* queue, bool guaranteed) {
  const Request& head = *queue->requests.front();
  queue->owed = queue->owed_after_head;
  longest_ = std::max(kKeepLongest * longest_, head.finish_tag - head.start_tag);
  virtual_time_ = std::max(virtual_time_, by_start_.TopKey());
  if (!guaranteed) {
    queue->finish_tag = head.finish_tag;
    return;
  }
  const double cost_per_token =
      static_cast<double>(head.cost) / static_cast<double>(TokensOf(head.bytes));
  // A promise in requests only: two requests as large as this one.
  const int64_t cap = queue->leaf ? queue->leaf->cap() : 2 * TokensOf(head.bytes);
  const double lead = 2 * static_cast<double>(cap) * cost_per_token / queue->spec.weight;
  const double most = std::max(queue->finish_tag, virtual_time_ + lead);
  queue->finish_tag = head.start_tag < most ? head.finish_tag : most;
}

void Dsfq::Completed(ClassQueue* queue, const Request& request, Duration device_time,
                     TimePoint /*now*/) {
  if (config_.cost != CostKind::kDeviceTime || !request.alone) return;
  const double more =
      static_cast<double>(device_time.count()) / 1000 - static_cast<double>(request.cost);
  queue->finish_tag = std::max(0.0, queue->finish_tag + more / queue->spec.weight);
  if (by_start_.Contains(*queue)) Offer(queue);
}

void Dsfq::Shift(ClassQueue* queue, double by) {
  queue->finish_tag = std::max(0.0, queue->finish_tag - by);
  for (Request* request = queue->requests.front(); request != nullptr; request = request->next) {
    request->v_arrival = std::max(0.0, request->v_arrival - by);
  }
}

}  // namespace weir::osd::qos
