// E18: how much locality a latency needs; figure 6 of Yan and Jiang.
#include <algorithm>

#include "tools/sim/experiments/all.h"
#include "tools/sim/experiments/vd_setup.h"
#include "tools/sim/workloads/arrivals.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;

constexpr double kLimit = .3;  // seconds
constexpr Duration kFrom = 2s, kTo = 12s;
constexpr double kRates[] = {200, 400, 700, 1000, 1500, 2000, 2500, 3000};

// Where the flow runs.
enum class Place : uint8_t { kVirtual, kSlow };

// Locality in percent; 101 if even a sequential flow is too slow.
class Needed {
 public:
  Needed(Run& run, Place place, double rate) : run_(run), place_(place), rate_(rate) {}

  // The smallest locality at which this part of the requests is done within the limit. More
  // locality never makes a request later, so halving finds it.
  int For(double part) {
    int low = 0, high = 101;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (WithinLimit(middle) >= part) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

 private:
  double WithinLimit(int percent) {
    if (percent > 100) return 1;
    double& known = known_[static_cast<size_t>(percent)];
    if (known < 0) known = Measure(percent);
    return known;
  }

  double Measure(int percent) {
    Cluster cluster(run_.seed());
    cluster.AddOsd(VdConfigFor(run_), place_ == Place::kSlow ? SlowDisk() : FastDisk());
    cluster.SetClass(RentADisk(kLargeDisk, place_ == Place::kSlow ? 1 : .75));
    uint64_t sent = 0;
    const auto place = FlowOn(0, percent / 100.0).shape();
    Load* flow = cluster.Start({.class_id = kLargeDisk,
                                .shape =
                                    [&](Prng& prng, uint64_t n, Io* io) {
                                      place(prng, n, io);
                                      if (cluster.now() > kFrom && cluster.now() <= kTo) ++sent;
                                    },
                                .gap = Poisson(rate_)});
    if (place_ == Place::kVirtual) {
      cluster.SetClass(RentADisk(kSmallDisk, .25));
      cluster.Start({.class_id = kSmallDisk, .outstanding = 8, .shape = FlowOn(1, 1).shape()})
          ->KeepTotalsOnly();
    }
    cluster.RunTo(kTo + FromSeconds(kLimit));  // what is not done by then has missed the limit
    uint64_t within = 0;
    for (const Completion& done : flow->completions()) {
      const bool counts = done.sent.ns > kFrom.count() && done.sent.ns <= kTo.count();
      if (counts && ToSeconds(done.when - done.sent) <= kLimit) ++within;
    }
    return static_cast<double>(within) / static_cast<double>(sent);
  }

  Run& run_;
  Place place_;
  double rate_;
  std::vector<double> known_ = std::vector<double>(102, -1);
};

void RunIsoLatency(Run& run) {
  Figure figure{"Locality needed for 0.3 s",
                "requests/s",
                "locality, %",
                {{"75 % disk, 75 %", {}, {}},
                 {"75 % disk, 100 %", {}, {}},
                 {"slow disk, 75 %", {}, {}},
                 {"slow disk, 100 %", {}, {}}}};
  std::vector<int> virtual_75, slow_75;
  int worst = -1000, apart = 0, falls = 0;
  double area_virtual = 0, area_slow = 0;
  int last[4] = {0, 0, 0, 0};
  for (const double rate : kRates) {
    Needed on_virtual(run, Place::kVirtual, rate), on_slow(run, Place::kSlow, rate);
    const int needed[4] = {on_virtual.For(.75), on_virtual.For(1), on_slow.For(.75),
                           on_slow.For(1)};
    for (size_t i = 0; i < 4; ++i) {
      figure.curves[i].x.push_back(rate);
      figure.curves[i].y.push_back(needed[i]);
      if (needed[i] < last[i]) ++falls;
      last[i] = needed[i];
    }
    worst = std::max({worst, needed[0] - needed[2], needed[1] - needed[3]});
    apart = std::max(apart, std::abs(needed[2] - needed[3]));
    area_virtual += 100 - needed[0];
    area_slow += 100 - needed[2];
  }
  run.AtMost("locality that the 75 % disk needs beyond the slow disk's, worst rate, points", worst,
             2);
  run.Between("area where 75 % are in time, 75 % disk against the slow disk (text: much larger)",
              area_virtual / area_slow, 1.15, 1.35);
  run.Near("rates at which less locality is needed than at a lower rate", falls, 0, 0);
  run.AtMost("slow disk: curves of 75 % and 100 % apart, points (text: they overlap)", apart, 5, 0);
  run.Draw(std::move(figure));
}

}  // namespace

void AddVdLatency(std::vector<Experiment>* all) {
  all->push_back({"E18", "Locality that a latency of 0.3 s needs", "VD figure 6",
                  "Poisson arrivals of 200 to 3000 requests/s; the smallest locality at which "
                  "75 % and 100 % of them are done within 0.3 s, on the 75 % disk (its neighbour "
                  "saturated) and on the slow disk. With the seek times of the paper.",
                  RunIsoLatency});
}

}  // namespace weir::sim
