#include "tools/sim/experiments/scale.h"

#include "tools/sim/devices/simple.h"
#include "tools/sim/experiments/all.h"
#include "tools/sim/experiments/dsfq_setup.h"

namespace weir::sim {
namespace {

constexpr uint64_t kRequest = 64 * kKiB;
constexpr double kOsdRate = 24 * static_cast<double>(kMiB);

double WeightOf(uint32_t index) {
  return 1 + index % 2;
}

ClassId IdOf(uint32_t index) {
  return ClassId(kFirstUserClass.value + index);
}

// Each OSD knows the classes that use it.
void AddClasses(const ScaleOptions& options, Cluster* cluster) {
  for (uint32_t osd = 0; osd < options.osds; ++osd) {
    for (uint32_t k = 0; k < options.osds_of_class; ++k) {
      const uint32_t index = (osd + options.classes - k) % options.classes;
      cluster->osd(osd).policy().SetClass(Spec(IdOf(index), WeightOf(index)), TimePoint{0});
    }
  }
}

Load* StartClient(const ScaleOptions& options, uint32_t client, Cluster* cluster) {
  const uint32_t index = client % options.classes;
  const uint64_t first = index % options.osds;
  Load* load = cluster->Start(
      {.class_id = IdOf(index), .outstanding = 16, .bytes = kRequest, .route = [=](uint64_t n) {
         const uint64_t step = (n + client / options.classes);
         const uint64_t osd = (first + step % options.osds_of_class) % options.osds;
         return std::pair<size_t, size_t>(osd, client);
       }});
  load->KeepTotalsOnly();
  return load;
}

void RunLarge(Run& run) {
  ScaleOptions options;
  options.seed = run.seed();
  options.send_delays = !run.broken(Fault::kDelayOff);
  const ScaleResult result = RunScale(options);
  run.AtMost("largest fairness error of a class", result.worst_error, .05, 0);
  run.AtMost("mean fairness error", result.mean_error, .02, 0);
  run.AtLeast("requests served", static_cast<double>(result.requests), 3.5e6, 3.84e6);
  run.Report("events", static_cast<double>(result.events));
  run.AtMost("marks of the largest coordinator", static_cast<double>(result.largest_coordinator),
             options.osds_of_class, options.osds_of_class);
  run.Report("marks of all coordinators, of about 48 bytes", static_cast<double>(result.marks));
}

}  // namespace

ScaleResult RunScale(const ScaleOptions& options) {
  Cluster cluster(options.seed);
  const SchedulerConfig config = ProfileOf("dsfq-total", 8);
  for (uint32_t i = 0; i < options.osds; ++i) cluster.AddOsd(config, Flat(kOsdRate));
  cluster.SendDelays(options.send_delays);
  AddClasses(options, &cluster);
  std::vector<Load*> loads;
  for (uint32_t i = 0; i < options.clients; ++i) {
    loads.push_back(StartClient(options, i, &cluster));
  }
  cluster.RunTo(FromSeconds(options.seconds));

  ScaleResult result;
  std::vector<double> rates(options.classes);
  for (uint32_t i = 0; i < options.clients; ++i) {
    const uint32_t index = i % options.classes;
    rates[index] += static_cast<double>(loads[i]->done_bytes()) / WeightOf(index);
    result.requests += loads[i]->done();
    const uint64_t marks = cluster.tracker(i).marks();
    result.marks += marks;
    result.largest_coordinator = std::max(result.largest_coordinator, marks);
  }
  const double mean = Mean(rates);
  for (double rate : rates) {
    const double error = std::abs(rate / mean - 1);
    result.worst_error = std::max(result.worst_error, error);
    result.mean_error += error / options.classes;
  }
  result.events = cluster.events().events_run();
  return result;
}

void AddScale(std::vector<Experiment>* all) {
  all->push_back(
      {"E54", "1,000 OSDs, 10,000 clients, 1,000 classes", "scale, no paper",
       "Ten virtual seconds; every class is striped over eight OSDs and every OSD serves "
       "eight classes of weights 1 and 2. Totals per weight are equal although no OSD and no "
       "client knows of more than its own traffic. Speed and memory are measured by "
       "scale_bench.",
       RunLarge, true});
}

}  // namespace weir::sim
