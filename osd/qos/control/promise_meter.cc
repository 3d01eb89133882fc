#include "osd/qos/control/promise_meter.h"

#include <algorithm>
#include <utility>

namespace weir::osd::qos {
namespace {

constexpr uint64_t kUnderWayPart = 20;  // of a second's promise: 50 ms

bool HasDemand(const ClassQueue& queue) {
  if (!queue.requests.empty() || queue.released > 0) return true;
  return queue.promised > 0 && queue.device_bytes >= queue.promised / kUnderWayPart;
}

bool HadDemandSince(const ClassQueue& queue, TimePoint start) {
  return queue.has_demand && queue.demand_since <= start;
}

// What the promise, cut at the class's own limit, comes to in this time.
double PromisedBytes(const ClassQueue& queue, Duration time) {
  const uint64_t limit = queue.spec.limit_bytes_per_s.value_or(UINT64_MAX);
  return static_cast<double>(std::min(queue.promised, limit)) * ToSeconds(time);
}

double LargestBytes(const ClassQueue& queue) {
  return static_cast<double>(queue.largest_tokens) * kTokenBytes;
}

// What the promise leaves open at any time: a bucket and a request (I-13).
double SlackBytes(const ClassQueue& queue) {
  const int64_t cap = BucketCap(queue.promised, queue.largest_tokens);
  return static_cast<double>(cap) * kTokenBytes + LargestBytes(queue);
}

}  // namespace

void NoteDemand(ClassQueue* queue, TimePoint now) {
  const bool has_demand = HasDemand(*queue);
  if (has_demand && !queue->has_demand) queue->demand_since = now;
  queue->has_demand = has_demand;
}

void CountService(ClassQueue* queue, uint64_t bytes) {
  queue->second_bytes += bytes;
  queue->period_bytes += bytes;
}

void CloseSecond(ClassQueue* queue, TimePoint start, TimePoint now) {
  const auto served = static_cast<double>(std::exchange(queue->second_bytes, 0));
  const double slack = SlackBytes(*queue);
  if (queue->promised == 0 || !HadDemandSince(*queue, start)) {
    queue->carry_bytes = slack;
    return;
  }
  const double promised = PromisedBytes(*queue, now - start);
  if (served + queue->carry_bytes < 0.98 * promised) {
    const int64_t seconds = (now - start) / std::chrono::seconds(1);
    queue->counters.violation_seconds += static_cast<uint64_t>(std::max<int64_t>(seconds, 1));
  }
  queue->carry_bytes = std::clamp(queue->carry_bytes + served - promised, 0.0, slack);
}

bool ClosePeriod(ClassQueue* queue, TimePoint start, TimePoint now) {
  const auto served = static_cast<double>(std::exchange(queue->period_bytes, 0));
  if (queue->promised == 0 || !HadDemandSince(*queue, start)) return false;
  return served < PromisedBytes(*queue, now - start) - 2 * LargestBytes(*queue);
}

}  // namespace weir::osd::qos
