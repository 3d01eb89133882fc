// Experiment: one figure, table or worked example of a paper, run in virtual time and checked
// against the numbers of the paper, or of what follows from it.
//
// An experiment is a function that fills a Run: it adds checks, and figures that lay ours beside
// the paper's. All chance comes from Run::seed, so a seed gives the same document, byte for byte.
// Experiments share no state: they run in several threads at once.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace weir::sim {

inline constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kUnbounded = std::numeric_limits<double>::infinity();

struct Check {
  std::string name;
  double expected = kNoNumber;  // what the paper (or theory) says, if it says a number
  double measured = 0;
  double low = -kUnbounded;  // passes within [low, high]
  double high = kUnbounded;

  [[nodiscard]] bool pass() const { return measured >= low && measured <= high; }
};

// A line or a set of points of a figure.
struct Curve {
  std::string name;
  std::vector<double> x, y;
  bool paper = false;  // numbers of the paper, or of theory: drawn dashed
};

struct Figure {
  std::string title, x_label, y_label;
  std::vector<Curve> curves;
};

// Deliberately broken mechanisms: what an experiment's checks must notice (see README.md). An
// experiment that knows a fault breaks the mechanism through its options.
enum class Fault : uint8_t {
  kNone,
  kDelayOff,            // coordinators say nothing about other OSDs
  kHistoryOff,          // hybrid-h forgets what it truncated
  kMinimumOff,          // no minimum share: hybrid becomes total
  kReservationOff,      // promises are not kept (no guarantee stage)
  kGateOpen,            // the strict gate lets everything pass
  kMaximizerOff,        // G never moves
  kLatestStartIgnored,  // CVC takes the elevator's pick whatever the deadlines say
  kToleranceZero,       // no overdraw of throughput disks for latency disks
  kWeightsFrozen,       // BAA never recomputes
  kSpareCharged,        // spare time is billed to whoever uses it
  kSharesOff,           // who came first goes first, whatever the weights say
  kLimitOff,            // limits are not kept
  kLimitUndivided,      // each mount has all of a limit
  kTransactionsOff,     // no second level below a class
  kTimeUncounted,       // virtual disks are charged requests, not device time
  kGateShut,            // the gate is strict where it should let everything pass
  kMeasurementOff,      // admission believes the worst case instead of what it measured
  kManagerSlow,         // the central manager takes twice as long for a command
  kCacheOff,            // AQuA's disk has no write cache to gather blocks in
  kMinimumLarge,        // minimum shares are four times what is asked for
  kStripesApart,        // the parts of a striped file do not wait for one another
  kAdjustmentOff,       // admission by measurement makes no allowance for the newcomer
  kRunUnbounded,        // CVC's runs in the elevator's order have no bound
  kBoundIgnored,        // the governor takes every latency bound for one of ten seconds
  kWindowShort,         // BAA knows the hit ratios of the last second only
};
std::string_view ToText(Fault fault);
// kNone for an unknown word.
Fault ParseFault(std::string_view word);
std::vector<Fault> AllFaults();

class Run {
 public:
  explicit Run(uint64_t seed, Fault fault = Fault::kNone) : seed_(seed), fault_(fault) {}

  [[nodiscard]] uint64_t seed() const { return seed_; }
  [[nodiscard]] bool broken(Fault fault) const { return fault_ == fault; }

  void Add(Check check) { checks_.push_back(std::move(check)); }
  // Within `tolerance` of what is expected, absolute or as a part of it.
  void Near(std::string name, double measured, double expected, double tolerance);
  void NearPart(std::string name, double measured, double expected, double part);
  void Between(std::string name, double measured, double low, double high,
               double expected = kNoNumber);
  void AtLeast(std::string name, double measured, double low, double expected = kNoNumber);
  void AtMost(std::string name, double measured, double high, double expected = kNoNumber);
  void True(std::string name, bool holds);
  // A number worth seeing that nothing is asserted of.
  void Report(std::string name, double measured, double expected = kNoNumber);
  void Draw(Figure figure) { figures_.push_back(std::move(figure)); }

  [[nodiscard]] const std::vector<Check>& checks() const { return checks_; }
  [[nodiscard]] const std::vector<Figure>& figures() const { return figures_; }
  [[nodiscard]] bool pass() const;

 private:
  uint64_t seed_;
  Fault fault_;
  std::vector<Check> checks_;
  std::vector<Figure> figures_;
};

struct Experiment {
  std::string id;      // "E7"
  std::string title;   // one line
  std::string source;  // "DSFQ figure 12"
  std::string about;   // set-up, what is checked, which numbers are ours and which the paper's
  std::function<void(Run&)> run;
  // Too slow for the subset that runs with every change (see `weir-sim run quick`).
  bool slow = false;
};

// All experiments, by number. A topic's file declares its function here and experiments/all.cc
// calls it.
const std::vector<Experiment>& AllExperiments();
const Experiment* FindExperiment(std::string_view id);

}  // namespace weir::sim
