// E58: virtual disks under the default profile, beside a promise in bytes. Yan and Jiang's figures
// 3 and 4 with HTB's leaves in device time instead of surplus `cooperative`.
#include <array>
#include <cmath>

#include "tools/sim/experiments/all.h"
#include "tools/sim/experiments/dsfq_setup.h"
#include "tools/sim/experiments/vd_setup.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFrom = 2s, kTo = 20s;
constexpr std::array<double, 4> kLocalities{1, .85, .35, 0};
constexpr auto kRate = static_cast<uint64_t>(kFastPeak * kSector);  // G0: all of it sequential

SchedulerConfig Unified() {
  SchedulerConfig config = ProfileOf("unified", 0);
  config.token_rate = kRate;
  config.best_effort_min = 0;
  return config;
}

struct Rates {
  double large, small;  // requests per second
};

// 75 % and 25 % of the fast disk, the former with that locality, the latter sequential.
Rates Serve(uint64_t seed, const SchedulerConfig& config, const ClassSpec& large_disk,
            const ClassSpec& small_disk, double locality) {
  Cluster cluster(seed);
  cluster.AddOsd(config, FastDisk());
  cluster.SetClass(large_disk);
  cluster.SetClass(small_disk);
  Load* large = cluster.Start(
      {.class_id = kLargeDisk, .outstanding = 8, .shape = FlowOn(0, locality).shape()});
  Load* small =
      cluster.Start({.class_id = kSmallDisk, .outstanding = 8, .shape = FlowOn(1, 1).shape()});
  cluster.RunTo(kTo);
  return {large->Iops(kFrom, kTo), small->Iops(kFrom, kTo)};
}

ClassSpec Promised(ClassId id, double part) {
  ClassSpec spec = Spec(id);
  spec.reservation =
      Reservation{.bytes_per_s = static_cast<uint64_t>(part * static_cast<double>(kRate))};
  return spec;
}

void RunVirtualDisksUnified(Run& run) {
  const bool bytes = run.broken(Fault::kTimeUncounted);
  const ClassSpec large = bytes ? Promised(kLargeDisk, .75) : RentADisk(kLargeDisk, .75);
  const ClassSpec small = bytes ? Promised(kSmallDisk, .25) : RentADisk(kSmallDisk, .25);
  for (const double locality : kLocalities) {
    const auto percent = std::to_string(std::lround(locality * 100)) + " %";
    const Rates own = Serve(run.seed(), VdConfig(), RentADisk(kLargeDisk, .75),
                            RentADisk(kSmallDisk, .25), locality);
    const Rates got = Serve(run.seed(), Unified(), large, small, locality);
    run.NearPart("25 % disk, requests/s, neighbour's locality " + percent, got.small, own.small,
                 .05);
    run.NearPart("75 % disk, requests/s, its locality " + percent, got.large, own.large, .08);
  }

  // A promise in bytes holds as long as its time stays within what was booked for it.
  const Rates near = Serve(run.seed(), Unified(), Promised(kLargeDisk, .75), small, 1);
  // A request of 512 bytes counts as one token.
  run.AtLeast("promise of 75 % in bytes, sequential, of what it was promised",
              near.large * kTokenBytes / (.75 * static_cast<double>(kRate)), .98);
  run.AtLeast("25 % disk beside it, requests/s", near.small, .95 * .25 * kFastPeak);
  const Rates far = Serve(run.seed(), Unified(), Promised(kLargeDisk, .75), small, .35);
  run.AtLeast("25 % disk beside a promise in bytes with locality 35 %, requests/s", far.small,
              .95 * .25 * kFastPeak);
}

}  // namespace

void AddVdUnified(std::vector<Experiment>* all) {
  all->push_back(
      {"E58", "Virtual disks in the default profile", "VD figures 3, 4; beyond the paper",
       "Two rented disks, 75 % and 25 %, on the fast disk under `unified`, where they are "
       "leaves in device time, against profile `vd`. Then the 75 % as a promise in bytes, "
       "booked as that much time.",
       RunVirtualDisksUnified});
}

}  // namespace weir::sim
