#include "tools/sim/experiments/stonehenge_setup.h"

namespace weir::sim {
namespace {

// A job is reused only after it is done, so its place in memory names it while it is under way.
uint64_t IdOf(const Job& job) {
  return reinterpret_cast<uintptr_t>(&job);
}

}  // namespace

SchedulerConfig StonehengeConfig(Run& run, std::string_view profile, double iops_max,
                                 uint32_t depth) {
  SchedulerConfig base;
  base.depth = depth;
  base.best_effort_min = 0;
  SchedulerConfig config = *ApplyProfile(profile, base);
  config.cvc.iops_max = iops_max;
  config.cvc.late_mode = false;
  if (run.broken(Fault::kLatestStartIgnored)) config.cvc.fixed_estimate = Duration::min();
  return config;
}

ClassSpec Contracted(ClassId id, const ServiceContract& contract) {
  ClassSpec spec = Spec(id);
  spec.service = contract;
  return spec;
}

ClassSpec PerSecond(ClassId id, double iops) {
  ServiceContract contract;
  contract.iops = iops;
  return Contracted(id, contract);
}

std::function<void(Prng&, uint64_t, Io*)> RandomReadsOf(uint64_t bytes, uint64_t start,
                                                        uint64_t span) {
  return [=](Prng& prng, uint64_t, Io* io) {
    io->op = osd::qos::OpKind::kRead;
    io->bytes = bytes;
    io->lba = start + prng.Uniform(0, span / bytes - 1) * bytes;
  };
}

ServiceTally::ServiceTally(Cluster* cluster, SimOsd* osd, Duration from)
    : cluster_(cluster), from_(TimePoint{0} + from) {
  osd->on_arrival = [this](const Job& job) {
    Row& row = rows_[job.request.class_id];
    if (row.clock) row.clock->Arrived(IdOf(job), cluster_->events().now());
  };
  osd->on_completion = [this](const Job& job) { Done(job); };
}

void ServiceTally::Bound(ClassId id, Duration bound, std::shared_ptr<osd::qos::DelayClock> clock) {
  rows_[id].bound = bound;
  rows_[id].clock = std::move(clock);
}

void ServiceTally::Done(const Job& job) {
  const TimePoint now = cluster_->events().now();
  Row& row = rows_[job.request.class_id];
  const Duration delay = row.clock ? row.clock->Completed(IdOf(job), now) : Duration(0);
  if (row.clock && on_delay)
    on_delay(job.request.class_id, ToSeconds(delay) / ToSeconds(row.bound));
  if (now < from_) return;
  ++row.done;
  ++done_;
  service_ += job.request.device_time;
  if (job.request.finish_time != TimePoint::Max()) {
    ++with_deadline_;
    if (now > job.request.finish_time) {
      ++late_;
      ++row.late;
    }
  }
  if (row.clock && delay > row.bound) ++row.over;
}

double ServiceTally::LatePart() const {
  return with_deadline_ == 0 ? 0 : static_cast<double>(late_) / static_cast<double>(with_deadline_);
}

double ServiceTally::OverPart(const std::vector<ServiceTally*>& tallies, ClassId id) {
  double over = 0;
  double done = 0;
  for (ServiceTally* tally : tallies) {
    over += static_cast<double>(tally->row(id).over);
    done += static_cast<double>(tally->row(id).done);
  }
  return done > 0 ? over / done : 0;
}

double ServiceTally::MeanServiceSeconds() const {
  return done_ == 0 ? 0 : ToSeconds(service_) / static_cast<double>(done_);
}

}  // namespace weir::sim
