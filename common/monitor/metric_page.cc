#include "common/monitor/metric_page.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <limits>
#include <map>
#include <sstream>

#include "common/base/check.h"
#include "common/monitor/latency_counts.h"

namespace weir::monitor {
namespace {

constexpr int kFirstLatencyBit = 6;  // 64 us
constexpr int kLastLatencyBit = 24;  // 17 s

std::vector<prometheus::ClientMetric::Label> ToLabels(const MetricPage::Labels& labels) {
  std::vector<prometheus::ClientMetric::Label> out;
  for (const auto& [name, value] : labels) out.push_back({name, value});
  return out;
}

}  // namespace

struct MetricPage::Families {
  std::map<std::string, prometheus::MetricFamily> by_name;

  prometheus::ClientMetric& Add(const std::string& name, const std::string& help,
                                prometheus::MetricType type, const Labels& labels) {
    const auto [place, is_new] = by_name.try_emplace(name);
    prometheus::MetricFamily& family = place->second;
    if (is_new) family = {name, help, type, {}};
    WEIR_CHECK(family.type == type);
    prometheus::ClientMetric& metric = family.metric.emplace_back();
    metric.label = ToLabels(labels);
    return metric;
  }
};

MetricPage::MetricPage() : families_(std::make_unique<Families>()) {}
MetricPage::~MetricPage() = default;

void MetricPage::Counter(const std::string& name, const std::string& help, const Labels& labels,
                         double value) {
  families_->Add(name, help, prometheus::MetricType::Counter, labels).counter.value = value;
}

void MetricPage::Gauge(const std::string& name, const std::string& help, const Labels& labels,
                       double value) {
  families_->Add(name, help, prometheus::MetricType::Gauge, labels).gauge.value = value;
}

void MetricPage::Latencies(const std::string& name, const std::string& help, const Labels& labels,
                           const LatencyCounts& latencies) {
  prometheus::ClientMetric::Histogram& out =
      families_->Add(name, help, prometheus::MetricType::Histogram, labels).histogram;
  out.sample_count = latencies.count();
  out.sample_sum = static_cast<double>(latencies.sum_us) * 1e-6;
  for (int bit = kFirstLatencyBit; bit <= kLastLatencyBit; ++bit) {
    // OSDs count whole microseconds and their buckets end before a power of two.
    const uint64_t end = uint64_t{1} << bit;
    out.bucket.push_back({latencies.AtMost(end - 1), static_cast<double>(end) * 1e-6});
  }
  out.bucket.push_back({out.sample_count, std::numeric_limits<double>::infinity()});
}

std::string MetricPage::Text() const {
  std::vector<prometheus::MetricFamily> families;
  for (const auto& [name, family] : families_->by_name) families.push_back(family);
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, families);
  return text.str();
}

}  // namespace weir::monitor
