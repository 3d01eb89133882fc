#include "osd/qos/control/promise_meter.h"

#include <algorithm>
#include <utility>

namespace weir::osd::qos {
namespace {

constexpr uint64_t kUnderWayPart = 20;  // of a second's promise: 50 ms

bool IsPromised(const ClassQueue& queue) {
  return queue.promised > 0 || queue.promised_iops > 0 || queue.is_disk();
}

bool HasDemand(const ClassQueue& queue) {
  if (!queue.requests.empty() || queue.released > 0) return true;
  if (queue.promised > 0 && queue.device_bytes >= queue.promised / kUnderWayPart) return true;
  if (queue.promised_iops == 0) return false;
  return queue.device_ops > 1 && queue.device_ops >= queue.promised_iops / kUnderWayPart;
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

// A promise and what was served of it, in whatever it is counted in.
struct Account {
  double promised;
  double served;
  double slack;
};

// True if it was kept; carries what is beyond it to the next window.
bool Settle(const Account& account, double* carry) {
  const bool kept = account.served + *carry >= 0.98 * account.promised;
  *carry = std::clamp(*carry + account.served - account.promised, 0.0, account.slack);
  return kept;
}

// Nothing at all is never enough, were the device to work for nobody; unless the share is less than
// a request takes.
bool HasItsTime(ClassQueue* queue, double time, double worked) {
  const Account account{queue->spec.disk.peak * worked, time, ClassQueue::kTimeSlack};
  const bool rare = queue->more && account.promised < queue->more->estimate;
  return Settle(account, &queue->carry_time) && (time > 0 || rare);
}

// The bytes per second with which a virtual disk has all that it may have: its limit, or the rate
// of a throughput disk less what that may lend.
double MostOfDisk(const ClassQueue& queue) {
  const VirtualDisk& disk = queue.spec.disk;
  const auto limit = static_cast<double>(queue.spec.limit_bytes_per_s.value_or(UINT64_MAX));
  if (disk.type != ClassType::kThroughput) return limit;
  return std::min(limit, static_cast<double>(disk.throughput_bytes_per_s) * (1 - disk.tolerance));
}

double SlackOps(const ClassQueue& queue) {
  return std::max(2.0, static_cast<double>(queue.promised_iops) / 10) + 1;
}

}  // namespace

bool HadDemandSince(const ClassQueue& queue, TimePoint start) {
  return queue.has_demand && queue.demand_since <= start;
}

void NoteDemand(ClassQueue* queue, TimePoint now) {
  const bool has_demand = HasDemand(*queue);
  if (has_demand && !queue->has_demand) queue->demand_since = now;
  queue->has_demand = has_demand;
}

void CountService(ClassQueue* queue, uint64_t bytes, double requests) {
  queue->second_bytes += bytes;
  queue->period_bytes += bytes;
  queue->second_ops += requests;
}

bool CloseSecond(ClassQueue* queue, double worked, TimePoint start, TimePoint now) {
  const auto bytes = static_cast<double>(std::exchange(queue->second_bytes, 0));
  const double ops = std::exchange(queue->second_ops, 0);
  const double time = std::exchange(queue->second_time, 0);
  const double slack = SlackBytes(*queue);
  if (!IsPromised(*queue) || !HadDemandSince(*queue, start)) {
    queue->carry_bytes = slack;
    queue->carry_ops = SlackOps(*queue);
    queue->carry_time = ClassQueue::kTimeSlack;
    return false;
  }
  const Account by_bytes{PromisedBytes(*queue, now - start), bytes, slack};
  const double promised_ops = static_cast<double>(queue->promised_iops) * ToSeconds(now - start);
  const bool bytes_kept = queue->promised > 0 && Settle(by_bytes, &queue->carry_bytes);
  const bool ops_kept =
      queue->promised_iops > 0 && Settle({promised_ops, ops, SlackOps(*queue)}, &queue->carry_ops);
  const bool promised = queue->promised > 0 || queue->promised_iops > 0;
  const bool disk_kept =
      !queue->is_disk() || worked <= 0 || HasItsTime(queue, time, worked) ||
      bytes + LargestBytes(*queue) >= MostOfDisk(*queue) * ToSeconds(now - start);
  return !disk_kept || (promised && !bytes_kept && !ops_kept);
}

bool ClosePeriod(ClassQueue* queue, TimePoint start, TimePoint now) {
  const auto served = static_cast<double>(std::exchange(queue->period_bytes, 0));
  if (queue->promised == 0 || !HadDemandSince(*queue, start)) return false;
  return served < PromisedBytes(*queue, now - start) - 2 * LargestBytes(*queue);
}

}  // namespace weir::osd::qos
