// E13, E20: the arithmetic of virtual clocks, and what a share of a disk is worth.
#include <deque>

#include "osd/qos/surplus/cooperative.h"
#include "tools/sim/devices/uniform.h"
#include "tools/sim/experiments/all.h"
#include "tools/sim/experiments/vd_setup.h"
#include "tools/sim/oracles/shadow_disk.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;
using osd::qos::ClassQueue;
using osd::qos::Cooperative;
using osd::qos::Request;

// The box alone, with requests served by hand.
class Clocks {
 public:
  explicit Clocks(SpareCharge spare) : box({.spare = spare}) {}

  ClassQueue* Add(const ClassSpec& spec) {
    ClassQueue& queue = queues_.emplace_back();
    queue.spec = spec;
    return &queue;
  }
  void Send(ClassQueue* queue, int count) {
    for (int i = 0; i < count; ++i) {
      Request& request = requests_.emplace_back();
      request.queue = queue->spec.id;
      request.bytes = kSector;
      request.arrival = now_;
      request.sequence = ++sequence_;
      const bool is_head = queue->requests.empty();
      queue->requests.PushBack(&request);
      is_head ? box.Offer(queue) : box.Grew(queue);
    }
  }
  ClassId Serve(Duration time) {
    box.SetTime(now_);
    ClassQueue* queue = box.Pick();
    if (queue == nullptr) return ClassId(0);
    box.Released(queue, false);
    const Request* request = queue->requests.PopFront();
    queue->requests.empty() ? box.Withdraw(queue) : box.Offer(queue);
    now_ += time;
    box.Completed(queue, *request, time, now_);
    return queue->spec.id;
  }

  [[nodiscard]] double now_ms() const { return ToSeconds(now_ - TimePoint{}) * 1e3; }

  Cooperative box;

 private:
  TimePoint now_{};
  std::deque<ClassQueue> queues_;
  std::deque<Request> requests_;
  uint64_t sequence_ = 0;
};

SpareCharge SpareOf(const Run& run) {
  return run.broken(Fault::kSpareCharged) ? SpareCharge::kOwner : SpareCharge::kSystem;
}

// Figure 1: disks A, B, C of 30, 20 and 50 %.
void CheckFigureOne(Run& run) {
  Clocks clocks(SpareOf(run));
  ClassQueue* a = clocks.Add(RentADisk(kLargeDisk, .3));
  ClassQueue* b = clocks.Add(LatencyDisk(kSmallDisk, .2, 20ms));
  ClassQueue* c = clocks.Add(ThroughputDisk(kThirdDisk, .5, 1, 0));
  clocks.Send(a, 1);
  clocks.Send(b, 1);
  clocks.Send(c, 1);
  Figure figure{
      "Clocks of disks of 30, 20 and 50 %, a request of 6 ms each", "ms", "clock, ms", {}};
  for (const char* name : {"A", "B", "C", "system"}) figure.curves.push_back({name, {0}, {0}});
  for (int i = 0; i < 3; ++i) {
    clocks.Serve(6ms);
    const double values[] = {clocks.box.ClockOf(*a), clocks.box.ClockOf(*b), clocks.box.ClockOf(*c),
                             clocks.box.system_clock()};
    for (size_t k = 0; k < 4; ++k) {
      figure.curves[k].x.push_back(clocks.now_ms());
      figure.curves[k].y.push_back(values[k] * 1e3);
    }
  }
  figure.curves.push_back({"after 6 ms of service, by hand", {6, 12, 18}, {20, 30, 12}, true});
  run.Draw(std::move(figure));
  run.Near("clock of A after 6 ms of service, ms", clocks.box.ClockOf(*a) * 1e3, 20, 1e-9);
  run.Near("clock of B after 6 ms of service, ms", clocks.box.ClockOf(*b) * 1e3, 30, 1e-9);
  run.Near("clock of C after 6 ms of service, ms", clocks.box.ClockOf(*c) * 1e3, 12, 1e-9);
  run.Near("system clock, ms", clocks.box.system_clock() * 1e3, 18, 1e-9);

  // C is entitled and idle: found so, it loses the difference. Nobody else is entitled.
  clocks.Send(a, 1);
  run.True("nobody entitled: A is served as spare time", clocks.Serve(1ms) == kLargeDisk);
  run.Near("an idle visit sets C's clock to the system clock, ms", clocks.box.ClockOf(*c) * 1e3,
           clocks.box.system_clock() * 1e3, 1e-9);
  run.Near("spare time leaves A's clock, ms", clocks.box.ClockOf(*a) * 1e3, 20, 1e-9);

  // B misses, C has done more than it was promised: C's turn goes to B, and C pays.
  clocks.Send(c, 40);
  clocks.Send(b, 8);
  for (int i = 0; i < 6; ++i) clocks.Serve(6ms);
  const double before_b = clocks.box.ClockOf(*b), before_c = clocks.box.ClockOf(*c);
  int lent = 0;
  for (int i = 0; i < 6 && !b->requests.empty(); ++i) {
    const bool entitled_b = before_b <= clocks.box.system_clock();
    if (clocks.Serve(6ms) == kSmallDisk && !entitled_b) ++lent;
  }
  run.AtLeast("turns that C lends to B, which misses its bound", lent, 1);
  run.AtLeast("and that C pays: its clock moved by, ms", (clocks.box.ClockOf(*c) - before_c) * 1e3,
              11.9, 12);
}

void CheckSpareOrder(Run& run) {
  Clocks clocks(SpareOf(run));
  ClassQueue* a = clocks.Add(RentADisk(kLargeDisk, .01));
  ClassQueue* b = clocks.Add(LatencyDisk(kSmallDisk, .01, 20ms));
  ClassQueue* c = clocks.Add(ThroughputDisk(kThirdDisk, .01, 1, 0));
  for (ClassQueue* queue : {a, b, c}) clocks.Send(queue, 5);
  for (int i = 0; i < 3; ++i) clocks.Serve(6ms);  // what each is entitled to, for a long time
  std::string order;
  for (int i = 0; i < 12; ++i) {
    const ClassId id = clocks.Serve(1us);
    order += id == kLargeDisk ? 'A' : id == kSmallDisk ? 'B' : 'C';
  }
  run.True("spare time goes to B (latency), then C (throughput), then A (rented)",
           order == "BBBBCCCCAAAA");
  run.Near("spare time moved no clock of a disk, ms",
           (clocks.box.ClockOf(*a) + clocks.box.ClockOf(*b) + clocks.box.ClockOf(*c)) * 1e3, 1800,
           1e-6);
}

struct Shares {
  double first = 0, second = 0;
};

// Device time of two saturated disks of these shares; the second may come 10 s later. What the
// first types as is what decides who gets spare time.
Shares Saturate(Run& run, SpareCharge spare, const ClassSpec& first, const ClassSpec& second,
                Duration second_from) {
  Cluster cluster(run.seed());
  SchedulerConfig config = VdConfig();
  config.spare = spare;
  cluster.AddOsd(config, Uniform(.008, .4));
  cluster.SetClass(first);
  cluster.SetClass(second);
  Load* a = cluster.Start({.class_id = first.id, .outstanding = 8, .bytes = kSector});
  Load* b = cluster.Start({.class_id = second.id, .outstanding = 1, .bytes = kSector});
  cluster.RunTo(1s);
  if (second_from > 1s) {
    b->Stop();
    cluster.RunTo(second_from);
  }
  b->SetOutstanding(8);
  const Duration to = second_from + 40s;
  cluster.RunTo(to);
  return {DeviceShare(*a, second_from, to), DeviceShare(*b, second_from, to)};
}

void RunClocks(Run& run) {
  CheckFigureOne(run);
  CheckSpareOrder(run);
  const ClassSpec large = RentADisk(kLargeDisk, .75), small = RentADisk(kSmallDisk, .25);
  const Shares after = Saturate(run, SpareOf(run), large, small, 11s);
  run.Near("75 % disk, after ten seconds alone, part of the device", after.first, .75, .005);
  run.Near("25 % disk, idle meanwhile, part of the device", after.second, .25, .005);
  // The paper's letter: nobody's clock moves in spare time, the system's neither.
  const ClassSpec favoured = ThroughputDisk(kLargeDisk, .75, 1, 0);
  const Shares letter = Saturate(run, SpareCharge::kNobody, favoured, small, 11s);
  run.AtMost("to the letter (A25): what the disk that was idle gets", letter.second, .02, 0);
  const Shares part =
      Saturate(run, SpareOf(run), RentADisk(kLargeDisk, .5), RentADisk(kSmallDisk, .3), 1s);
  run.Near("shares of .5 and .3: the first gets .5 and half of what nobody rented", part.first, .6,
           .01);
  run.Near("shares of .5 and .3: the second", part.second, .4, .01);
}

void RunWorth(Run& run) {
  const Duration from = 4s, to = 34s;
  Cluster cluster(run.seed());
  cluster.AddOsd(VdConfig(), FastDisk());
  cluster.SetClass(RentADisk(kLargeDisk, .25));
  cluster.SetClass(RentADisk(kSmallDisk, .25));
  cluster.SetClass(RentADisk(kThirdDisk, .5));
  Load* random =
      cluster.Start({.class_id = kLargeDisk, .outstanding = 8, .shape = FlowOn(0, 0).shape()});
  Load* sequential =
      cluster.Start({.class_id = kSmallDisk, .outstanding = 8, .shape = FlowOn(1, 1).shape()});
  cluster.Start({.class_id = kThirdDisk, .outstanding = 8, .shape = FlowOn(0, .5).shape()});
  cluster.RunTo(to);
  run.Near("random flow, part of the device", DeviceShare(*random, from, to), .25, .01);
  run.Near("sequential flow, part of the device", DeviceShare(*sequential, from, to), .25, .01);
  run.AtLeast("sequential : random, requests", sequential->Iops(from, to) / random->Iops(from, to),
              10);
  for (const auto& [name, load] : {std::pair{"random", random}, {"sequential", sequential}}) {
    run.NearPart("peak equivalent of the " + std::string(name) + " flow, requests/s",
                 PeakEquivalent(*load, kFastPeak, from, to), .25 * kFastPeak, .05);
  }

  // Twice what its share of the peak can give: the peak caps the obligation.
  Cluster greedy(run.seed());
  greedy.AddOsd(VdConfig(), FastDisk());
  greedy.SetClass(ThroughputDisk(kLargeDisk, .25, .5 * kFastPeak, 0));
  greedy.SetClass(RentADisk(kSmallDisk, .75));
  Load* beyond =
      greedy.Start({.class_id = kLargeDisk, .outstanding = 8, .shape = FlowOn(0, 1).shape()});
  greedy.Start({.class_id = kSmallDisk, .outstanding = 8, .shape = FlowOn(1, .5).shape()});
  greedy.RunTo(to);
  run.AtMost("a throughput disk of 25 % that asks for 50 %, part of the device",
             DeviceShare(*beyond, from, to), .26, .25);
}

}  // namespace

void AddVdClocks(std::vector<Experiment>* all) {
  all->push_back({"E13", "Virtual clocks, spare time, lent turns", "VD figure 1",
                  "Disks of 30, 20 and 50 %, served by hand. Then two saturated disks, one of "
                  "which was idle for ten seconds before: the paper's text moves no clock at all "
                  "in spare time, which starves it for ever (A25); the system's clock must move.",
                  RunClocks});
  all->push_back({"E20", "What a share is worth", "VD §3.1",
                  "25 % of the fast disk for a random and a sequential flow beside a third: equal "
                  "device time, very different rates, equal peak equivalents. A throughput disk "
                  "gets no more than its peak when others are busy.",
                  RunWorth});
}

}  // namespace weir::sim
