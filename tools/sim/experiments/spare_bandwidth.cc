// E36, E37: how efficient the disk is under VC, CVC and C-SCAN, Stonehenge figure 3.
#include "tools/sim/experiments/all.h"
#include "tools/sim/experiments/stonehenge_setup.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFrom = 40s, kTo = 200s;

struct Order {
  std::string_view profile;
  uint32_t run_max = 0;
  bool late_mode = false;
};
constexpr Order kVc{"vc"}, kCscan{"cscan"}, kCvc{"cvc"}, kCvcOne{"cvc", 1},
    kCvcLate{"cvc", 0, true};

struct Outcome {
  double iops = 0;
  double late = 0;  // part of the requests
};

// Three classes of 2S, 5S and 14S of 210 parts of IOPSmax, all with more to do than the disk can.
// `even`: sixteen requests of each waiting, else 8, 16 and 32.
Outcome Random(Run& run, const Order& order, int s, bool even = false) {
  constexpr double kIopsMax = 100;
  const double parts[] = {2, 5, 14};
  Cluster cluster(run.seed());
  SchedulerConfig config = StonehengeConfig(run, order.profile, kIopsMax);
  config.cvc.run_max = order.run_max;
  config.cvc.late_mode = order.late_mode && !run.broken(Fault::kLatestStartIgnored);
  SimOsd& osd = cluster.AddOsd(config, Hdd(HddModelOf("dtla-307075")));
  ServiceTally tally(&cluster, &osd, kFrom);
  const auto third = static_cast<uint64_t>(10 * kGigabyte);  // 40 % of the disk is touched
  for (uint32_t i = 0; i < 3; ++i) {
    cluster.SetClass(PerSecond(ClassId(16 + i), parts[i] * s / 210 * kIopsMax));
    cluster.Start({.class_id = ClassId(16 + i),
                   .outstanding = even ? 16 : 8 << i,
                   .shape = RandomReadsOf(8192, i * third, third)});
  }
  cluster.RunTo(kTo);
  return {static_cast<double>(tally.done()) / ToSeconds(kTo - kFrom), tally.LatePart()};
}

// Figure 3(b). The same number of requests waiting of each, so that C-SCAN's shares are not by
// chance those of the promises.
void CheckLate(Run& run) {
  Figure late{"Requests after their finish time", "S", "part", {{"VC"}, {"CVC"}, {"C-SCAN"}}};
  for (const int s : {2, 4, 6, 8, 10, 13}) {
    const double vc = Random(run, kVc, s, true).late;
    const double cvc = Random(run, kCvc, s, true).late;
    const double cscan = Random(run, kCscan, s, true).late;
    const double parts[] = {vc, cvc, cscan};
    for (size_t i = 0; i < 3; ++i) {
      late.curves[i].x.push_back(s);
      late.curves[i].y.push_back(parts[i]);
    }
    const std::string at = ", S = " + std::to_string(s);
    if (s <= 8) {
      run.AtMost("late, VC less CVC" + at, vc - cvc, .01);
      run.AtMost("late, CVC less C-SCAN" + at, cvc - cscan, .01);
    }
    // What deadlines are for: C-SCAN breaks promises that CVC can keep, while they can be kept.
    if (s == 8) run.AtLeast("late, C-SCAN less CVC" + at, cscan - cvc, .1);
    if (s == 13) run.AtMost("late, C-SCAN less CVC" + at, cscan - cvc, 0);
  }
  run.Draw(std::move(late));
}

void RunRandom(Run& run) {
  Figure efficiency{"Efficiency of the disk, C-SCAN = 1", "S (10: all is booked)", "", {}};
  const std::vector<std::pair<std::string, Order>> orders{
      {"VC", kVc}, {"CVC", kCvc}, {"CVC, M_run 1", kCvcOne}, {"CVC, late mode", kCvcLate}};
  std::map<std::string, std::map<int, Outcome>> found;
  std::map<int, Outcome> cscan;
  for (const int s : {2, 4, 6, 8, 10, 13}) cscan[s] = Random(run, kCscan, s);
  for (const auto& [name, order] : orders) {
    Curve e{name, {}, {}};
    for (const auto& [s, base] : cscan) {
      found[name][s] = Random(run, order, s);
      e.x.push_back(s);
      e.y.push_back(found[name][s].iops / base.iops);
    }
    efficiency.curves.push_back(e);
  }
  efficiency.curves.push_back({"paper, CVC", {2}, {.89}, true});
  const auto part = [&](const std::string& name, int s) {
    return found[name][s].iops / cscan[s].iops;
  };
  run.AtMost("VC over C-SCAN with much to spare (S = 2)", part("VC", 2), .80, .65);
  run.Between("CVC with M_run 1 over VC, S = 2", part("CVC, M_run 1", 2) / part("VC", 2), 1.1, 1.35,
              1.25);
  run.Between("CVC with M_run 1 over C-SCAN, S = 2", part("CVC, M_run 1", 2), .72, .95, .89);
  run.AtLeast("CVC over VC, S = 2", part("CVC", 2) / part("VC", 2), 1.25, 1.53);
  run.AtMost("CVC over VC, overbooked (S = 13)", part("CVC", 13) / part("VC", 13), 1.05, 1.05);
  run.AtLeast("CVC with late mode over C-SCAN, S = 13", part("CVC, late mode", 13), .95, 1);
  double least = 1e9;
  double most = 0;
  for (const auto& [s, outcome] : found["VC"]) {
    least = std::min(least, outcome.iops);
    most = std::max(most, outcome.iops);
  }
  run.AtMost("VC varies over S by", most / least - 1, .06);
  run.Draw(std::move(efficiency));
  CheckLate(run);
}

// Two streams of 64 KB, each promised S of 20 parts of what C-SCAN gives them.
Outcome Video(Run& run, const Order& order, int s, double iops_max) {
  Cluster cluster(run.seed());
  SchedulerConfig config = StonehengeConfig(run, order.profile, iops_max);
  config.cvc.run_max = order.run_max;
  SimOsd& osd = cluster.AddOsd(config, Hdd(HddModelOf("dtla-307075")));
  ServiceTally tally(&cluster, &osd, kFrom);
  for (uint32_t i = 0; i < 2; ++i) {
    cluster.SetClass(PerSecond(ClassId(16 + i), s * iops_max / 20));
    const auto start = static_cast<uint64_t>(i * 15 * kGigabyte);
    cluster.Start({.class_id = ClassId(16 + i),
                   .outstanding = 8,
                   .shape = [start](Prng&, uint64_t n, Io* io) {
                     io->op = osd::qos::OpKind::kRead;
                     io->bytes = 64 * kKiB;
                     io->lba = start + n * 64 * kKiB % static_cast<uint64_t>(15 * kGigabyte);
                   }});
  }
  cluster.RunTo(kTo);
  return {static_cast<double>(tally.done()) / ToSeconds(kTo - kFrom), tally.LatePart()};
}

void RunVideo(Run& run) {
  const double most = Video(run, kCscan, 1, 100).iops;
  Curve gains{"CVC (M_run 1) over VC", {}, {}};
  for (const int s : {1, 2, 3, 6, 10}) {
    const double vc = Video(run, kVc, s, most).iops;
    gains.x.push_back(s);
    gains.y.push_back(Video(run, kCvcOne, s, most).iops / vc);
    if (s <= 3) {
      run.AtLeast("CVC over VC, S = " + std::to_string(s), gains.y.back(), 1.4, 1.65);
    }
  }
  const double random = Random(run, kCvcOne, 2).iops / Random(run, kVc, 2).iops;
  run.AtLeast("gain with sequential streams less gain with random ones, S = 2", gains.y[1] - random,
              0);
  run.AtMost("gain at S = 10 less gain at S = 2", gains.y[4] - gains.y[1], 0);
  run.Draw({"Gain of CVC over VC, two video streams", "S", "", {gains}});
}

}  // namespace

void AddSpareBandwidth(std::vector<Experiment>* all) {
  all->push_back(
      {"E36", "Disk efficiency and late requests as spare bandwidth shrinks",
       "Stonehenge figure 3(a)(b)",
       "Three classes that always have 8, 16 and 32 random reads waiting on 40 % of a disk, "
       "promised 2S, 5S and 14S of 210 parts of IOPSmax. C-SCAN's service time over one's own, and "
       "requests served after their finish time. The paper's CVC lies between ours with M_run 1 "
       "and without a bound. Overbooked, CVC falls to VC order and stays there; late mode does "
       "not.",
       RunRandom});
  all->push_back({"E37", "Disk efficiency with two video streams", "Stonehenge figure 3(c)",
                  "Two sequential streams of 64 KB: VC alternates and seeks every time, CVC serves "
                  "runs as long as finish times allow. Paper: 50 to 80 % better while S <= 3.",
                  RunVideo});
}

}  // namespace weir::sim
