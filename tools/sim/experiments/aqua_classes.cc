// E45 to E47: admission and expiry, transactions within a class, a class striped over OSDs.
#include "tools/sim/devices/simple.h"
#include "tools/sim/experiments/all.h"
#include "tools/sim/experiments/aqua_setup.h"
#include "tools/sim/experiments/dsfq_setup.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;

constexpr double kMiBd = static_cast<double>(kMiB);

void CheckAdmission(Run& run) {
  const uint64_t least = kGlobalRate * kMiB / 100;
  const auto admitted = [&](uint64_t others, uint64_t rate) {
    return AdmitAdditive(kGlobalRate * kMiB, least + others, rate).admitted;
  };
  run.True("5 MiB/s of 40 are accepted", admitted(0, 5 * kMiB));
  run.True("15 more are accepted", admitted(5 * kMiB, 15 * kMiB));
  run.True("20 more are refused: 40.4 in all", !admitted(20 * kMiB, 20 * kMiB));
  run.True("19.6 more are accepted", admitted(20 * kMiB, kGlobalRate * kMiB - 20 * kMiB - least));
  run.True("15 becoming 20 needs only the difference", admitted(5 * kMiB, 20 * kMiB));
  run.Near("tokens of 256 KiB", static_cast<double>(TokensOf(256 * kKiB)), 256, 0);
  run.Near("tokens of one byte", static_cast<double>(TokensOf(1)), 1, 0);
}

// A promise for ten seconds, a class nobody knows, and class 0 under full load.
void CheckExpiry(Run& run) {
  Cluster cluster(run.seed());
  SchedulerConfig config = OdisFor(run, false);
  config.best_effort_min = kMiB;
  cluster.AddOsd(config, Flat(60 * kMiBd));
  ClassSpec spec = Reserved(WriterId(0), 30 * kMiB);
  spec.reservation_ends = TimePoint{0} + 10s;
  cluster.SetClass(spec);
  Load* promised = StartWriter(&cluster, 0);
  Load* unknown = cluster.Start({.class_id = ClassId(99), .outstanding = 4, .bytes = 512 * kKiB});
  cluster.RunTo(20s);
  run.AtLeast("promised 30 for 10 s, before", promised->MiBps(2s, 10s), 30 * .97, 30);
  run.NearPart("a class that does not exist shares as class 0, before", unknown->MiBps(2s, 10s), 10,
               .1);
  run.NearPart("promised, after it has ended", promised->MiBps(12s, 20s), 20, .06);

  Cluster full(run.seed());
  full.AddOsd(config, Flat(60 * kMiBd));
  for (size_t i = 0; i < 2; ++i)
    full.SetClass(Reserved(WriterId(i), i == 0 ? 20 * kMiB : 19 * kMiB));
  for (size_t i = 0; i < 2; ++i) StartWriter(&full, i);
  Load* rest = full.Start({.class_id = kBestEffort, .outstanding = 4, .bytes = 64 * kKiB});
  full.RunTo(20s);
  run.AtLeast("class 0 under full load, MiB/s (I-17)", rest->MiBps(2s, 20s), .97, 1);
}

void RunAdmission(Run& run) {
  CheckAdmission(run);
  CheckExpiry(run);
}

Load* StartTransaction(Cluster* cluster, ClassId id, uint32_t transaction, int outstanding = 4) {
  return cluster->Start({.class_id = id,
                         .outstanding = outstanding,
                         .bytes = 256 * kKiB,
                         .transaction = transaction});
}

void RunTransactions(Run& run) {
  const auto make = [&](bool second_level) {
    auto cluster = std::make_unique<Cluster>(run.seed());
    cluster->AddOsd(OdisFor(run, false), Flat(60 * kMiBd));
    ClassSpec spec = Reserved(WriterId(0), 20 * kMiB);
    if (second_level && !run.broken(Fault::kTransactionsOff))
      spec.transactions = {{1, 8 * kMiB}, {2, 4 * kMiB}};
    cluster->SetClass(spec);
    cluster->SetClass(Reserved(WriterId(1), 20 * kMiB));
    return cluster;
  };
  auto cluster = make(true);
  const std::vector<Load*> parts{StartTransaction(cluster.get(), WriterId(0), 1),
                                 StartTransaction(cluster.get(), WriterId(0), 2, 1),
                                 StartTransaction(cluster.get(), WriterId(0), 0, 16)};
  Load* other = StartWriter(cluster.get(), 1);
  cluster->RunTo(40s);
  run.AtLeast("transaction of 8 MiB/s", parts[0]->MiBps(2s, 40s), 8 * .97, 8);
  run.AtLeast("transaction of 4 MiB/s, one request at a time", parts[1]->MiBps(2s, 40s), 4 * .97,
              4);
  run.NearPart("the class, MiB/s", SumMiBps(parts, 2s, 40s), 20, .03);
  run.NearPart("the other class, MiB/s", other->MiBps(2s, 40s), 20, .03);
  other->SetOutstanding(0);
  cluster->RunTo(80s);
  run.NearPart("the class when the other rests: borrows from the root", SumMiBps(parts, 45s, 80s),
               40, .03);

  // One transaction in each class: nothing changes (E42's last phase).
  Cluster plain(run.seed());
  plain.AddOsd(OdisFor(run, false), Flat(60 * kMiBd));
  std::vector<Load*> writers;
  for (size_t i = 0; i < 3; ++i) {
    ClassSpec spec = Reserved(WriterId(i), kPromised[i] * kMiB);
    spec.transactions = {{1, kPromised[i] * kMiB}};
    plain.SetClass(spec);
    writers.push_back(plain.Start(
        {.class_id = WriterId(i), .outstanding = 4, .bytes = 512 * kKiB, .transaction = 1}));
  }
  plain.RunTo(40s);
  for (size_t i = 0; i < 3; ++i) {
    run.NearPart("one transaction per class, writer " + std::to_string(i + 1),
                 writers[i]->MiBps(2s, 40s), static_cast<double>(kPromised[i]), .03);
  }
}

struct StripedFile {
  double all = 0;       // MiB/s
  double least = 0;     // of one OSD
  double furthest = 0;  // the fastest OSD beyond the slowest, as a part of it
};

// A file over the first `over` of four OSDs, each of which promises f * R / 4; hogs on the first
// `hogs`.
StripedFile Striped(Run& run, size_t hogs, size_t over = 4) {
  constexpr uint64_t kTotal = 40 * kMiB;
  Cluster cluster(run.seed());
  for (int i = 0; i < 4; ++i) cluster.AddOsd(OdisFor(run, false), Flat(60 * kMiBd));
  cluster.SetClass(Reserved(WriterId(0), kTotal * 12 / 10 / 4));
  cluster.SetClass(Spec(WriterId(1)));
  for (size_t osd = 0; osd < hogs; ++osd) {
    cluster.Start({.class_id = WriterId(1), .outstanding = 64, .bytes = 512 * kKiB, .osd = osd});
  }
  std::vector<Load*> parts;
  const bool apart = run.broken(Fault::kStripesApart) && over > 1;
  for (size_t part = 0; part < (apart ? over : 1); ++part) {
    const auto route = [=](uint64_t n) {
      return std::pair<size_t, size_t>(apart ? part : n % over, 0);
    };
    parts.push_back(cluster.Start({.class_id = WriterId(0),
                                   .outstanding = apart ? 16 / static_cast<int>(over) : 16,
                                   .bytes = 512 * kKiB,
                                   .route = route}));
  }
  cluster.RunTo(30s);
  StripedFile file{SumMiBps(parts, 4s, 30s), 1e9, 0};
  double most = 0;
  for (size_t osd = 0; osd < over; ++osd) {
    double here = 0;
    for (const Load* part : parts) here += part->MiBps(4s, 30s, static_cast<int>(osd));
    file.least = std::min(file.least, here);
    most = std::max(most, here);
  }
  file.furthest = most / file.least - 1;
  return file;
}

void RunStripedClass(Run& run) {
  // First come, first served: the hogs' 64 requests leave the file nothing beyond its tokens.
  run.Between("R = 40 MiB/s over four OSDs, hogs on all of them", Striped(run, 4).all, 40, 50, 48);
  const StripedFile one = Striped(run, 1);
  const double alone = Striped(run, 1, 1).all;
  run.Between("what the hogs' OSD gives the class by itself, MiB/s", alone, 12 * .98, 13, 12);
  run.NearPart("hogs on one only: the file, of four times that OSD", one.all / (4 * alone), 1, .03);
  run.Between("hogs on one only: the fastest OSD beyond the slowest, part", one.furthest, 0, .02,
              0);
  run.NearPart("hogs on none: four times G, MiB/s", Striped(run, 0).all, 160, .02);
}

}  // namespace

void AddAquaClasses(std::vector<Experiment>* all) {
  all->push_back({"E45", "Admission, expiry and class 0", "AQuA §5.1, §5.2",
                  "Promises add up to G0 less the minimum of class 0 and no further; one that ends "
                  "leaves its class to compete; unknown classes are class 0; class 0 always moves.",
                  RunAdmission});
  all->push_back(
      {"E46", "Transactions share their class's tokens", "AQuA §6, future work",
       "A class of 20 MiB/s with transactions of 8, 4 and the rest, against another class of "
       "20: each transaction has its rate, together they have 20; when the other class rests "
       "they borrow; one transaction per class changes nothing.",
       RunTransactions});
  all->push_back(
      {"E47", "A class striped over four OSDs", "AQuA §3",
       "R = 40 MiB/s split as 1.2 R / 4 per OSD: the file has at least R against hogs on "
       "every OSD; with hogs on one only it moves at four times what the class gets there by "
       "itself. The paper has no figure of it.",
       RunStripedClass});
}

}  // namespace weir::sim
