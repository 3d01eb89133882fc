#include "osd/qos/control/wait_meter.h"

#include <algorithm>

namespace weir::osd::qos {

void WaitMeter::Advance(ClassQueue* queue, TimePoint now) const {
  WaitState& wait = queue->wait;
  OsdClassTimes& sums = wait.sums;
  if (now <= wait.since && wait.released_before == released_bytes_) return;  // again, of one step
  const auto passed = static_cast<uint64_t>(std::max<int64_t>(0, (now - wait.since).count()));
  const uint64_t released = released_bytes_ - wait.released_before;
  wait.since = std::max(wait.since, now);
  wait.released_before = released_bytes_;
  if (queue->under_way == 0) return;

  const uint64_t waiting =
      queue->requests.empty() ? 0 : queue->counters.queued_ops - queue->released;
  uint64_t in_turn = queue->released;
  if (waiting > 0 && queue->held == ClassQueue::Held::kLimit) {
    sums.limit_ns += waiting * passed;
    sums.limited_ns += passed;
  } else if (waiting > 0 && queue->held == ClassQueue::Held::kRoom) {
    sums.owed_ns += waiting * passed;
  } else {
    in_turn += waiting;
  }
  if (in_turn > 0) {
    sums.turn_ns += in_turn * passed;
    sums.turn_others_bytes += released;
    if (blocked_by_ == Blocked::By::kRoot) sums.rate_ns += in_turn * passed;
    if (blocked_by_ == Blocked::By::kBulkCap) sums.pace_ns += in_turn * passed;
  }
  sums.device_ns += queue->device_ops * passed;
  sums.active_ns += passed;
}

void WaitMeter::Placed(ClassQueue* queue, bool held_by_limit) {
  const bool owed =
      queue->heap_place[static_cast<size_t>(HeapSlot::kOwnReady)] != ClassQueue::kNowhere;
  queue->held = held_by_limit ? ClassQueue::Held::kLimit
                : owed        ? ClassQueue::Held::kRoom
                              : ClassQueue::Held::kTurn;
}

void WaitMeter::Arrived(const ClassQueue& queue, Request* request) {
  request->held_by_limit = -Duration(static_cast<int64_t>(queue.wait.sums.limited_ns));
}

void WaitMeter::Released(ClassQueue* queue, Request* request, TimePoint now) {
  released_bytes_ += request->bytes;
  // One that came into another class's queue has met another count.
  request->held_by_limit = std::clamp(
      request->held_by_limit + Duration(static_cast<int64_t>(queue->wait.sums.limited_ns)),
      Duration(0), now - request->arrival);
  queue->wait.released_before = released_bytes_;
  // What went at once says nothing of how a wait is shared.
  if (queue->held == ClassQueue::Held::kTurn && request->arrival < now) {
    queue->wait.sums.turn_own_bytes += request->bytes;
  }
}

void WaitMeter::Completed(ClassQueue* queue, const Request& request, uint64_t others_bytes,
                          TimePoint now) {
  const Duration longer = now - request.dispatched - request.alone_estimate;
  if (longer <= Duration(0) || others_bytes == 0 || request.alone_estimate <= Duration(0)) return;
  const auto others = static_cast<double>(others_bytes);
  const double part = others / (others + static_cast<double>(queue->device_bytes));
  queue->wait.sums.crowd_ns += static_cast<uint64_t>(static_cast<double>(longer.count()) * part);
}

}  // namespace weir::osd::qos
