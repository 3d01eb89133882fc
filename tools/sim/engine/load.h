// Load: a workload, in a closed loop (so many requests under way), paced, or open (requests come
// whether or not the last are done). Remembers every completion for rates and latencies.
//
//   Load* gold = cluster.Start({.class_id = kGold, .outstanding = 4, .bytes = 512 * kKiB});
//   cluster.RunTo(10s);
//   gold->MiBps(2s, 10s);                      // completed between these moments
//
// Units: bytes, seconds, requests. Ownership: the Cluster owns loads; they live as long as it.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/prng.h"
#include "tools/sim/engine/job.h"

namespace weir::sim {

inline constexpr uint64_t kKiB = 1024;
inline constexpr uint64_t kMiB = 1024 * kKiB;

struct LoadOptions {
  ClassId class_id;
  int outstanding = 4;
  uint64_t bytes = 64 * kKiB;
  size_t osd = 0;
  size_t coordinator = 0;
  double pace = 0;  // bytes per second; 0: as fast as answers come
  // Overrides `osd` and `coordinator`: where the n-th request goes.
  std::function<std::pair<size_t, size_t>(uint64_t n)> route;
  // The last word on the n-th request: size, address, direction, place.
  std::function<void(Prng& prng, uint64_t n, Io* io)> shape;
  // Open loop: the wait from one arrival to the next, Duration::max() for no more. `outstanding`
  // then bounds nothing.
  std::function<Duration(Prng& prng)> gap;
  uint32_t transaction = 0;  // within the class
  Duration think{0};         // closed loop: pause of a thread after each answer
};

struct Completion {
  TimePoint when;
  TimePoint sent;
  Duration device_time;
  uint64_t bytes;
  size_t osd;
};

class Cluster;

class Load {
 public:
  Load(Cluster* cluster, LoadOptions options, Prng prng);
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  // No new requests from now on; a closed loop can be taken up again with SetOutstanding.
  void Stop();
  // Closed loop: the number of threads from now on.
  void SetOutstanding(int count);
  void SetPace(double bytes_per_s) { options_.pace = bytes_per_s; }
  // Keeps totals only (for runs with very many requests).
  void KeepTotalsOnly() { keep_completions_ = false; }

  // Completed in (from, to], on one OSD or on all (-1).
  [[nodiscard]] double Rate(Duration from, Duration to, int osd = -1) const;  // bytes per second
  [[nodiscard]] double MiBps(Duration from, Duration to, int osd = -1) const;
  [[nodiscard]] double Iops(Duration from, Duration to, int osd = -1) const;
  // Seconds from sending to completion, of what completed in (from, to].
  [[nodiscard]] std::vector<double> Latencies(Duration from, Duration to) const;
  [[nodiscard]] double MeanLatency(Duration from, Duration to) const;
  // Rates in bytes per second of consecutive windows that begin at `from`.
  [[nodiscard]] std::vector<double> Series(Duration from, Duration to, Duration window,
                                           int osd = -1) const;

  [[nodiscard]] const std::vector<Completion>& completions() const { return completions_; }
  [[nodiscard]] uint64_t sent() const { return sent_; }
  [[nodiscard]] uint64_t done() const { return done_; }
  [[nodiscard]] uint64_t done_bytes() const { return done_bytes_; }
  [[nodiscard]] int64_t largest_delay() const { return largest_delay_; }
  [[nodiscard]] ClassId class_id() const { return options_.class_id; }

 private:
  friend class Cluster;
  using Range = std::pair<const Completion*, const Completion*>;

  void Begin();
  void StartThread(Duration after);
  void Arrive();
  Job* NewJob();
  void SendNext(Job* job);
  void OnDone(Job* job);
  [[nodiscard]] Range Within(Duration from, Duration to) const;

  Cluster* cluster_;
  LoadOptions options_;
  Prng prng_;
  std::deque<Job> jobs_;
  std::vector<Job*> free_;
  std::vector<Completion> completions_;
  uint64_t sent_ = 0;
  uint64_t done_ = 0;
  uint64_t done_bytes_ = 0;
  int64_t largest_delay_ = 0;
  int threads_ = 0;         // that exist
  int wanted_threads_ = 0;  // closed loop
  bool stopped_ = false;
  bool keep_completions_ = true;
};

// The q-quantile (0..1) of the values, by rank; 0 for none.
double Quantile(std::vector<double> values, double q);
double Mean(const std::vector<double>& values);
double StandardDeviation(const std::vector<double>& values);

}  // namespace weir::sim
