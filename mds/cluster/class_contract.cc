#include "mds/cluster/class_contract.h"

#include <algorithm>

namespace weir::mds {
namespace {

constexpr uint64_t kLongestBound = uint64_t{3600} * 1'000'000'000;
constexpr uint32_t kMostPending = 100'000;

bool NamesContract(const wire::SetClassRequest& request) {
  return request.has_type() || request.has_peak() || request.has_peak_bytes_per_s() ||
         request.has_throughput_bytes_per_s() || request.has_tolerance() ||
         request.has_latency_ns() || request.has_latency_part() || request.has_max_pending() ||
         request.has_admission();
}

// The bound of a class that becomes a latency disk becomes the disk's, and goes with it.
Duration TakeBound(ClassSpec* spec) {
  const Duration bound = std::max(spec->disk.latency, spec->service.bound);
  spec->disk.latency = spec->service.bound = Duration(0);
  return bound;
}

Status CheckKind(const ClassSpec& spec) {
  const bool disk = spec.disk.type != ClassType::kBestEffort;
  if (!disk && (spec.disk.peak > 0 || spec.disk.peak_bytes_per_s > 0)) {
    return {ErrorCode::kInvalid,
            "a share of the disk (--peak) needs a type: rent-a-disk, latency or throughput"};
  }
  if (spec.disk.type != ClassType::kThroughput && spec.disk.throughput_bytes_per_s > 0) {
    return {ErrorCode::kInvalid, "a rate (--throughput) needs --type throughput"};
  }
  if (spec.id < kFirstUserClass && (disk || spec.service.bound > Duration(0))) {
    return {ErrorCode::kInvalid,
            "'" + spec.name + "' is WeirFS's own class: it has a weight, a limit and a floor only"};
  }
  return Status::Ok();
}

}  // namespace

Status ApplyContract(const wire::SetClassRequest& request, ClassSpec* spec) {
  if (!NamesContract(request)) return Status::Ok();
  const bool was_latency_disk = spec->disk.type == ClassType::kLatency;
  Duration bound = TakeBound(spec);
  if (request.has_type()) {
    WEIR_ASSIGN_OR_RETURN(spec->disk.type, ParseClassType(request.type()));
    if (spec->disk.type == ClassType::kBestEffort) {
      spec->disk.peak = 0;
      spec->disk.peak_bytes_per_s = 0;
    }
    if (spec->disk.type != ClassType::kThroughput) spec->disk.throughput_bytes_per_s = 0;
    if (was_latency_disk && spec->disk.type != ClassType::kLatency) bound = Duration(0);
  }
  if (request.has_peak() && request.has_peak_bytes_per_s()) {
    return {ErrorCode::kInvalid, "a peak is a share or a rate (--peak), not both"};
  }
  if (request.has_peak() || request.has_peak_bytes_per_s()) {
    spec->disk.peak = request.peak();
    spec->disk.peak_bytes_per_s = request.peak_bytes_per_s();
  }
  if (request.has_throughput_bytes_per_s()) {
    if (request.throughput_bytes_per_s() > INT64_MAX) {
      return {ErrorCode::kInvalid, "a throughput is less than 8EiB/s"};
    }
    spec->disk.throughput_bytes_per_s = request.throughput_bytes_per_s();
  }
  if (request.has_tolerance()) spec->disk.tolerance = request.tolerance();
  if (request.has_latency_ns()) {
    if (request.latency_ns() > kLongestBound) {
      return {ErrorCode::kInvalid, "a latency bound is at most an hour"};
    }
    bound = Duration(static_cast<int64_t>(request.latency_ns()));
  }
  if (request.has_latency_part()) spec->service.probability = request.latency_part();
  if (request.has_max_pending()) {
    if (request.max_pending() > kMostPending) {
      return {ErrorCode::kInvalid, "at most 100000 requests can be pending"};
    }
    spec->service.max_pending = request.max_pending();
  }
  if (request.has_admission()) {
    WEIR_ASSIGN_OR_RETURN(spec->admission, ParseAdmission(request.admission()));
  }
  const bool of_disk = spec->disk.type == ClassType::kLatency;
  (of_disk ? spec->disk.latency : spec->service.bound) = bound;
  WEIR_RETURN_IF_ERROR(CheckKind(*spec));
  WEIR_RETURN_IF_ERROR(CheckVirtualDisk(spec->disk));
  return CheckContract(spec->service);
}

std::vector<Wanted> NewContracts(const ClassSpec& before, const ClassSpec& now) {
  std::vector<Wanted> wanted;
  const bool bound_changed = !(before.service == now.service) || before.admission != now.admission;
  if (now.service.bound > Duration(0) && bound_changed) wanted.push_back(Wanted::kBound);
  const bool other = now.disk.peak != before.disk.peak ||
                     now.disk.peak_bytes_per_s != before.disk.peak_bytes_per_s;
  if (now.disk.type != ClassType::kBestEffort && other) wanted.push_back(Wanted::kDisk);
  return wanted;
}

void ShowBooking(const ClusterMap& map, const ClassSpec& spec, wire::ClassInfo* info) {
  uint64_t most = 0;
  for (const auto& [id, osd] : map.osds) {
    most = std::max(most, BookingOf(spec, osd.qos, map.osds.size()).total());
  }
  info->set_booked_bytes_per_s(most);
}

}  // namespace weir::mds
