#include "osd/qos/dispatch/virtual_clock.h"

#include <algorithm>
#include <limits>

#include "common/qos/delay_bound.h"

namespace weir::osd::qos {
namespace {

// Beyond this a finish time says nothing any more (three years), and sums could overflow.
constexpr double kLongestStep = 1e8;

Duration StepOf(const ClassQueue& queue, const Request& request) {
  double seconds = std::numeric_limits<double>::infinity();
  if (queue.finish_rate > 0) seconds = 1 / queue.finish_rate;
  if (queue.rents_time() && queue.more) {
    seconds = std::min(seconds, queue.more->estimate / queue.time_share);
  } else if (queue.finish_rate <= 0 || (queue.bound_iops > 0 && queue.promised > 0)) {
    if (queue.promised == 0) return Duration(0);
    const double by_bytes =
        static_cast<double>(request.bytes) / static_cast<double>(queue.promised);
    seconds = std::min(seconds, by_bytes);
  }
  return FromSeconds(std::min(seconds, kLongestStep));
}

// What the class was served on other OSDs since, if its clock is that of a promise over all of
// them: taken to be requests as large as this one. What a guarantee stage has released was counted
// there.
Duration ElsewhereSteps(const ClassQueue& queue, const Request& request, Duration step) {
  const bool of_all = queue.finish_rate <= static_cast<double>(queue.promised_iops);
  const bool counts = queue.promise_total && of_all && !request.guaranteed;
  if (!counts || request.elsewhere_tokens <= 0) return Duration(0);
  const double requests =
      static_cast<double>(request.elsewhere_tokens) / static_cast<double>(TokensOf(request.bytes));
  return FromSeconds(std::min(requests * ToSeconds(step), kLongestStep));
}

}  // namespace

double FinishRate(const ServiceContract& contract, double iops_max) {
  double rate = contract.iops;
  if (contract.bound > Duration(0)) {
    const double fastest = iops_max > 0 ? iops_max : 1e12;
    if (contract.granted_iops > 0) return std::max(rate, contract.granted_iops);
    const auto needed = IopsForDelay(contract.max_pending, fastest, contract.bound);
    // A bound shorter than one service cannot be kept; the disk's whole speed is the best try.
    rate = std::max(rate, needed.value_or(fastest));
  }
  return rate;
}

void StampFinishTime(ClassQueue* queue, Request* request, Duration ahead_max, TimePoint now) {
  const Duration step = StepOf(*queue, *request);
  if (step == Duration(0)) {
    request->finish_time = TimePoint::Max();
    return;
  }
  TimePoint previous = queue->finish_clock + ElsewhereSteps(*queue, *request, step);
  if (ahead_max > Duration(0)) previous = std::min(previous, now + ahead_max);
  request->finish_time = std::max(now, previous) + step;
  queue->finish_clock = request->finish_time;
}

}  // namespace weir::osd::qos
