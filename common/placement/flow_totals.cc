#include "common/placement/flow_totals.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "common/qos/flow_kind.h"
#include "common/wire/osd.pb.h"

namespace weir {
namespace {

using Rows = google::protobuf::RepeatedPtrField<wire::FlowStats>;

auto WhoOf(const wire::FlowStats& row) {
  const wire::Flow& flow = row.flow();
  return std::make_tuple(row.session(), flow.kind(), flow.uid(), flow.cgroup(), flow.opener());
}

void AddRow(const wire::FlowStats& one, wire::FlowStats* sum) {
  sum->set_device_us(sum->device_us() + one.device_us());
  sum->set_requests(sum->requests() + one.requests());
  sum->set_bytes(sum->bytes() + one.bytes());
  sum->set_light_requests(sum->light_requests() + one.light_requests());
  sum->set_openers(std::max(sum->openers(), one.openers()));
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

std::string FlowName(const wire::FlowStats& flow) {
  const wire::Flow& who = flow.flow();
  std::string user = "uid " + std::to_string(who.uid());
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
  sum->set_window_s(std::max(sum->window_s(), one.window_s()));
}

}  // namespace weir
