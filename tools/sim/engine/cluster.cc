#include "tools/sim/engine/cluster.h"

#include "tools/sim/devices/simple.h"

namespace weir::sim {
namespace {

constexpr uint64_t kLoadSeeds = 1ull << 32;  // keeps the seeds of loads and devices apart

}  // namespace

Cluster::Cluster(uint64_t seed) : seed_(seed) {}

Cluster::Cluster(size_t osds, const SchedulerConfig& config, uint64_t device_rate) : Cluster(0) {
  for (size_t i = 0; i < osds; ++i) AddOsd(config, Flat(static_cast<double>(device_rate)));
}

Cluster::~Cluster() = default;

SimOsd& Cluster::AddOsd(const SchedulerConfig& config, const DeviceFactory& device) {
  cost_ = config.cost;
  return AddOsd(ProductPolicy(config), device);
}

SimOsd& Cluster::AddOsd(const PolicyFactory& policy, const DeviceFactory& device) {
  const Prng prng(MixHash(seed_, osds_.size()));
  osds_.push_back(std::make_unique<SimOsd>(&events_, policy(events_.now()), device(&events_, prng),
                                           [this](Job* job) {
                                             if (hook_) hook_->OnDone(*job);
                                             job->load->OnDone(job);
                                           }));
  return *osds_.back();
}

void Cluster::SetClass(const ClassSpec& spec) {
  for (auto& osd : osds_) {
    osd->policy().SetClass(spec, events_.now());
    osd->Pump();
  }
}

void Cluster::Configure(const SchedulerConfig& config) {
  cost_ = config.cost;
  for (auto& osd : osds_) {
    osd->scheduler().Configure(config, events_.now());
    osd->Pump();
  }
}

Load* Cluster::Start(LoadOptions options) {
  const Prng prng(MixHash(seed_, kLoadSeeds + loads_.size()));
  loads_.push_back(std::make_unique<Load>(this, std::move(options), prng));
  loads_.back()->Begin();
  return loads_.back().get();
}

client::DelayTracker& Cluster::tracker(size_t coordinator) {
  if (coordinator >= trackers_.size()) trackers_.resize(coordinator + 1);
  return trackers_[coordinator];
}

int64_t Cluster::CostOf(const Job& job) const {
  return cost_ == CostKind::kRequests ? 1 : TokensOf(job.io.bytes);
}

void Cluster::Send(Job* job) {
  const OsdId osd(static_cast<uint32_t>(job->io.osd));
  const int64_t delay =
      tracker(job->io.coordinator).OnSend(job->request.class_id, osd, CostOf(*job));
  if (send_delays_) job->request.elsewhere = delay;
  if (hook_) hook_->OnSend(job);
  osds_[job->io.osd]->Send(job);
}

ClassSpec Spec(ClassId id, double weight) {
  ClassSpec spec;
  spec.id = id;
  spec.weight = weight;
  spec.min_weight = 0.1 * weight;
  return spec;
}

ClassSpec Reserved(ClassId id, uint64_t rate, double weight, ReservationScope scope) {
  ClassSpec spec = Spec(id, weight);
  spec.reservation = Reservation{rate, scope, std::nullopt};
  return spec;
}

}  // namespace weir::sim
