#include "osd/qos/admission/service_monitor.h"

#include <algorithm>
#include <cmath>

namespace weir::osd::qos {
namespace {

constexpr Duration kSecond = std::chrono::seconds(1);
constexpr double kAgree = 0.1;

}  // namespace

void DelayClock::Arrived(uint64_t id, TimePoint now) {
  const bool counts = since_.size() <= max_pending_;
  since_.emplace(id, counts ? now : TimePoint::Max());
  if (!counts) waiting_.push_back(id);
}

Duration DelayClock::Completed(uint64_t id, TimePoint now) {
  const auto found = since_.find(id);
  if (found == since_.end()) return Duration(0);
  const TimePoint since = found->second;
  since_.erase(found);
  if (since == TimePoint::Max()) return Duration(0);
  while (!waiting_.empty()) {
    const auto next = since_.find(waiting_.front());
    waiting_.pop_front();
    if (next == since_.end() || next->second != TimePoint::Max()) continue;
    next->second = now;
    break;
  }
  return now - since;
}

ServiceMonitor::ServiceMonitor(Duration window, TimePoint now, Duration first_half)
    : full_half_(window / 2),
      first_half_(first_half > Duration(0) ? std::min(first_half, window / 2) : window / 2),
      half_(first_half_),
      half_since_(now),
      second_since_(now) {}

void ServiceMonitor::Restart(TimePoint now) {
  halves_ = {};
  half_ = first_half_;
  half_since_ = second_since_ = now;
  in_second_ = 0;
}

void ServiceMonitor::Turn(TimePoint now) {
  CloseSeconds(now);
  while (now - half_since_ >= half_) {
    half_since_ += half_;
    if (half_ < full_half_ && halves_[0].samples > 0) {
      half_ = std::min(2 * half_, full_half_);
      Merge(halves_[1], &halves_[0]);
    } else {
      halves_[0] = std::move(halves_[1]);
    }
    halves_[1] = {};
  }
}

void ServiceMonitor::Merge(const Half& from, Half* into) {
  for (size_t bin = 0; bin < kBins; ++bin) into->parts[bin] += from.parts[bin];
  into->samples += from.samples;
  into->rates.insert(into->rates.end(), from.rates.begin(), from.rates.end());
}

void ServiceMonitor::CloseSeconds(TimePoint now) {
  while (now - second_since_ >= kSecond) {
    halves_[1].rates.push_back(in_second_);
    in_second_ = 0;
    second_since_ += kSecond;
  }
}

void ServiceMonitor::NoteDelay(double part, TimePoint now) {
  Turn(now);
  const double bin = std::clamp(part * 100, 0.0, static_cast<double>(kBins - 1));
  ++halves_[1].parts[static_cast<size_t>(bin)];
  ++halves_[1].samples;
}

void ServiceMonitor::NoteRequest(TimePoint now, double count) {
  Turn(now);
  in_second_ += count;
}

double ServiceMonitor::ServicePart(double e) const {
  const double wanted = e * static_cast<double>(samples());
  uint64_t below = 0;
  for (size_t bin = 0; bin < kBins; ++bin) {
    below += halves_[0].parts[bin] + halves_[1].parts[bin];
    if (below > 0 && static_cast<double>(below) >= wanted) {
      return static_cast<double>(bin + 1) / 100;
    }
  }
  return 0;
}

std::vector<double> ServiceMonitor::SortedRates() const {
  std::vector<double> rates = halves_[0].rates;
  rates.insert(rates.end(), halves_[1].rates.begin(), halves_[1].rates.end());
  std::sort(rates.begin(), rates.end());
  return rates;
}

double ServiceMonitor::Quantile(const std::vector<double>& sorted, double x) {
  if (sorted.empty()) return 0;
  const auto rank = static_cast<size_t>(std::ceil(x * static_cast<double>(sorted.size())));
  return sorted[std::min(sorted.size(), std::max<size_t>(rank, 1)) - 1];
}

ServiceReport ServiceMonitor::Report() const {
  ServiceReport report;
  report.stable = Stable();
  if (samples() == 0) return report;
  const std::vector<double> rates = SortedRates();
  for (int percent = 1; percent <= 100; ++percent) {
    report.service_parts.push_back(ServicePart(percent / 100.0));
    report.io_rates.push_back(Quantile(rates, percent / 100.0));
  }
  return report;
}

bool ServiceMonitor::Stable() const {
  const Half& older = halves_[0];
  const Half& newer = halves_[1];
  if (older.samples < kEnough || newer.samples < kEnough) return false;
  uint64_t below_older = 0;
  uint64_t below_newer = 0;
  for (size_t bin = 0; bin < kBins; ++bin) {
    below_older += older.parts[bin];
    below_newer += newer.parts[bin];
    const double part_older = static_cast<double>(below_older) / static_cast<double>(older.samples);
    const double part_newer = static_cast<double>(below_newer) / static_cast<double>(newer.samples);
    if (std::abs(part_older - part_newer) > kAgree) return false;
  }
  return true;
}

ServiceMeasures ServiceMonitor::Measures() const {
  return {.service_part = [this](double e) { return ServicePart(e); },
          .io_rate = [this](double x) { return IoRate(x); },
          .stable = Stable()};
}

}  // namespace weir::osd::qos
