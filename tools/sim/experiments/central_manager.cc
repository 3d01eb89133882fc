// E40: what Stonehenge's central manager costs, and how many nodes it serves.
#include <algorithm>
#include <deque>

#include "tools/sim/devices/uniform.h"
#include "tools/sim/experiments/all.h"
#include "tools/sim/experiments/stonehenge_setup.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;

constexpr double kService = 8e-3;  // seconds of the disk for a request, the paper's mean
constexpr Duration kTrip = 50us;   // to the manager, the deadline, and back
constexpr Duration kFrom = 2s, kTo = 12s;
constexpr double kNodeIops = 1 / kService;

// Nodes that ask one manager, one command after the other, before a request joins their queue.
class ManagedNodes {
 public:
  ManagedNodes(Run& run, size_t nodes, bool managed)
      : managed_(managed), trip_(run.broken(Fault::kManagerSlow) ? 2 * kTrip : kTrip) {
    const SchedulerConfig config = StonehengeConfig(run, "cvc", kNodeIops);
    for (size_t i = 0; i < nodes; ++i) {
      // The same chance with and without the manager.
      osds_.push_back(
          std::make_unique<SimOsd>(&events_, ProductPolicy(config)(events_.now()),
                                   Uniform(kService, .4)(&events_, Prng(MixHash(run.seed(), i))),
                                   [this](Job* job) { Done(job); }));
      osds_.back()->policy().SetClass(PerSecond(kClass, kNodeIops), events_.now());
    }
    done_.resize(nodes);
  }

  // So many requests of each node always under way.
  void Saturate(int outstanding) {
    closed_ = true;
    for (size_t node = 0; node < osds_.size(); ++node) {
      for (int i = 0; i < outstanding; ++i) Ask(node);
    }
  }
  // Poisson arrivals at each node.
  void Offer(uint64_t seed, double per_s) {
    for (size_t node = 0; node < osds_.size(); ++node) {
      gaps_.emplace_back(MixHash(seed, 1000 + node));
      Arrive(node, per_s);
    }
  }
  void Measure() { events_.RunTo(TimePoint{0} + kTo); }

  [[nodiscard]] double MeanLatency() const { return latency_ / static_cast<double>(counted_); }
  // Requests per second of the node that got least.
  [[nodiscard]] double LeastIops() const {
    return static_cast<double>(*std::min_element(done_.begin(), done_.end())) /
           ToSeconds(kTo - kFrom);
  }
  // Part of the time; what waits at the end has not been worked on.
  [[nodiscard]] double ManagerBusy() const {
    const Duration waits = std::max(Duration(0), manager_free_at_ - events_.now());
    return ToSeconds(busy_ - waits) / ToSeconds(kTo);
  }

 private:
  static constexpr ClassId kClass{16};

  void Arrive(size_t node, double per_s) {
    events_.After(FromSeconds(gaps_[node].Exponential(1 / per_s)), [this, node, per_s] {
      Ask(node);
      Arrive(node, per_s);
    });
  }

  void Ask(size_t node) {
    if (free_.empty()) free_.push_back(&jobs_.emplace_back());
    Job* job = free_.back();
    free_.pop_back();
    *job = Job{};
    job->io.osd = node;
    job->sent = events_.now();
    job->request.class_id = kClass;
    job->request.bytes = 8192;
    job->request.op = osd::qos::OpKind::kRead;
    job->request.context = job;
    if (!managed_) return osds_[node]->Send(job);
    manager_free_at_ = std::max(manager_free_at_, events_.now()) + trip_;
    busy_ += trip_;
    events_.At(manager_free_at_, [this, job] { osds_[job->io.osd]->Send(job); });
  }

  void Done(Job* job) {
    if (events_.now() > TimePoint{0} + kFrom) {
      ++done_[job->io.osd];
      ++counted_;
      latency_ += ToSeconds(events_.now() - job->sent);
    }
    free_.push_back(job);
    if (closed_) Ask(job->io.osd);
  }

  const bool managed_;
  const Duration trip_;
  EventQueue events_;
  std::vector<std::unique_ptr<SimOsd>> osds_;
  std::deque<Job> jobs_;
  std::vector<Job*> free_;
  std::vector<Prng> gaps_;
  TimePoint manager_free_at_{0};
  Duration busy_{0};
  bool closed_ = false;
  std::vector<uint64_t> done_;
  uint64_t counted_ = 0;
  double latency_ = 0;
};

double MeanLatency(Run& run, size_t nodes, bool managed) {
  ManagedNodes cluster(run, nodes, managed);
  cluster.Offer(run.seed(), .6 * kNodeIops);
  cluster.Measure();
  return cluster.MeanLatency();
}

void RunManager(Run& run) {
  // The paper's testbed: three nodes, where the trip is "negligible".
  const double added = MeanLatency(run, 3, true) - MeanLatency(run, 3, false);
  run.Between("three nodes: mean latency that the manager adds, part of 8 ms", added / kService,
              .8 * ToSeconds(kTrip) / kService, .01, ToSeconds(kTrip) / kService);

  Curve least{"the node that gets least", {}, {}};
  Curve bound{"1 / (50 us * nodes)", {}, {}, true};
  double busy = 0;
  const auto part = [&](size_t nodes) {
    ManagedNodes cluster(run, nodes, true);
    cluster.Saturate(8);
    cluster.Measure();
    busy = cluster.ManagerBusy();
    least.x.push_back(static_cast<double>(nodes));
    least.y.push_back(cluster.LeastIops());
    bound.x.push_back(static_cast<double>(nodes));
    bound.y.push_back(std::min(kNodeIops, 1 / (ToSeconds(kTrip) * static_cast<double>(nodes))));
    return cluster.LeastIops() / kNodeIops;
  };
  const double few = part(40);
  run.Between("40 full nodes: part of the time that the manager works", busy, .24, .26, .25);
  run.Between("160 full nodes: the one that gets least, of that with 40 (text: no bottleneck)",
              part(160) / few, .98, 1.01, 1);
  run.Between("200 full nodes: the one that gets least (160 of 200)", part(200), .77, .82, .8);
  run.Draw({"Nodes of one manager", "nodes", "requests/s", {least, bound}});
}

}  // namespace

void AddCentralManager(std::vector<Experiment>* all) {
  all->push_back({"E40", "Tagging at a central manager", "Stonehenge section 5.1",
                  "Nodes whose disk takes 8 ms a request ask one manager, first come first served, "
                  "for 50 us each before a request joins their queue: what it adds with the "
                  "paper's three nodes, and the throughput of 40, 160 and 200 nodes that are full. "
                  "The paper says at least 160; beyond that the manager must limit them. Only the "
                  "simulator has such a manager: our OSDs compute finish times themselves.",
                  RunManager});
}

}  // namespace weir::sim
