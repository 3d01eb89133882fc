#include "mds/cluster/skew_book.h"

#include <algorithm>

#include "mds/cluster/time_book.h"

namespace weir::mds {
namespace {

constexpr double kLeastOfPeak = 0.1;

// Ascending up to n, with which each OSD is booked the whole.
std::vector<double> Candidates(size_t osds) {
  std::vector<double> all{1.1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
  const auto most = static_cast<double>(osds);
  std::erase_if(all, [most](double leeway) { return leeway >= most; });
  all.push_back(most);
  return all;
}

}  // namespace

void SkewBook::OsdSaid(OsdId osd, const std::map<ClassId, OsdClassTimes>& sums, TimePoint now) {
  const std::lock_guard lock(mutex_);
  Source& source = osds_[osd];
  const bool follows = source.known && now - source.heard < TimeBook::kSilence;
  for (const auto& [id, sum] : sums) {
    const auto [known, is_new] = source.sums.try_emplace(id, sum);
    OsdClassTimes grown = sum;
    const bool restarted = sum.bytes < known->second.bytes || sum.ops < known->second.ops;
    if (follows && !is_new && !restarted) {
      grown -= known->second;
      const Load load{static_cast<double>(grown.bytes), static_cast<double>(grown.ops)};
      if (grown.ops > 0) Spread(osd, id, load, source.heard, now);
    }
    known->second = sum;
  }
  source.known = true;
  source.heard = now;
  Close(now);
}

void SkewBook::Spread(OsdId osd, ClassId id, const Load& grown, TimePoint from, TimePoint to) {
  const double length = std::max(1.0, static_cast<double>((to - from).count()));
  for (int64_t number = NumberAt(from); number <= NumberAt(to); ++number) {
    const TimePoint begins{std::max(from.ns, number * kPeriod.count())};
    const TimePoint ends{std::min(to.ns, (number + 1) * kPeriod.count())};
    const double part = static_cast<double>((ends - begins).count()) / length;
    if (part <= 0) continue;
    Load& load = open_[number][id][osd];
    load.bytes += part * grown.bytes;
    load.requests += part * grown.requests;
  }
}

// Of periods for which no report of a living OSD is to come any more.
void SkewBook::Close(TimePoint now) {
  const int64_t over = NumberAt(now - TimeBook::kSilence);
  while (!open_.empty() && open_.begin()->first < over) {
    const auto& [number, classes] = *open_.begin();
    for (const auto& [id, osds] : classes) {
      Period period{.number = number, .largest = {}, .sum = {}};
      for (const auto& [osd, load] : osds) {
        period.largest.bytes = std::max(period.largest.bytes, load.bytes);
        period.largest.requests = std::max(period.largest.requests, load.requests);
        period.sum.bytes += load.bytes;
        period.sum.requests += load.requests;
      }
      closed_[id].push_back(period);
    }
    open_.erase(open_.begin());
  }
  const int64_t oldest = over - static_cast<int64_t>(kPeriodsKept);
  for (auto& [id, periods] : closed_) {
    while (!periods.empty() && periods.front().number < oldest) periods.pop_front();
  }
  std::erase_if(closed_, [](const auto& entry) { return entry.second.empty(); });
}

SkewBook::Choice SkewBook::Choose(const ClassSpec& spec, size_t osds, TimePoint now) const {
  const std::lock_guard lock(mutex_);
  const auto found = closed_.find(spec.id);
  if (found == closed_.end() || !spec.reservation || osds <= 1) return {};
  const bool in_bytes = spec.reservation->bytes_per_s > 0;
  const bool in_requests = spec.reservation->iops > 0;
  const auto counts = [in_bytes](const Load& load) {
    return in_bytes ? load.bytes : load.requests;
  };
  const int64_t oldest = NumberAt(now) - static_cast<int64_t>(kPeriodsKept);
  double peak = 0;
  for (const Period& period : found->second) {
    if (period.number >= oldest) peak = std::max(peak, counts(period.sum));
  }
  // The promise is taken to be 1 a second, so of each period the part of its sum counts.
  std::vector<double> rates;
  for (const Period& period : found->second) {
    if (period.number < oldest || counts(period.sum) < kLeastOfPeak * peak) continue;
    double part = counts(period.largest) / std::max(1e-9, counts(period.sum));
    if (in_bytes && in_requests) {
      part = std::max(part, period.largest.requests / std::max(1e-9, period.sum.requests));
    }
    rates.push_back(part);
  }
  if (peak <= 0 || rates.size() < kEnough) return {};
  const ServiceContract contract{.iops = 1, .probability = spec.service.probability};
  return {ChooseLeeway(contract, osds, rates, Candidates(osds)), rates.size()};
}

}  // namespace weir::mds
