// What an ObjectService says of itself.
#include <fmt/format.h>

#include "common/net/rpc.h"
#include "common/placement/flow_totals.h"
#include "common/placement/times_wire.h"
#include "common/wire/build.h"
#include "common/wire/osd.pb.h"
#include "osd/service/object_service.h"

namespace weir::osd {

void FillClassStats(const DispatcherClassStats& one, wire::ClassStats* row) {
  wire::ClassStats& out = *row;
  out.set_class_id(one.counters.id.value);
  out.set_served_bytes(one.counters.served_bytes);
  out.set_served_ops(one.counters.served_ops);
  out.set_queued_ops(one.counters.queued_ops);
  out.set_guaranteed_bytes(one.counters.guaranteed_bytes);
  out.set_surplus_bytes(one.counters.surplus_bytes);
  out.set_arrived_bytes(one.counters.arrived_bytes);
  out.set_deadline_misses(one.counters.deadline_misses);
  out.set_violation_seconds(one.counters.violation_seconds);
  out.mutable_latency()->set_p50_us(one.p50_us);
  out.mutable_latency()->set_p90_us(one.p90_us);
  out.mutable_latency()->set_p99_us(one.p99_us);
  out.mutable_latency()->set_p999_us(one.p999_us);
  out.set_outside_bytes(one.outside_bytes);
  out.set_bound_quantile_us(static_cast<uint64_t>(one.bound.quantile.count() / 1000));
  out.set_bound_target_us(static_cast<uint64_t>(one.bound.target.count() / 1000));
  out.mutable_recent_latency()->set_p50_us(one.recent.p50_us);
  out.mutable_recent_latency()->set_p90_us(one.recent.p90_us);
  out.mutable_recent_latency()->set_p99_us(one.recent.p99_us);
  out.mutable_recent_latency()->set_p999_us(one.recent.p999_us);
  ToWire(one.counters.id, one.counters.times, out.mutable_times());
  for (const LatencyHistogram::Filled& bucket : one.latencies) {
    out.add_latency_ends_us(bucket.largest);
    out.add_latency_counts(bucket.count);
  }
  out.set_latency_sum_us(one.latency_sum_us);
  out.set_name(one.name);
  if (one.flows.has_value() && one.flows->users_seen > 0) {
    ToWire(*one.flows, out.mutable_flows());
  }
}

void ObjectService::HandleStats(net::IncomingCall& call) {
  wire::OsdStatsRequest request;
  if (!request.ParseFromString(call.body())) {
    call.Respond({ErrorCode::kBadMessage,
                  fmt::format("osd.{}: stats request does not parse", identity_.osd_id)});
    return;
  }
  const DispatcherStats stats = dispatcher_.Stats(request.reset(), request.flows());
  const StoreStats store = store_.Stats();
  wire::OsdStatsReply reply;
  reply.set_osd_id(identity_.osd_id);
  reply.set_osd_uuid(identity_.osd_uuid);
  *reply.mutable_build() = wire::ThisBuild();
  reply.set_token_rate(stats.token_rate);
  reply.set_base_token_rate(stats.base_token_rate);
  reply.set_device_bytes_per_s(stats.device_bytes_per_s);
  reply.set_pace(stats.pace);
  reply.set_bulk_let_go(stats.bulk_let_go);
  const Duration profiled = alone_p99_;
  Duration alone = stats.alone_p99;
  // Whatever else the disk did while it was profiled, or in all its life, is no reason to refuse.
  if (profiled > Duration(0) && (alone == Duration(0) || profiled < alone)) alone = profiled;
  reply.set_alone_p99_us(static_cast<uint64_t>(alone / std::chrono::microseconds(1)));
  reply.set_window_s(ToSeconds(stats.window));
  reply.set_capacity_bytes(store.capacity_bytes);
  reply.set_used_bytes(store.used_bytes);
  reply.set_objects(store.objects);
  reply.set_checksum_errors(store.checksum_errors);
  reply.set_commits(store.commits);
  reply.set_committed_ops(store.committed_ops);
  reply.set_epoch(epoch_);
  reply.set_background_bytes(store.background_bytes);
  reply.set_unmetered_bytes(store.unmetered_bytes + stats.bypassed_bytes);
  if (options_.background_floor) reply.set_background_floor(options_.background_floor());
  reply.mutable_disk()->set_bytes_per_s(stats.disk.bytes_per_s);
  reply.mutable_disk()->set_give_or_take(stats.disk.give_or_take);
  reply.mutable_disk()->set_samples(stats.disk.samples);
  reply.mutable_disk()->set_slow(stats.disk.slow);
  reply.mutable_disk()->set_alarms(stats.disk.alarms);
  for (const DispatcherClassStats& one : stats.classes) {
    FillClassStats(one, reply.add_classes());
  }
  if (options_.add_stats) options_.add_stats(stats, request, &reply);
  call.Respond(reply.SerializeAsString());
}

}  // namespace weir::osd
