#include "tools/osdctl/verify/isolation_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/base/units.h"
#include "tools/cli/table.h"

namespace weir::osdctl {
namespace {

// By rank.
double Quantile(std::vector<uint32_t> values, double fraction) {
  if (values.empty()) return 0;
  const auto rank = static_cast<size_t>(std::ceil(fraction * static_cast<double>(values.size())));
  const auto place = values.begin() + static_cast<ptrdiff_t>(std::max<size_t>(rank, 1) - 1);
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

double PerSecond(uint64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) / seconds : 0;
}

std::string RateText(uint64_t bytes, double seconds) {
  return FormatRate(static_cast<uint64_t>(PerSecond(bytes, seconds)));
}

}  // namespace

double ShareError(uint64_t a, uint64_t b) {
  const double both = static_cast<double>(a) + static_cast<double>(b);
  if (both <= 0) return 1;
  return std::abs(2 * static_cast<double>(a) / both - 1);
}

double JainIndex(const std::vector<double>& shares) {
  double sum = 0;
  double squares = 0;
  for (const double share : shares) {
    sum += share;
    squares += share * share;
  }
  return squares > 0 ? sum * sum / (static_cast<double>(shares.size()) * squares) : 0;
}

IsolationVerdict JudgeIsolation(const IsolationResult& result, const IsolationBounds& bounds) {
  IsolationVerdict verdict;
  verdict.alone_p50_us = Quantile(result.alone_us, 0.5);
  verdict.alone_p99_us = Quantile(result.alone_us, 0.99);
  verdict.beside_p50_us = Quantile(result.beside_us, 0.5);
  verdict.beside_p99_us = Quantile(result.beside_us, 0.99);
  // Without one answer beside the aggressor there is no isolation at all.
  const double inflation = result.beside_us.empty()
                               ? HUGE_VAL
                               : verdict.beside_p99_us / std::max(1.0, verdict.alone_p99_us);
  const double error = ShareError(result.victim_share_bytes, result.aggressor_share_bytes);
  const double jain = JainIndex({static_cast<double>(result.victim_share_bytes),
                                 static_cast<double>(result.aggressor_share_bytes)});
  // Of two shares the index follows from their error: who allows more of that means both.
  const double jain_min =
      std::min(bounds.jain_min, 1 / (1 + bounds.share_error_max * bounds.share_error_max));
  verdict.checks = {
      {"p99_inflation", inflation, bounds.inflation_max, inflation <= bounds.inflation_max},
      {"share_error", error, bounds.share_error_max, error <= bounds.share_error_max},
      {"jain_index", jain, jain_min, jain >= jain_min}};
  verdict.pass = std::all_of(verdict.checks.begin(), verdict.checks.end(),
                             [](const IsolationCheck& check) { return check.pass; });
  return verdict;
}

Json IsolationDocument(const IsolationResult& result, const IsolationVerdict& verdict) {
  Json checks = Json::array();
  for (const IsolationCheck& check : verdict.checks) {
    Json one = {
        {"name", check.name}, {"measured", nullptr}, {"bound", check.bound}, {"pass", check.pass}};
    if (std::isfinite(check.measured)) one["measured"] = check.measured;
    checks.push_back(one);
  }
  return {{"osds", result.osds},
          {"phase_s", result.seconds},
          {"alone_us", {{"p50", verdict.alone_p50_us}, {"p99", verdict.alone_p99_us}}},
          {"beside_us", {{"p50", verdict.beside_p50_us}, {"p99", verdict.beside_p99_us}}},
          {"aggressor_bytes_per_s", PerSecond(result.aggressor_bytes, result.seconds)},
          {"victim_share_bytes_per_s", PerSecond(result.victim_share_bytes, result.seconds)},
          {"aggressor_share_bytes_per_s", PerSecond(result.aggressor_share_bytes, result.seconds)},
          {"checks", checks},
          {"pass", verdict.pass}};
}

std::string IsolationScreen(const IsolationResult& result, const IsolationVerdict& verdict) {
  cli::Table latency({"4 KiB READS, ONE AT A TIME", ">P50 us", ">P99 us"});
  latency.AddRow({"alone", fmt::format("{:.0f}", verdict.alone_p50_us),
                  fmt::format("{:.0f}", verdict.alone_p99_us)});
  latency.AddRow(
      {fmt::format("beside {} of an aggressor", RateText(result.aggressor_bytes, result.seconds)),
       fmt::format("{:.0f}", verdict.beside_p50_us), fmt::format("{:.0f}", verdict.beside_p99_us)});
  std::string text = latency.Render();
  text += fmt::format("both asking for all they can get: victim {}, aggressor {}\n\n",
                      RateText(result.victim_share_bytes, result.seconds),
                      RateText(result.aggressor_share_bytes, result.seconds));
  cli::Table checks({"CHECK", ">MEASURED", ">BOUND", ""});
  for (const IsolationCheck& check : verdict.checks) {
    checks.AddRow({check.name, fmt::format("{:.3g}", check.measured),
                   fmt::format("{:.3g}", check.bound), check.pass ? "pass" : "FAIL"});
  }
  return text + checks.Render();
}

}  // namespace weir::osdctl
