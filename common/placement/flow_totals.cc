#include "common/placement/flow_totals.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "common/qos/flow_kind.h"
#include "common/wire/mds.pb.h"
#include "common/wire/times.pb.h"

namespace weir {
namespace {

using Rows = google::protobuf::RepeatedPtrField<wire::FlowStats>;

auto WhoOf(const wire::FlowStats& row) {
  const wire::Flow& flow = row.flow();
  return std::make_tuple(row.session(), flow.kind(), flow.uid(), flow.cgroup(), flow.opener());
}

uint64_t ToMicros(Duration span) {
  return static_cast<uint64_t>(span.count() / 1000);
}

void FillRow(const FlowMeter::Row& row, bool of_user, wire::FlowStats* out) {
  wire::Flow& flow = *out->mutable_flow();
  flow.set_kind(row.owner.by_cgroup ? wire::Flow::CGROUP : wire::Flow::USER);
  flow.set_uid(row.owner.uid);
  flow.set_cgroup(std::string(row.owner.cgroup()));
  if (!of_user) flow.set_opener(row.owner.opener);
  out->set_session(row.owner.session);
  out->set_device_us(static_cast<uint64_t>(row.use.device_ns / 1000));
  out->set_requests(row.use.requests);
  out->set_bytes(row.use.bytes);
  out->set_light_requests(row.use.light_requests);
  out->set_openers(row.openers);
  out->set_waiting(row.use.waiting);
  out->set_waited_us(ToMicros(row.use.waited));
}

void AddRow(const wire::FlowStats& one, wire::FlowStats* sum) {
  sum->set_device_us(sum->device_us() + one.device_us());
  sum->set_requests(sum->requests() + one.requests());
  sum->set_bytes(sum->bytes() + one.bytes());
  sum->set_light_requests(sum->light_requests() + one.light_requests());
  sum->set_openers(std::max(sum->openers(), one.openers()));
  sum->set_waiting(sum->waiting() + one.waiting());
  sum->set_waited_us(sum->waited_us() + one.waited_us());
}

void AddRows(const Rows& more, Rows* sum) {
  std::vector<wire::FlowStats> all(sum->begin(), sum->end());
  all.insert(all.end(), more.begin(), more.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return WhoOf(a) < WhoOf(b); });
  std::vector<wire::FlowStats> rows;
  for (wire::FlowStats& row : all) {
    if (!rows.empty() && WhoOf(rows.back()) == WhoOf(row)) {
      AddRow(row, &rows.back());
    } else {
      rows.push_back(std::move(row));
    }
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.device_us() > b.device_us(); });
  rows.resize(std::min(rows.size(), kFlowsTold));
  sum->Assign(rows.begin(), rows.end());
}

}  // namespace

void ToWire(const FlowMeter::Report& report, wire::FlowsOfClass* out) {
  out->set_window_s(ToSeconds(report.window));
  out->set_device_us(static_cast<uint64_t>(report.all.device_ns / 1000));
  out->set_requests(report.all.requests);
  out->set_waiting(report.all.waiting);
  out->set_waited_us(ToMicros(report.all.waited));
  out->set_users_seen(static_cast<uint32_t>(report.users_seen));
  out->set_openers_seen(static_cast<uint32_t>(report.openers_seen));
  for (const FlowMeter::Row& row : report.users) FillRow(row, true, out->add_users());
  for (const FlowMeter::Row& row : report.openers) FillRow(row, false, out->add_openers());
}

Status CheckFlowsAreTold(const wire::ClassLoadReply& load) {
  if (load.flows()) return Status::Ok();
  return {ErrorCode::kNotSupported, "the MDS is of a version before, which does not tell"};
}

std::string FlowName(const wire::FlowStats& flow) {
  const wire::Flow& who = flow.flow();
  std::string user = who.uid() == kUidOfMount ? "the mount" : "uid " + std::to_string(who.uid());
  if (who.kind() == wire::Flow::CGROUP) {
    user = who.cgroup().empty() ? "no known cgroup" : "cgroup " + who.cgroup();
  }
  return who.opener() == 0 ? user : "pid " + std::to_string(who.opener()) + " (" + user + ")";
}

bool IsMostlyLight(const wire::FlowStats& flow) {
  return 2 * flow.light_requests() > flow.requests();
}

void AddFlows(const wire::FlowsOfClass& one, wire::FlowsOfClass* sum) {
  AddRows(one.users(), sum->mutable_users());
  AddRows(one.openers(), sum->mutable_openers());
  const auto seen = [](uint32_t a, uint32_t b, int rows) {
    return std::max({a, b, static_cast<uint32_t>(rows)});
  };
  sum->set_users_seen(seen(sum->users_seen(), one.users_seen(), sum->users_size()));
  sum->set_openers_seen(seen(sum->openers_seen(), one.openers_seen(), sum->openers_size()));
  sum->set_device_us(sum->device_us() + one.device_us());
  sum->set_requests(sum->requests() + one.requests());
  sum->set_waiting(sum->waiting() + one.waiting());
  sum->set_waited_us(sum->waited_us() + one.waited_us());
  sum->set_window_s(std::max(sum->window_s(), one.window_s()));
}

}  // namespace weir
