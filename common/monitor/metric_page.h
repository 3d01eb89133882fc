// MetricPage: a page in the text format of Prometheus, put together for one scrape. Samples of the
// same name, from whatever part of a process, form one family.
//
// Threads: not thread-safe; a page is made, filled and printed by one thread.
// Errors:  none; a name used with two types is a bug and aborts.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weir::monitor {

struct LatencyCounts;

class MetricPage {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  MetricPage();
  ~MetricPage();

  // `name` ends in the base unit, that of a counter in _total as well.
  void Counter(const std::string& name, const std::string& help, const Labels& labels,
               double value);
  void Gauge(const std::string& name, const std::string& help, const Labels& labels, double value);
  // In seconds, with buckets from 64 us to 17 s that double.
  void Latencies(const std::string& name, const std::string& help, const Labels& labels,
                 const LatencyCounts& latencies);

  [[nodiscard]] std::string Text() const;
  // Of an HTTP answer.
  static constexpr const char* kContentType = "text/plain; version=0.0.4; charset=utf-8";

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

// Puts what one part of a process knows on a page. Called for every scrape, by one thread at a
// time.
using Collector = std::function<void(MetricPage*)>;

}  // namespace weir::monitor
