// E31: Stonehenge's equations on its own numbers.
#include "common/qos/delay_bound.h"
#include "osd/qos/dispatch/cvc.h"
#include "osd/qos/dispatch/virtual_clock.h"
#include "tools/sim/experiments/all.h"
#include "tools/sim/experiments/stonehenge_setup.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;
using osd::qos::Request;

constexpr TimePoint AtMs(double ms) {
  return TimePoint{static_cast<int64_t>(ms * 1e6)};
}

void FinishTimes(Run& run) {
  osd::qos::ClassQueue queue;
  queue.finish_rate = 50;
  const double arrivals[] = {0, 0, 100};
  const double paper[] = {20, 40, 120};
  for (int i = 0; i < 3; ++i) {
    Request request;
    osd::qos::StampFinishTime(&queue, &request, Duration(0), AtMs(arrivals[i]));
    run.Near("(3) 50 per second: FT of request " + std::to_string(i + 1) + ", ms",
             static_cast<double>(request.finish_time.ns) / 1e6, paper[i], 1e-9);
  }
}

// FT = 50, 52, 100, s = 10, est = 13.1 ms: whether the elevator's choice goes at t.
double ElevatorGoes(Run& run, double t) {
  CvcConfig config;
  config.iops_max = 100;
  config.fixed_estimate = 13100us;
  config.late_mode = false;
  if (run.broken(Fault::kLatestStartIgnored)) config.fixed_estimate = Duration::min();
  const osd::qos::ServiceTime measured(0.9, 10ms);
  osd::qos::Cvc cvc(config, false, &measured);
  Request requests[3];
  const double finish[] = {50, 52, 100};
  for (uint64_t i = 0; i < 3; ++i) {
    requests[i].finish_time = AtMs(finish[i]);
    requests[i].lba = 1000 - 100 * i;
    requests[i].sequence = i;
    cvc.Add(&requests[i]);
  }
  return cvc.Next({AtMs(t), 0}) == &requests[2] ? 1 : 0;
}

void LatestStarts(Run& run) {
  osd::qos::FinishOrder order(10ms);
  Request requests[3];
  const double finish[] = {100, 52, 50};
  const double paper[] = {90, 42, 32};
  for (uint64_t i = 0; i < 3; ++i) {
    requests[i].finish_time = AtMs(finish[i]);
    requests[i].sequence = i;
    order.Add(&requests[i]);
    run.Near("(4) latest start before FT " + std::to_string(static_cast<int>(finish[i])) + ", ms",
             static_cast<double>(order.LatestStart()) / 1e6, paper[i], 1e-9);
  }
  run.Near("(5) at 18 ms the elevator's choice goes", ElevatorGoes(run, 18), 1, 0);
  run.Near("(5) at 19 ms it does not", ElevatorGoes(run, 19), 0, 0);
}

void Bounds(Run& run) {
  run.Near("(10) mpr 14, IOPSmax 630, 120 ms: requests/s", *IopsForDelay(14, 630, 120ms), 126.676,
           .001);
  run.Near("(11) the same with Q = .11, s = .2", *IopsForDelay(14, 630, 120ms, .31), 38.910, .001);
  const DiskFigures disk{.iops_max = 630, .bytes_per_s = 37e6, .overhead_seconds = 1.0 / 630};
  const double rate = *RateForDelay({.max_pending = 14}, disk, 120ms);
  run.Near("(9) with sizes of 0 is (10): requests/s", rate * 630 / disk.bytes_per_s, 126.676, .001);
}

void RunArithmetic(Run& run) {
  FinishTimes(run);
  LatestStarts(run);
  Bounds(run);
}

}  // namespace

void AddStonehengeArithmetic(std::vector<Experiment>* all) {
  all->push_back({"E31", "Finish times, latest starts, delay bounds", "Stonehenge equations 1-11",
                  "The worked numbers of the equations, computed by the scheduler's own objects.",
                  RunArithmetic});
}

}  // namespace weir::sim
