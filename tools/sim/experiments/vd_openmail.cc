// E17: a mail server's flow on a virtual disk; figure 5 of Yan and Jiang.
#include <algorithm>

#include "tools/sim/experiments/all.h"
#include "tools/sim/experiments/vd_setup.h"
#include "tools/sim/oracles/shadow_disk.h"
#include "tools/sim/workloads/stand_ins.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLength = 60s;

LoadOptions Openmail(uint64_t seed) {
  LoadOptions options{.class_id = kLargeDisk};
  Prng prng(seed);  // the same arrivals wherever it runs
  PlayStandIn("openmail", {.footprint_scale = .25, .length = kLength}, &prng, &options);
  return options;
}

void RunOpenmail(Run& run) {
  Cluster shared(run.seed());
  shared.AddOsd(VdConfigFor(run), FastDisk());
  shared.SetClass(RentADisk(kLargeDisk, .75));
  shared.SetClass(RentADisk(kSmallDisk, .25));
  Load* mail = shared.Start(Openmail(run.seed()));
  Load* sequential =
      shared.Start({.class_id = kSmallDisk, .outstanding = 8, .shape = FlowOn(1, 1).shape()});
  shared.RunTo(kLength);
  Cluster own(run.seed());
  own.AddOsd(VdConfig(), SlowDisk());
  own.SetClass(RentADisk(kLargeDisk, 1));
  Load* alone = own.Start(Openmail(run.seed()));
  own.RunTo(kLength);

  int kept = 0, windows = 0;
  Figure figure{"A mail server's flow on the 75 % disk",
                "s",
                "requests/s",
                {{"openmail on the 75 % disk", {}, {}},
                 {"25 % disk", {}, {}},
                 {"openmail on the slow disk", {}, {}}}};
  for (Duration at = 10s; at + 1s <= kLength; at += 1s) {
    const double rate = sequential->Iops(at, at + 1s);
    // Where the mail server leaves time unused the other has more, as it should.
    if (DeviceShare(*mail, at, at + 1s) > .70) {
      ++windows;
      if (rate >= 950 && rate <= 1130) ++kept;
    }
    const double values[] = {mail->Iops(at, at + 1s), rate, alone->Iops(at, at + 1s)};
    for (size_t i = 0; i < 3; ++i) {
      figure.curves[i].x.push_back(ToSeconds(at));
      figure.curves[i].y.push_back(values[i]);
    }
  }
  run.AtLeast("seconds in which openmail uses all of its disk", windows, 10);
  run.AtLeast("25 % disk: part of those in which it has 950 to 1130 requests/s",
              static_cast<double>(kept) / windows, .95, 1);
  // Summed up from the start: on the faster disk a burst is over earlier, and then rests.
  double worst = 1e9;
  for (Duration to = 10s; to <= kLength; to += 10s) {
    const double there = alone->Iops(0s, to);
    if (there > 0) worst = std::min(worst, mail->Iops(0s, to) / there);
  }
  run.AtLeast("openmail done against the slow disk, after 10, 20 ... 60 s, worst", worst, .9, 1);
  run.Report("25 % disk, requests/s (text: around 1000)", sequential->Iops(10s, kLength), 1000);
  run.Draw(std::move(figure));
}

}  // namespace

void AddVdOpenmail(std::vector<Experiment>* all) {
  all->push_back({"E17", "A mail server beside a sequential flow", "VD figure 5",
                  "The trace is not public: a stand-in with 1000 requests/s in bursts (b-model, "
                  "b = .8), 512 bytes, half reads, 90 % random, on the 75 % disk; a sequential "
                  "flow on the 25 % disk. Against the same stand-in on the slow disk.",
                  RunOpenmail});
}

}  // namespace weir::sim
