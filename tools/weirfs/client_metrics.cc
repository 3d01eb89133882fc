#include "tools/weirfs/client_metrics.h"

namespace weir::weirfs {
namespace {

void AddClass(const client::Mount::Counters::Class& one, monitor::MetricPage* page) {
  const monitor::MetricPage::Labels labels = {{"class", one.name}};
  page->Counter("weir_client_class_transferred_bytes_total",
                "Bytes of object requests that were answered.", labels,
                static_cast<double>(one.answered_bytes));
  page->Counter("weir_client_class_requests_total", "Object requests that were answered.", labels,
                static_cast<double>(one.answered_requests));
  page->Gauge("weir_client_class_flying_bytes", "Bytes on their way to or from OSDs.", labels,
              static_cast<double>(one.flying_bytes));
  page->Gauge("weir_client_class_flying_requests", "Object requests on their way.", labels,
              static_cast<double>(one.flying_requests));
  page->Gauge("weir_client_class_waiting_requests",
              "Object requests that wait for room in their window.", labels,
              static_cast<double>(one.waiting_requests));
}

}  // namespace

void AddClientMetrics(const client::Mount::Counters& counters, monitor::MetricPage* page) {
  const auto counter = [&](const char* name, const char* help, uint64_t value) {
    page->Counter(name, help, {}, static_cast<double>(value));
  };
  const auto gauge = [&](const char* name, const char* help, uint64_t value) {
    page->Gauge(name, help, {}, static_cast<double>(value));
  };
  counter("weir_client_object_requests_total", "Object requests sent, retries included.",
          counters.sent);
  counter("weir_client_retries_total", "Of those: sent again.", counters.retried);
  counter("weir_client_checksum_errors_total", "Data that arrived damaged.",
          counters.checksum_errors);
  counter("weir_client_expired_requests_total", "Requests given up for an unreachable OSD.",
          counters.expired);
  gauge("weir_client_dirty_bytes", "Written data that is not on the OSDs yet.",
        counters.dirty_bytes);
  gauge("weir_client_inodes", "Inodes that the mount knows.", counters.inodes);
  gauge("weir_client_kernel_requests", "Requests of the kernel that wait for an answer.",
        counters.kernel_requests);
  gauge("weir_client_over_uring", "1 where the kernel's requests come by io_uring, 0: /dev/fuse.",
        counters.over_uring ? 1 : 0);
  counter("weir_client_ring_requests_total", "Requests of the kernel that came by io_uring.",
          counters.ring_requests);
  gauge("weir_client_ring_entries", "How many may be there at once.", counters.ring_entries);
  gauge("weir_client_ring_bytes", "Memory that they have in use.", counters.ring_bytes);
  gauge("weir_client_map_epoch", "Epoch of its cluster map.", counters.map_epoch);
  gauge("weir_client_mds_connected", "1 while it hears from the MDS.",
        counters.mds_connected ? 1 : 0);
  for (const client::Mount::Counters::Class& one : counters.classes) AddClass(one, page);
}

}  // namespace weir::weirfs
