#include "tools/sim/engine/load.h"

#include <algorithm>
#include <cmath>

#include "tools/sim/engine/cluster.h"

namespace weir::sim {

Load::Load(Cluster* cluster, LoadOptions options, Prng prng)
    : cluster_(cluster), options_(std::move(options)), prng_(prng) {}

void Load::Begin() {
  if (options_.gap) {
    Arrive();
    return;
  }
  wanted_threads_ = options_.outstanding;
  for (int i = 0; i < wanted_threads_; ++i) {
    // Paced threads start evenly spread, or all would send in one burst for ever.
    const bool paced = options_.pace > 0;
    StartThread(paced ? FromSeconds(static_cast<double>(options_.bytes) * i / options_.pace)
                      : Duration(0));
  }
}

void Load::Stop() {
  stopped_ = true;
  wanted_threads_ = 0;
}

void Load::SetOutstanding(int count) {
  stopped_ = false;
  wanted_threads_ = count;
  while (threads_ < wanted_threads_) StartThread(Duration(0));
}

void Load::StartThread(Duration after) {
  ++threads_;
  Job* job = NewJob();
  if (after == Duration(0)) {
    SendNext(job);
  } else {
    cluster_->events().After(after, [this, job] { SendNext(job); });
  }
}

void Load::Arrive() {
  const Duration wait = options_.gap(prng_);
  if (wait == Duration::max()) return;
  cluster_->events().After(wait, [this] {
    if (stopped_) return;
    SendNext(NewJob());
    Arrive();
  });
}

Job* Load::NewJob() {
  if (free_.empty()) return &jobs_.emplace_back();
  Job* job = free_.back();
  free_.pop_back();
  return job;
}

void Load::SendNext(Job* job) {
  if (stopped_ || (!options_.gap && threads_ > wanted_threads_)) {
    --threads_;
    free_.push_back(job);
    return;
  }
  Io io;
  io.osd = options_.osd;
  io.coordinator = options_.coordinator;
  io.bytes = options_.bytes;
  io.lba = MixHash(options_.class_id.value, sent_ + 1);
  if (options_.route) std::tie(io.osd, io.coordinator) = options_.route(sent_);
  if (options_.shape) options_.shape(prng_, sent_, &io);
  ++sent_;
  *job = Job{};
  job->load = this;
  job->io = io;
  job->sent = cluster_->events().now();
  job->request.class_id = options_.class_id;
  job->request.transaction = options_.transaction;
  job->request.bytes = io.bytes;
  job->request.lba = io.lba;
  job->request.op = io.op;
  job->request.context = job;
  cluster_->Send(job);
  largest_delay_ = std::max(largest_delay_, job->request.elsewhere);
}

void Load::OnDone(Job* job) {
  EventQueue& events = cluster_->events();
  ++done_;
  done_bytes_ += job->io.bytes;
  if (keep_completions_) {
    completions_.push_back({events.now(), job->sent, job->device_time, job->io.bytes, job->io.osd});
  }
  if (options_.gap) {
    free_.push_back(job);
    return;
  }
  if (options_.pace > 0) {
    // Each thread sends at its share of the pace, counted from the start of its last request.
    const double gap = static_cast<double>(options_.bytes) * options_.outstanding / options_.pace;
    events.At(job->sent + FromSeconds(gap), [this, job] { SendNext(job); });
  } else if (options_.think > Duration(0)) {
    events.After(options_.think, [this, job] { SendNext(job); });
  } else {
    SendNext(job);
  }
}

Load::Range Load::Within(Duration from, Duration to) const {
  const auto after = [](Duration limit, const Completion& done) {
    return limit.count() < done.when.ns;
  };
  const Completion* begin = completions_.data();
  const Completion* end = begin + completions_.size();
  return {std::upper_bound(begin, end, from, after), std::upper_bound(begin, end, to, after)};
}

double Load::Rate(Duration from, Duration to, int osd) const {
  double bytes = 0;
  const auto [begin, end] = Within(from, to);
  for (const Completion* done = begin; done != end; ++done) {
    if (osd < 0 || done->osd == static_cast<size_t>(osd)) bytes += static_cast<double>(done->bytes);
  }
  return bytes / ToSeconds(to - from);
}

double Load::MiBps(Duration from, Duration to, int osd) const {
  return Rate(from, to, osd) / static_cast<double>(kMiB);
}

double Load::Iops(Duration from, Duration to, int osd) const {
  const auto [begin, end] = Within(from, to);
  const auto count = std::count_if(begin, end, [osd](const Completion& done) {
    return osd < 0 || done.osd == static_cast<size_t>(osd);
  });
  return static_cast<double>(count) / ToSeconds(to - from);
}

std::vector<double> Load::Latencies(Duration from, Duration to) const {
  std::vector<double> seconds;
  const auto [begin, end] = Within(from, to);
  seconds.reserve(static_cast<size_t>(end - begin));
  for (const Completion* done = begin; done != end; ++done) {
    seconds.push_back(ToSeconds(done->when - done->sent));
  }
  return seconds;
}

double Load::MeanLatency(Duration from, Duration to) const {
  return Mean(Latencies(from, to));
}

std::vector<double> Load::Series(Duration from, Duration to, Duration window, int osd) const {
  std::vector<double> rates;
  for (Duration at = from; at + window <= to; at += window) {
    rates.push_back(Rate(at, at + window, osd));
  }
  return rates;
}

double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  const double rank = q * static_cast<double>(values.size());
  const auto at = std::min(values.size() - 1, static_cast<size_t>(std::max(0.0, rank)));
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(at), values.end());
  return values[at];
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double StandardDeviation(const std::vector<double>& values) {
  const double mean = Mean(values);
  double sum = 0;
  for (double value : values) sum += (value - mean) * (value - mean);
  return values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
}

}  // namespace weir::sim
