// E33, E34, E35: how many virtual disks fit, Stonehenge tables 2 to 4.
#include <algorithm>
#include <array>
#include <cmath>

#include "common/qos/delay_bound.h"
#include "tools/sim/experiments/all.h"
#include "tools/sim/experiments/rate_review.h"
#include "tools/sim/experiments/stonehenge_setup.h"
#include "tools/sim/workloads/arrivals.h"
#include "tools/sim/workloads/shapes.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;

// One disk. Each class is promised what makes seven of them 90 % of it in the worst case.
constexpr double kIopsMax = 100;
constexpr double kWorstCase = .9 / 7 * kIopsMax;  // by (10)
constexpr uint32_t kMaxPending = 4;
constexpr int kMost = 32;
constexpr Duration kWindow = 240s;  // of measurements; the paper's is a day

enum class Mix { kFinancial, kMixed };

struct Plan {
  Mix mix = Mix::kMixed;
  double probability = .95;
  // Requests per second that come, per class, and how bursty: fitted to what runs 1 and 2 of table
  // 2 admit, and to the Q of table 3.
  double mean_financial = 4;
  double financial_bias = .65;
  double mean_websearch = 8;
  double websearch_bias = .75;
  double inherent = .0425 * kIopsMax;  // IOPS': what the owner asks for
};

ServiceContract ContractOf(const Plan& plan) {
  ServiceContract contract;
  contract.max_pending = kMaxPending;
  contract.iops = plan.inherent;
  contract.probability = plan.probability;
  contract.bound = FromSeconds((kMaxPending + 1) / kWorstCase + 1 / kIopsMax);
  return contract;
}

LoadOptions ClassLoad(const Plan& plan, uint32_t index) {
  const bool websearch = plan.mix == Mix::kMixed && index % 2 == 1;
  LoadOptions options{.class_id = ClassId(16 + index)};
  ShapeOptions shape;
  shape.least_bytes = websearch ? 8 * kKiB : 512;
  shape.most_bytes = websearch ? 32 * kKiB : 6 * kKiB;
  shape.reads = websearch ? 1 : .23;
  shape.locality = websearch ? 0 : .05;
  shape.span = static_cast<uint64_t>(1.5 * kGigabyte);
  shape.start = index * shape.span;
  options.shape = MakeShape(shape);
  const double rate = websearch ? plan.mean_websearch : plan.mean_financial;
  const double bias = websearch ? plan.websearch_bias : plan.financial_bias;
  // Self-similar within eight seconds, one after the other.
  options.gap = [=, piece = Gap()](Prng& dice) mutable {
    for (;;) {
      if (!piece) piece = BModel(rate, bias, 8s, &dice);
      const Duration next = piece(dice);
      if (next != Duration::max()) return next;
      piece = nullptr;
    }
  };
  return options;
}

// What n classes do together, and what a monitor sees of it.
struct Level {
  double worst_within = 1;  // smallest part of its requests within the bound, over the classes
  std::unique_ptr<osd::qos::ServiceMonitor> monitor;
};

class Ladder {
 public:
  Ladder(Run& run, const Plan& plan) : run_(run), plan_(plan), levels_(kMost + 1) {}

  const Level& At(int n) {
    auto& level = levels_[static_cast<size_t>(n)];
    if (!level.monitor) level = Measure(n);
    return level;
  }

  // The largest n up to which every admission is granted.
  int Deterministic() {
    return Climb([&](int n) {
      return AdmitContract(Admitted(n - 1), ContractOf(plan_), kIopsMax).admitted;
    });
  }
  int Measured() {
    return Climb([&](int n) { return Decide(n).admitted; });
  }
  // The n-th one's admission, after measuring n - 1.
  ContractDecision Decide(int n) {
    ServiceMeasures measures;
    if (n > 1 && !run_.broken(Fault::kMeasurementOff)) measures = At(n - 1).monitor->Measures();
    AdmissionOptions options;
    if (run_.broken(Fault::kAdjustmentOff)) options.safety = 0;
    return AdmitMeasured(Admitted(n - 1), ContractOf(plan_), kIopsMax, measures, options);
  }
  // The largest n with which each class still has its bound in E of its requests.
  int Oracle() {
    return Climb([&](int n) { return At(n).worst_within >= plan_.probability; });
  }

 private:
  // A throughput-bound class counts with what it declared (A20), as in the paper's table 3.
  std::vector<AdmittedClass> Admitted(int n) const {
    return std::vector<AdmittedClass>(static_cast<size_t>(n), {ContractOf(plan_), false});
  }
  template <typename Granted>
  static int Climb(const Granted& granted) {
    int n = 0;
    while (n < kMost && granted(n + 1)) ++n;
    return n;
  }

  Level Measure(int n) {
    Level level;
    Cluster cluster(run_.seed() + 100);
    SchedulerConfig config = StonehengeConfig(run_, "cvc", kIopsMax);
    config.cvc.late_mode = !run_.broken(Fault::kLatestStartIgnored);
    SimOsd& osd = cluster.AddOsd(config, Hdd(HddModelOf("dtla-307075")));
    ServiceTally tally(&cluster, &osd, 10s);
    level.monitor = std::make_unique<osd::qos::ServiceMonitor>(kWindow, TimePoint{0});
    tally.on_delay = [&](ClassId, double part) {
      level.monitor->NoteDelay(part, cluster.events().now());
    };
    const ServiceContract contract = ContractOf(plan_);
    for (int i = 0; i < n; ++i) {
      const ClassId id(16 + static_cast<uint32_t>(i));
      tally.Bound(id, contract.bound, std::make_shared<osd::qos::DelayClock>(kMaxPending));
      cluster.SetClass(Contracted(id, contract));
      cluster.Start(ClassLoad(plan_, static_cast<uint32_t>(i)));
    }
    cluster.RunTo(kWindow);
    for (int i = 0; i < n; ++i) {
      const auto& row = tally.row(ClassId(16 + static_cast<uint32_t>(i)));
      if (row.done == 0) continue;
      const double within = 1 - static_cast<double>(row.over) / static_cast<double>(row.done);
      level.worst_within = std::min(level.worst_within, within);
    }
    return level;
  }

  Run& run_;
  Plan plan_;
  std::vector<Level> levels_;
};

// n classes whose finish times are spaced by what was measured (A24), reviewed every minute.
struct Reviewed {
  double worst_within = 1;
  double granted = 0;  // requests per second, to each, at the end
  int changes = 0;
};

class ReviewedClasses {
 public:
  ReviewedClasses(Run& run, const Plan& plan, int n)
      : contract_(ContractOf(plan)), count_(n), cluster_(run.seed() + 100) {
    SchedulerConfig config = StonehengeConfig(run, "cvc", kIopsMax);
    config.cvc.late_mode = !run.broken(Fault::kLatestStartIgnored);
    SimOsd& osd = cluster_.AddOsd(config, Hdd(HddModelOf("dtla-307075")));
    ServiceTally tally(&cluster_, &osd, kWindow);
    tally.on_delay = [this](ClassId, double part) {
      const double rate = contract_.granted_iops > 0 ? contract_.granted_iops : kWorstCase;
      const double worst = DelayBound(kMaxPending, rate, kIopsMax);
      monitor_.NoteDelay(part * ToSeconds(contract_.bound) / worst, cluster_.events().now());
    };
    SetClasses();
    for (int i = 0; i < n; ++i) {
      const auto index = static_cast<uint32_t>(i);
      tally.Bound(IdOf(i), contract_.bound, std::make_shared<osd::qos::DelayClock>(kMaxPending));
      cluster_.Start(ClassLoad(plan, index));
    }
    for (Duration at = 10s; at < 3 * kWindow; at += 10s) cluster_.At(at, [this] { Review(); });
    cluster_.RunTo(3 * kWindow);
    result_.granted = contract_.granted_iops;
    for (int i = 0; i < n; ++i) {
      const auto& row = tally.row(IdOf(i));
      const double over = static_cast<double>(row.over) / static_cast<double>(row.done);
      result_.worst_within = std::min(result_.worst_within, 1 - over);
    }
  }
  [[nodiscard]] const Reviewed& result() const { return result_; }

 private:
  static ClassId IdOf(int i) { return ClassId(16 + static_cast<uint32_t>(i)); }

  void SetClasses() {
    for (int i = 0; i < count_; ++i) cluster_.SetClass(Contracted(IdOf(i), contract_));
  }
  void Review() {
    const std::vector<AdmittedClass> classes(static_cast<size_t>(count_), {contract_, false});
    const TimePoint now = cluster_.events().now();
    const auto rates = review_.Review(classes, kIopsMax, monitor_.Measures(), now);
    if (rates.empty()) return;
    ++result_.changes;
    contract_.granted_iops = rates.front();
    SetClasses();
    monitor_.Restart(now);  // what is measured next is measured under the new rates
  }

  ServiceContract contract_;
  const int count_;
  Cluster cluster_;
  osd::qos::ServiceMonitor monitor_{kWindow / 4, TimePoint{0}};
  RateReview review_;
  Reviewed result_;
};

struct Counts {
  int deterministic = 0, measured = 0, oracle = 0;
  double worst_within = 0;  // with what was admitted by measurement
};

Counts Count(Run& run, const Plan& plan) {
  Ladder ladder(run, plan);
  Counts counts;
  counts.deterministic = ladder.Deterministic();
  counts.measured = ladder.Measured();
  counts.oracle = ladder.Oracle();
  counts.worst_within = ladder.At(std::max(1, counts.measured)).worst_within;
  return counts;
}

void RunRuns(Run& run) {
  const std::array<Plan, 3> plans{{{.mix = Mix::kFinancial}, {}, {.probability = .85}}};
  const double paper[3][2] = {{20, 22}, {14, 14}, {17, 17}};
  const double least_part[] = {.65, .8, .7};
  std::array<Counts, 3> found;
  for (size_t i = 0; i < 3; ++i) {
    const Counts& c = found[i] = Count(run, plans[i]);
    const std::string name = "run " + std::to_string(i + 1) + ": ";
    run.Near(name + "worst case", c.deterministic, 7, 0);
    run.Between(name + "measured", c.measured, paper[i][0] - (i == 2 ? 2 : 1), paper[i][0] + 1,
                paper[i][0]);
    run.Report(name + "oracle", c.oracle, paper[i][1]);
    run.Between(name + "measured of the oracle's", c.measured / static_cast<double>(c.oracle),
                least_part[i], 1, paper[i][0] / paper[i][1]);
    run.AtLeast(name + "worst class within its bound, less E",
                c.worst_within - plans[i].probability, -.02);
  }
  run.Between("run 3 less run 2: a smaller E", found[2].measured - found[1].measured, 1, 4, 3);
  run.Between("run 1 less run 2: smaller requests", found[0].measured - found[1].measured, 4, 8, 6);
}

void RunEvolution(Run& run) {
  Ladder ladder(run, {});
  const double paper[] = {.11, .14, .15, .19, .24, .30, .37, .49};
  const double paper_reserved[] = {.34, .38, .43, .47, .51, .55, .67};  // for 8 to 14
  const int last = ladder.Measured();
  Curve quantiles{"Q(.95)", {}, {}};
  Curve reserved{"reserved by measurement", {}, {}};
  Curve table_q{"Q(.95), paper", {}, {}, true}, table_reserved{"reserved, paper", {}, {}, true};
  double fall = 0;
  const int top = std::max(last, 14);
  for (int n = 7; n <= top; ++n) {
    quantiles.x.push_back(n);
    quantiles.y.push_back(ladder.At(n).monitor->ServicePart(.95));
    reserved.x.push_back(n);
    reserved.y.push_back(ladder.Decide(n).reserved / kIopsMax);
    if (n > 7) fall = std::max(fall, quantiles.y[quantiles.y.size() - 2] - quantiles.y.back());
    if (n > 14) continue;
    table_q.x.push_back(n);
    table_q.y.push_back(paper[n - 7]);
    const std::string with = " with " + std::to_string(n);
    if (n < 14) {
      run.Between("Q(.95)" + with, quantiles.y.back(), .5 * paper[n - 7], 1.5 * paper[n - 7],
                  paper[n - 7]);
    } else {
      run.Report("Q(.95)" + with, quantiles.y.back(), paper[n - 7]);
    }
    if (n == 7) continue;
    table_reserved.x.push_back(n);
    table_reserved.y.push_back(paper_reserved[n - 8]);
    // Up to 10 the declared rates decide. Then (11) does: the paper's classes take 8.4 % each by
    // (10), ours 12.86 %, so ours rises earlier.
    const double theirs = paper_reserved[n - 8];
    if (n > 12) {
      // Near the knee a seed decides (and with it whether 13 to 15 are admitted: E33, run 2).
      run.Report("reserved" + with, reserved.y.back(), theirs);
      continue;
    }
    run.Between("reserved" + with, reserved.y.back(), theirs - .03, theirs + (n <= 10 ? .03 : .3),
                theirs);
  }
  run.AtMost("Q(.95) never falls by more than a bin as classes come", fall, .011);
  const Reviewed reviewed = ReviewedClasses(run, {}, last).result();
  run.AtLeast("reviews that changed rates (A24)", reviewed.changes, 3);
  run.Between("rate of each after them, requests/s, of 12.9 in the worst case", reviewed.granted,
              Plan().inherent, kWorstCase * .75);
  run.AtLeast("worst class within its bound under those rates, less E",
              reviewed.worst_within - Plan().probability, -.02);
  run.Draw({"Measurement-based admission",
            "classes",
            "part of IOPSmax",
            {quantiles, reserved, table_q, table_reserved}});
}

void RunElasticity(Run& run) {
  const double probabilities[] = {.95, .90, .85, .80};
  const double paper[][2] = {{17, 17}, {18, 20}, {19, 21}, {20, 22}};
  std::vector<Counts> found;
  double fall = 0;
  for (size_t i = 0; i < 4; ++i) {
    Plan plan;
    plan.probability = probabilities[i];
    plan.inherent = .01 * kIopsMax;  // the bound alone decides
    plan.mean_financial = 3.8;
    plan.financial_bias = .75;
    plan.mean_websearch = 5.2;
    plan.websearch_bias = .7;
    found.push_back(Count(run, plan));
    const Counts& c = found.back();
    const std::string name = "E = " + std::to_string(std::lround(100 * probabilities[i])) + " %: ";
    run.Near(name + "worst case", c.deterministic, 7, 0);
    run.Near(name + "measured", c.measured, paper[i][0], 1);
    run.Report(name + "oracle", c.oracle, paper[i][1]);
    run.Between(name + "measured of the oracle's", c.measured / static_cast<double>(c.oracle), .65,
                1, paper[i][0] / paper[i][1]);
    if (i > 0) fall = std::max<double>(fall, found[i - 1].measured - c.measured);
  }
  run.AtMost("a smaller E never admits fewer", fall, 0);
  run.Between("admitted with 80 % less with 95 %", found[3].measured - found[0].measured, 2, 4, 3);
}

}  // namespace

void AddMeasuredAdmission(std::vector<Experiment>* all) {
  const std::string about =
      "Classes on one disk under CVC, each promised a bound that in the worst case (10) takes "
      "12.86 % of the disk, so that seven fit; bursty arrivals. Measured: (11) with the delays and "
      "rates of the classes admitted so far. Oracle: as many as really keep their bound. The "
      "paper's "
      "numbers belong to its traces on its array, neither of which is public; here stand-ins come "
      "at two rates, fitted so that measurement admits what it does in runs 1 and 2 of the paper's "
      "table 2. The rest follows: exactly seven by the worst case, run 3, Q and what is reserved, "
      "bounds kept. Not reproduced: in the paper measurement admits nearly as many as the oracle "
      "(20 of 22, 14 of 14, 17 of 17), here three quarters to nine tenths; our oracle runs the "
      "very "
      "same arrivals again, and s = .2 holds back what it knows to be free. ";
  all->push_back({"E33", "How many classes are admitted", "Stonehenge table 2",
                  about + "Financial alone at 95 %, and half WebSearch at 95 and 85 %.", RunRuns});
  all->push_back(
      {"E34", "Reservations as classes are admitted", "Stonehenge table 3",
       about + "Q(.95) and what measurement reserves, class by class; at the end the last number "
               "of classes runs on under rates that follow the measurements (A24).",
       RunEvolution});
  all->push_back({"E35", "Elasticity and admission", "Stonehenge table 4",
                  about + "Latency-bound classes with E from 95 to 80 %.", RunElasticity});
}

}  // namespace weir::sim
