// E41 to E44: AQuA figures 7 to 10, writers that start one after the other.
#include "tools/sim/devices/hdd.h"
#include "tools/sim/devices/simple.h"
#include "tools/sim/experiments/all.h"
#include "tools/sim/experiments/aqua_setup.h"
#include "tools/sim/experiments/dsfq_setup.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kGap = 30s, kEnd = 90s;

struct Writers {
  std::unique_ptr<Cluster> cluster;
  std::vector<Load*> loads;
};

// Writers at 0, 30 and 60 s on one OSD, up to `end`.
Writers RunWriters(const Run& run, const SchedulerConfig& config, const DeviceFactory& device,
                   bool promises) {
  Writers writers{std::make_unique<Cluster>(run.seed()), {}};
  writers.cluster->AddOsd(config, device);
  AddWriterClasses(run, writers.cluster.get(), promises);
  for (size_t i = 0; i < 3; ++i) {
    writers.loads.push_back(StartWriter(writers.cluster.get(), i));
    writers.cluster->RunTo(i < 2 ? kGap * static_cast<int>(i + 1) : kEnd);
  }
  return writers;
}

void DrawWriters(Run& run, const Writers& writers, const std::string& title) {
  Figure figure{title, "s", "MiB/s", {}};
  std::vector<double> sum;
  for (size_t i = 0; i < 3; ++i) {
    Curve curve{"writer " + std::to_string(i + 1), {}, {}};
    for (double rate : writers.loads[i]->Series(0s, kEnd, 1s)) {
      curve.x.push_back(static_cast<double>(curve.x.size()));
      curve.y.push_back(rate / static_cast<double>(kMiB));
      if (sum.size() < curve.y.size()) sum.push_back(0);
      sum[curve.y.size() - 1] += curve.y.back();
    }
    figure.curves.push_back(std::move(curve));
  }
  figure.curves.push_back({"sum", figure.curves[0].x, sum});
  run.Draw(std::move(figure));
}

// The paper's disk, whose arm pays its way from one stream to the next (the model alone would let a
// write go on for nothing where one of the last eight streams ended). Its cache of 8 MiB gathers
// what a sweep can take, so the loss is that of real sweeps.
DeviceFactory WritersDisk(bool cache) {
  HddModel model = HddModelOf("6y080p0");
  model.segments = 1;
  if (!cache) model.write_cache = 0;
  return Hdd(model);
}

double LossOf(const Writers& w) {
  return 1 - SumMiBps(w.loads, 62s, 90s) / w.loads[0]->MiBps(2s, 30s);
}

void RunWithout(Run& run) {
  const SchedulerConfig config = ProfileOf("noqos", 0);
  const Writers w = RunWriters(run, config, WritersDisk(!run.broken(Fault::kCacheOff)), false);
  const double one = w.loads[0]->MiBps(2s, 30s);
  run.Report("one writer, MiB/s (58 MB/s of the platter)", one, 55.3);
  const double two = SumMiBps({w.loads[0], w.loads[1]}, 32s, 60s) / 2;
  for (size_t i = 0; i < 2; ++i) {
    run.NearPart("two writers, of the half, writer " + std::to_string(i + 1),
                 w.loads[i]->MiBps(32s, 60s) / two, 1, .05);
  }
  const double three = SumMiBps(w.loads, 62s, 90s) / 3;
  for (size_t i = 0; i < 3; ++i) {
    run.NearPart("three writers, of the third, writer " + std::to_string(i + 1),
                 w.loads[i]->MiBps(62s, 90s) / three, 1, .05);
  }
  run.Between("loss of the sum from one writer to three (text: little)", LossOf(w), .03, .1);
  const Writers bare = RunWriters(run, config, WritersDisk(false), false);
  run.Report("the same loss on a disk without write cache", LossOf(bare));
  DrawWriters(run, w, "Three writers without QoS on the modelled 6Y080P0");
}

void RunPromises(Run& run) {
  const Writers w =
      RunWriters(run, OdisFor(run, false), Flat(60 * static_cast<double>(kMiB)), true);
  run.NearPart("[2,30) writer 1, MiB/s", w.loads[0]->MiBps(2s, 30s), 40, .02);
  run.NearPart("[32,60) sum", SumMiBps(w.loads, 32s, 60s), 40, .02);
  run.Between("[32,60) writer 1", w.loads[0]->MiBps(32s, 60s), 5.5, kUnbounded, 20);
  run.Between("[32,60) writer 2", w.loads[1]->MiBps(32s, 60s), 15.5, kUnbounded, 20);
  for (size_t i = 0; i < 3; ++i) {
    const auto promised = static_cast<double>(kPromised[i]);
    run.NearPart("[62,90) writer " + std::to_string(i + 1), w.loads[i]->MiBps(62s, 90s), promised,
                 .03);
  }
  // I-12: what completes in an interval was released in it (G and the buckets bound that) or
  // before.
  const double caps = 4 + 1 + 1.5 + 2;
  const double under_way = 12 * .5;
  double most = -1e9;
  for (Duration length : {Duration(100ms), Duration(1s), Duration(10s)}) {
    for (Duration at = 0s; at + length <= kEnd; at += 100ms) {
      const double sum = SumMiBps(w.loads, at, at + length) * ToSeconds(length);
      most = std::max(most, sum - 40 * ToSeconds(length));
    }
  }
  run.AtMost("most beyond G in any interval, MiB (buckets and requests under way)", most,
             caps + under_way);
  DrawWriters(run, w, "Reservations 5, 15, 20 of 40 MiB/s");
}

void RunMaximizer(Run& run) {
  Writers w = RunWriters(run, OdisFor(run, true), Flat(60 * static_cast<double>(kMiB)), true);
  DrawWriters(run, w, "Reservations 5, 15, 20 with the bandwidth maximizer, A = 60 MiB/s");
  double worst = kUnbounded;
  for (size_t i = 0; i < 3; ++i) {
    const Duration start = kGap * static_cast<int>(i) + (i == 0 ? 0s : 5s);
    for (Duration at = start; at + 10s <= kEnd; at += 10s) {
      worst = std::min(worst, w.loads[i]->MiBps(at, at + 10s) / static_cast<double>(kPromised[i]));
    }
  }
  run.AtLeast("least part of a promise served in any 10 s window", worst, .97);
  run.Between("sum in [70,90), MiB/s", SumMiBps(w.loads, 70s, 90s), 1.2 * 40, 60.5, 60);
  Cluster& cluster = *w.cluster;
  const auto rate = [&] {
    return static_cast<double>(cluster.osd().scheduler().State({}).token_rate) /
           static_cast<double>(kMiB);
  };
  run.Between("G settled, MiB/s", rate(), 40, 68, 63);
  run.NearPart("sum in the third 10 s window", SumMiBps(w.loads, 20s, 30s), 60, .05);
  cluster.osd().SetDeviceRate(35 * static_cast<double>(kMiB));
  cluster.RunTo(110s);
  run.Near("G 20 s after the device fell to 35 MiB/s", rate(), 40, .001);
}

// Figure 7's three cases: O <= min(G, A).
void RunScenarios(Run& run) {
  // The cases in their order: demand below both, A below G, G below A, the same with maximizer.
  Curve served{"O, served", {1, 2, 3, 4}, {}};
  Curve allowed{"G, allowed", {1, 2, 3, 4}, {}};
  const auto note = [&](Cluster& cluster, double rate) {
    served.y.push_back(rate);
    allowed.y.push_back(static_cast<double>(cluster.osd().scheduler().State({}).token_rate) /
                        static_cast<double>(kMiB));
  };
  {
    Cluster cluster(run.seed());
    cluster.AddOsd(OdisFor(run, true), Flat(60 * static_cast<double>(kMiB)));
    cluster.SetClass(Reserved(WriterId(0), 5 * kMiB));
    Load* load = cluster.Start({.class_id = WriterId(0), .pace = 20.0 * static_cast<double>(kMiB)});
    cluster.RunTo(30s);
    note(cluster, load->MiBps(2s, 30s));
    run.NearPart("(1) demand 20 below G and A: served", load->MiBps(2s, 30s), 20, .02);
    const double alone = 64.0 / 1024 / 60;
    run.AtMost("(1) wait beyond the device's own time, ms",
               (load->MeanLatency(2s, 30s) - alone) * 1e3, .1, 0);
  }
  {
    Cluster cluster(run.seed());
    // Few on the device: what it holds is served by its own order, not by promises.
    SchedulerConfig config = OdisFor(run, true);
    config.depth = 2;
    cluster.AddOsd(config, Flat(30 * static_cast<double>(kMiB)));
    AddWriterClasses(run, &cluster, true);
    std::vector<Load*> loads;
    for (size_t i = 0; i < 3; ++i) loads.push_back(StartWriter(&cluster, i));
    cluster.RunTo(40s);
    note(cluster, SumMiBps(loads, 2s, 40s));
    run.NearPart("(2) A = 30 below G: served", SumMiBps(loads, 2s, 40s), 30, .02);
    run.Near("(2) G stays, MiB/s",
             static_cast<double>(cluster.osd().scheduler().State({}).token_rate) /
                 static_cast<double>(kMiB),
             40, .001);
    loads[1]->SetOutstanding(0);  // 15 of 40 go unused: the others fit again
    cluster.RunTo(80s);
    run.AtLeast("(2) writer 1 when writer 2 rests", loads[0]->MiBps(45s, 80s), 5 * .97, 5);
    run.AtLeast("(2) writer 3 when writer 2 rests", loads[2]->MiBps(45s, 80s), 20 * .97, 20);
  }
  for (bool maximizer : {false, true}) {
    Cluster cluster(run.seed());
    cluster.AddOsd(OdisFor(run, maximizer), Flat(60 * static_cast<double>(kMiB)));
    AddWriterClasses(run, &cluster, true);
    std::vector<Load*> loads;
    for (size_t i = 0; i < 3; ++i) loads.push_back(StartWriter(&cluster, i));
    cluster.RunTo(60s);
    note(cluster, SumMiBps(loads, 30s, 60s));
    if (maximizer) {
      run.AtLeast("(3) A = 60 above G, with maximizer", SumMiBps(loads, 30s, 60s), 55, 60);
      continue;
    }
    run.NearPart("(3) A = 60 above G, without maximizer", SumMiBps(loads, 2s, 60s), 40, .02);
    double most = 0;
    for (Duration at = 0s; at < 60s; at += 1s) most = std::max(most, SumMiBps(loads, at, at + 1s));
    run.AtMost("(3) most in any second, MiB (G and the buckets)", most, 40 + 8.5 + 6);
  }
  run.Draw({"Demand 20; A below G; G below A; the same with maximizer",
            "case",
            "MiB/s",
            {served, allowed, {"A, attainable", {1, 2, 3, 4}, {60, 30, 60, 60}}}});
}

}  // namespace

void AddAquaFigures(std::vector<Experiment>* all) {
  all->push_back(
      {"E41", "Three writers without QoS", "AQuA figure 8",
       "Writers of 512 KiB blocks start at 0, 30 and 60 s on the modelled disk, whose arm travels "
       "between their streams: each gets an equal part, and little is lost from one stream to "
       "three. The paper says that large blocks are why; on the model it is the disk's cache of "
       "8 MiB, without which half is lost. The figure's MB/s are not in the text.",
       RunWithout});
  all->push_back(
      {"E42", "Reservations behind a strict gate", "AQuA figure 9",
       "Promises of 5, 15 and 20 of a global 40 MiB/s. Alone the first writer gets all 40; "
       "two share what nobody claims; three get exactly their promises. First come first "
       "served borrowing makes the totals of two equal (A10).",
       RunPromises});
  all->push_back(
      {"E43", "The bandwidth maximizer", "AQuA figure 10",
       "The same on a device that could do 60: G rises until the device is full, promises "
       "hold in every window, and when the device falls to 35 G returns to 40.",
       RunMaximizer});
  all->push_back(
      {"E44", "Observed, attainable and allowed bandwidth", "AQuA figure 7",
       "Demand below both; the device below G; G below the device: what is served is the "
       "least of the three, and only in the last case the maximizer acts.",
       RunScenarios});
}

}  // namespace weir::sim
