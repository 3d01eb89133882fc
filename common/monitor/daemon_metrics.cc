#include "common/monitor/daemon_metrics.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "common/base/ids.h"
#include "common/monitor/latency_counts.h"
#include "common/wire/mds.pb.h"
#include "common/wire/osd.pb.h"

namespace weir::monitor {
namespace {

using Labels = MetricPage::Labels;

std::string LabelOf(const wire::ClassStats& row) {
  if (!row.name().empty()) return row.name();
  return row.class_id() == kBestEffort.value ? "best-effort" : "removed";
}

// One row per label: what removed classes did is added up.
struct ClassTotals {
  double served_bytes = 0, served_ops = 0, arrived_bytes = 0, queued = 0, guaranteed = 0;
  double surplus = 0, misses = 0, violations = 0;
  LatencyCounts latencies;
};

std::map<std::string, ClassTotals> TotalsOf(const wire::OsdStatsReply& stats) {
  std::map<std::string, ClassTotals> all;
  for (const wire::ClassStats& row : stats.classes()) {
    ClassTotals& total = all[LabelOf(row)];
    total.served_bytes += static_cast<double>(row.served_bytes());
    total.served_ops += static_cast<double>(row.served_ops());
    total.arrived_bytes += static_cast<double>(row.arrived_bytes());
    total.queued += static_cast<double>(row.queued_ops());
    total.guaranteed += static_cast<double>(row.guaranteed_bytes());
    total.surplus += static_cast<double>(row.surplus_bytes());
    total.misses += static_cast<double>(row.deadline_misses());
    total.violations += static_cast<double>(row.violation_seconds());
    total.latencies.Add(LatenciesOf(row));
  }
  return all;
}

void AddClass(const Labels& labels, const ClassTotals& total, MetricPage* page) {
  page->Counter("weir_osd_class_arrived_bytes_total", "What clients asked of the class.", labels,
                total.arrived_bytes);
  page->Counter("weir_osd_class_served_bytes_total", "What the class got.", labels,
                total.served_bytes);
  page->Counter("weir_osd_class_served_requests_total", "Requests of the class that were served.",
                labels, total.served_ops);
  page->Counter("weir_osd_class_guaranteed_bytes_total",
                "Of what was served: what the class was owed.", labels, total.guaranteed);
  page->Counter("weir_osd_class_surplus_bytes_total",
                "Of what was served: what nobody else was owed.", labels, total.surplus);
  page->Gauge("weir_osd_class_queued_requests", "Requests of the class that wait now.", labels,
              total.queued);
  page->Counter("weir_osd_class_deadline_misses_total",
                "Requests that took longer than the latency bound of the class.", labels,
                total.misses);
  page->Counter("weir_osd_class_violation_seconds_total",
                "Seconds in which the class asked for what it was promised and got less.", labels,
                total.violations);
  page->Latencies("weir_osd_class_latency_seconds",
                  "From the arrival of a request at the OSD to its completion.", labels,
                  total.latencies);
}

void AddContract(const wire::ClassInfo& info, MetricPage* page) {
  const Labels labels = {{"class", info.name()}};
  page->Gauge("weir_class_weight", "Its share of what nobody is owed.", labels, info.weight());
  if (info.has_limit_bytes_per_s()) {
    page->Gauge("weir_class_limit_bytes_per_second", "The most it gets; absent: no limit.", labels,
                static_cast<double>(info.limit_bytes_per_s()));
  }
  if (info.has_reservation()) {
    Labels scoped = labels;
    const std::string& scope = info.reservation().scope();
    scoped.emplace_back("scope", scope.empty() ? "cluster" : scope);
    page->Gauge("weir_class_reservation_bytes_per_second",
                "Promised bandwidth: over all OSDs, or of each with scope \"osd\".", scoped,
                static_cast<double>(info.reservation().bytes_per_s()));
    page->Gauge("weir_class_reservation_requests_per_second", "Promised requests per second.",
                scoped, static_cast<double>(info.reservation().iops()));
  }
  if (info.latency_ns() > 0) {
    page->Gauge("weir_class_latency_bound_seconds", "Promised latency.", labels,
                static_cast<double>(info.latency_ns()) * 1e-9);
  }
}

std::string WordsOf(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The fields of /proc/self/stat behind the name of the program, which may hold blanks; the first
// is the state, field 3 in proc(5).
std::vector<std::string> StatFields() {
  const std::string text = WordsOf("/proc/self/stat");
  const size_t name_ends = text.rfind(')');
  std::vector<std::string> fields;
  if (name_ends == std::string::npos) return fields;
  std::istringstream words(text.substr(name_ends + 1));
  for (std::string word; words >> word;) fields.push_back(word);
  return fields;
}

}  // namespace

void AddOsdMetrics(const wire::OsdStatsReply& stats, MetricPage* page) {
  const Labels osd = {{"osd", std::to_string(stats.osd_id())}};
  const auto gauge = [&](const char* name, const char* help, uint64_t value) {
    page->Gauge(name, help, osd, static_cast<double>(value));
  };
  const auto counter = [&](const char* name, const char* help, uint64_t value) {
    page->Counter(name, help, osd, static_cast<double>(value));
  };
  gauge("weir_osd_token_rate_bytes_per_second", "What it may promise and serve now.",
        stats.token_rate());
  gauge("weir_osd_base_token_rate_bytes_per_second", "What it may promise, as configured.",
        stats.base_token_rate());
  gauge("weir_osd_device_bytes_per_second", "What the disk moved over the last second.",
        stats.device_bytes_per_s());
  gauge("weir_osd_pace_bytes_per_second",
        "To which surplus is held so that processors are free for latency bounds; 0: it is not.",
        stats.pace());
  gauge("weir_osd_disk_bytes_per_second", "What the disk gives lately; 0: not known yet.",
        stats.disk().bytes_per_s());
  gauge("weir_osd_disk_slow", "1 while the disk gives less than the configured token rate.",
        stats.disk().slow() ? 1 : 0);
  gauge("weir_osd_capacity_bytes", "Size of its store.", stats.capacity_bytes());
  gauge("weir_osd_used_bytes", "What is taken of it.", stats.used_bytes());
  gauge("weir_osd_objects", "Objects in its store.", stats.objects());
  gauge("weir_osd_map_epoch", "Epoch of the cluster map that it obeys.", stats.epoch());
  gauge("weir_osd_background_floor_bytes_per_second",
        "What flushes and compactions get whatever the others do.", stats.background_floor());
  counter("weir_osd_checksum_errors_total", "Damaged blocks that it found.",
          stats.checksum_errors());
  counter("weir_osd_commits_total", "Commits of its index.", stats.commits());
  counter("weir_osd_committed_operations_total", "Operations in those commits.",
          stats.committed_ops());
  counter("weir_osd_background_bytes_total",
          "Flushes, compactions and the like that went through the pipeline.",
          stats.background_bytes());
  counter("weir_osd_unmetered_bytes_total", "Bytes that should have gone through it and did not.",
          stats.unmetered_bytes());
  for (const auto& [name, total] : TotalsOf(stats)) {
    Labels labels = osd;
    labels.emplace_back("class", name);
    AddClass(labels, total, page);
  }
}

void AddMdsMetrics(const wire::StatusReply& status, const wire::ClassLoadReply& load,
                   MetricPage* page) {
  const auto gauge = [&](const char* name, const char* help, uint64_t value) {
    page->Gauge(name, help, {}, static_cast<double>(value));
  };
  gauge("weir_mds_sessions", "Mounts and other clients that hold a session.", status.sessions());
  gauge("weir_mds_inodes", "Inodes in the namespace.", status.inodes());
  gauge("weir_mds_pending_purges", "Deleted files whose objects are not gone yet.",
        status.pending_purges());
  gauge("weir_mds_warnings", "Things that osdctl status warns of.",
        static_cast<uint64_t>(status.warnings_size()));
  gauge("weir_mds_map_epoch", "Epoch of the cluster map.", status.map().epoch());
  gauge("weir_mds_near_full", "1 while some OSD is nearly full: closes wait for the disks.",
        status.map().near_full() ? 1 : 0);
  std::map<uint32_t, std::string> names;
  for (const wire::ClassInfo& info : status.map().classes()) {
    names[info.id()] = info.name();
    AddContract(info, page);
  }
  for (const wire::OsdInfo& osd : status.map().osds()) {
    const Labels labels = {{"osd", std::to_string(osd.id())}};
    page->Gauge("weir_mds_osd_up", "1 when the MDS hears from the OSD.", labels, osd.up() ? 1 : 0);
  }
  std::map<std::string, wire::ClassLoad> totals;
  for (const wire::ClassLoad& one : load.classes()) {
    const auto name = names.find(one.class_id());
    wire::ClassLoad& total = totals[name == names.end() ? "removed" : name->second];
    total.set_operations(total.operations() + one.operations());
    total.set_delayed(total.delayed() + one.delayed());
    total.set_queued(total.queued() + one.queued());
    total.set_limited(total.limited() + one.limited());
  }
  for (const auto& [name, total] : totals) {
    const Labels labels = {{"class", name}};
    page->Counter("weir_mds_class_operations_total", "Metadata operations that were begun.", labels,
                  static_cast<double>(total.operations()));
    page->Counter("weir_mds_class_delayed_operations_total",
                  "Of those: the ones that had to wait for their turn.", labels,
                  static_cast<double>(total.delayed()));
    page->Counter("weir_mds_class_limited_operations_total",
                  "Of those that came: the ones that found the class held by its limit on names.",
                  labels, static_cast<double>(total.limited()));
    page->Gauge("weir_mds_class_queued_operations", "Metadata operations that wait now.", labels,
                static_cast<double>(total.queued()));
  }
}

void AddProcessMetrics(const std::string& program, MetricPage* page) {
  page->Gauge("weir_build_info", "1; the version is in the label.",
              {{"program", program}, {"version", WEIR_VERSION}}, 1);
  const std::vector<std::string> stat = StatFields();
  constexpr size_t kUserTime = 11, kSystemTime = 12, kThreads = 17, kPages = 21;
  if (stat.size() > kPages) {
    const auto number = [&](size_t field) { return std::stod(stat[field]); };
    const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
    page->Counter("process_cpu_seconds_total", "Processor time, user and system.", {},
                  (number(kUserTime) + number(kSystemTime)) / ticks);
    page->Gauge("process_threads", "Threads.", {}, number(kThreads));
    page->Gauge("process_resident_memory_bytes", "Resident memory.", {},
                number(kPages) * static_cast<double>(sysconf(_SC_PAGESIZE)));
  }
  std::error_code error;
  std::filesystem::directory_iterator files("/proc/self/fd", error);
  if (!error) {
    const auto open = std::distance(begin(files), end(files));
    page->Gauge("process_open_fds", "Open file descriptors.", {}, static_cast<double>(open));
  }
}

}  // namespace weir::monitor
