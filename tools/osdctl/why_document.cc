#include "tools/osdctl/why_document.h"

#include <fmt/format.h>

#include "common/base/units.h"
#include "tools/cli/table.h"

namespace weir::osdctl {
namespace {

struct Place {
  const char* key;
  const char* name;
  double TimeSplit::*requests;
};
constexpr Place kPlaces[] = {
    {"client_window", "client window", &TimeSplit::client_window},
    {"network", "network", &TimeSplit::network},
    {"class_queue", "class queue", &TimeSplit::class_queue},
    {"token_wait", "token wait", &TimeSplit::token_wait},
    {"device", "device", &TimeSplit::device},
};

// Little's law: what a request spends there, in microseconds.
double MeanUs(const Verdict& verdict, double requests) {
  return verdict.ops_per_s > 0 ? 1e6 * requests / verdict.ops_per_s : 0;
}

double SharePercent(const Verdict& verdict, double requests) {
  const double total = verdict.split.total();
  return total > 0 ? 100 * requests / total : 0;
}

const wire::FlowStats* HeaviestOf(const WhyAnswer& answer) {
  return answer.flows.has_value() ? Heaviest(*answer.flows) : nullptr;
}

// How OSDs keep the class's latency bound, those that measured it.
std::vector<std::pair<uint32_t, wire::ClassStats>> BoundsOf(const WhyAnswer& answer) {
  std::vector<std::pair<uint32_t, wire::ClassStats>> bounds;
  for (const auto& [osd, stats] : answer.osds) {
    for (const auto& row : stats.classes()) {
      if (row.class_id() == answer.info->id() && row.bound_quantile_us() > 0) {
        bounds.emplace_back(osd, row);
      }
    }
  }
  return bounds;
}

const ClassFlows* NamesOf(const WhyAnswer& answer) {
  for (const ClassFlows& one : answer.at_mds) {
    if (one.id == answer.info->id()) return &one;
  }
  return nullptr;
}

double NamesPerSecond(const wire::FlowsOfClass& flows) {
  return flows.window_s() > 0 ? static_cast<double>(flows.requests()) / flows.window_s() : 0;
}

// Its own limit holds them, not others.
bool NamesAreLimited(const WhyAnswer& answer) {
  const uint64_t limit = answer.info->limit_names_per_s();
  const ClassFlows* names = NamesOf(answer);
  constexpr double kNear = 0.8;  // the first seconds of a load are within the window
  return limit > 0 && names != nullptr &&
         NamesPerSecond(names->flows) > kNear * static_cast<double>(limit);
}

// Who has the turns for which the class's operations on names wait. Null: there is nobody beside.
struct NameHolder {
  const ClassFlows* of = nullptr;
  const wire::FlowStats* flow = nullptr;
};
NameHolder NameHolderOf(const WhyAnswer& answer) {
  if (!WaitsForNames(answer)) return {};
  if (NamesAreLimited(answer) || answer.at_mds.size() == 1) {
    const ClassFlows* names = NamesOf(answer);
    return {names, Heaviest(names->flows)};
  }
  NameHolder holder;
  for (const ClassFlows& one : answer.at_mds) {
    for (const wire::FlowStats& user : one.flows.users()) {  // in the order of what they ask for
      if (holder.flow == nullptr || user.device_us() > holder.flow->device_us()) {
        holder = {&one, &user};
      }
    }
  }
  return holder;
}

Json NamesDocument(const WhyAnswer& answer) {
  const ClassFlows* names = NamesOf(answer);
  if (names == nullptr) return nullptr;
  const wire::FlowsOfClass& flows = names->flows;
  Json json = {{"operations_per_s", NamesPerSecond(flows)},
               {"waiting", flows.waiting()},
               {"wait_us", MeanWaitUs(flows.waited_us(), flows.requests(), flows.waiting())},
               {"waits", WaitsForNames(answer)},
               {"limited", NamesAreLimited(answer)},
               {"flow", nullptr}};
  const NameHolder holder = NameHolderOf(answer);
  if (holder.flow != nullptr) {
    json["flow"] = NameFlowDocument(*holder.flow, holder.of->flows, answer.names);
    json["flow"]["class"] = holder.of->name;
  }
  return json;
}

std::string NamesText(const WhyAnswer& answer) {
  if (!answer.names_missing.empty()) {
    return fmt::format("names     not known: {}\n", answer.names_missing);
  }
  const ClassFlows* names = NamesOf(answer);
  if (names == nullptr) return "";
  const wire::FlowsOfClass& flows = names->flows;
  const uint64_t wait_us = MeanWaitUs(flows.waited_us(), flows.requests(), flows.waiting());
  std::string text = fmt::format("names     {:.0f} operations/s, {} wait at the MDS, {} us each\n",
                                 NamesPerSecond(flows), flows.waiting(), wait_us);
  if (!WaitsForNames(answer)) return text;
  if (NamesAreLimited(answer)) {
    text += fmt::format("          for its limit: osdctl class set {} --limit-names N|max\n",
                        answer.info->name());
  }
  const NameHolder holder = NameHolderOf(answer);
  if (holder.flow == nullptr) return text;
  return text + fmt::format("          {} (osdctl top --flows {})\n",
                            NameHolderText(*holder.flow, *holder.of, answer.names),
                            holder.of->name);
}

std::string BoundsText(const WhyAnswer& answer) {
  std::string text;
  for (const auto& [osd, row] : BoundsOf(answer)) {
    text += fmt::format(
        "bound     {} us lately at its quantile on osd.{}, bulk is held back above {} us{}\n",
        row.bound_quantile_us(), osd, row.bound_target_us(),
        answer.osds.at(osd).bulk_let_go() ? ": not now, it did not help" : "");
  }
  return text;
}

}  // namespace

Json PathJson(int path) {
  const KernelPath known = ToKernelPath(path);
  return known == KernelPath::kUnknown ? Json(nullptr) : Json(ToText(known));
}

bool WaitsForItsOwn(const Verdict& verdict) {
  switch (verdict.culprit) {
    case Culprit::kLimit:
    case Culprit::kDisk:
    case Culprit::kProcessors:
      return true;
    default:
      return false;
  }
}

bool WaitsForNames(const WhyAnswer& answer) {
  const ClassFlows* names = NamesOf(answer);
  if (names == nullptr || names->flows.window_s() <= 0) return false;
  // Little's law: how many wait, on average.
  const double waiting =
      static_cast<double>(names->flows.waited_us()) / 1e6 / names->flows.window_s();
  constexpr double kWorthAWord = 0.5;
  const TimeSplit& split = answer.verdict.split;
  return waiting >= kWorthAWord && waiting > split.class_queue + split.token_wait;
}

Json WhyDocument(const WhyAnswer& answer) {
  const Verdict& verdict = answer.verdict;
  Json mean = Json::object();
  Json share = Json::object();
  for (const Place& place : kPlaces) {
    const double requests = verdict.split.*place.requests;
    mean[place.key] = MeanUs(verdict, requests);
    share[place.key] = SharePercent(verdict, requests);
  }
  Json blame = {
      {"culprit", ToText(verdict.culprit)}, {"neighbour", nullptr},
      {"osd", verdict.osd.value},           {"text", WhoIsToBlame(verdict, answer.neighbour)},
      {"advice", Advice(answer)},           {"flow", nullptr}};
  if (const wire::FlowStats* heaviest = HeaviestOf(answer)) {
    blame["flow"] = FlowDocument(*heaviest, *answer.flows, answer.names);
  }
  if (verdict.culprit == Culprit::kNeighbour) blame["neighbour"] = answer.neighbour;
  Json json = {
      {"class", answer.info->name()},
      {"id", answer.info->id()},
      {"path", nullptr},
      {"reason", nullptr},
      {"window_s", verdict.seconds},
      {"served_bytes_per_s", static_cast<uint64_t>(verdict.bytes_per_s)},
      {"served_ops_per_s", static_cast<uint64_t>(verdict.ops_per_s)},
      {"requests_under_way", verdict.split.total()},
      {"active_percent", 100 * verdict.active_part},
      {"throttled_ms", static_cast<uint64_t>(1000 * verdict.limited_part * verdict.seconds)},
      {"mean_us", mean},
      {"share_percent", share},
      {"blame", blame}};
  json["mounts"] = Json::array();
  for (const MountLately& mount : answer.mounts) {
    json["mounts"].push_back(
        {{"client", mount.client}, {"path", PathJson(static_cast<int>(mount.path))}});
  }
  json["names"] = NamesDocument(answer);
  json["names_missing"] = nullptr;
  if (!answer.names_missing.empty()) json["names_missing"] = answer.names_missing;
  json["bounds"] = Json::array();
  for (const auto& [osd, row] : BoundsOf(answer)) {
    json["bounds"].push_back({{"osd", osd},
                              {"quantile_us", row.bound_quantile_us()},
                              {"target_us", row.bound_target_us()},
                              {"let_go", answer.osds.at(osd).bulk_let_go()}});
  }
  if (!answer.path.empty()) {
    json["path"] = answer.path;
    json["reason"] = answer.reason;
  }
  return json;
}

std::string Advice(const WhyAnswer& answer) {
  const std::string& name = answer.info->name();
  const Verdict& verdict = answer.verdict;
  switch (verdict.culprit) {
    case Culprit::kLimit:
      return fmt::format("it is {}: osdctl class set {} --limit RATE|max", LimitText(*answer.info),
                         name);
    case Culprit::kNeighbour:
      return fmt::format(
          "osdctl reserve {0} --bandwidth RATE, a larger osdctl class set {0} --weight, "
          "or osdctl class set {1} --limit RATE",
          name, answer.neighbour);
    case Culprit::kDisk:
      return fmt::format(
          "it does what osd.{0} can (osdctl osd show {0}): spread the data over more "
          "disks, or ask for larger pieces",
          verdict.osd.value);
    case Culprit::kNetwork:
      return "the network, or too little CPU on either side";
    case Culprit::kApplication:
      return "more requests at the same time would be served at once";
    case Culprit::kProcessors:
      return fmt::format(
          "give osd.{0} more processors, promise the class what it needs (osdctl reserve {1}), or "
          "let it take more of them: osdctl osd set {0} --processor-pressure PERCENT",
          verdict.osd.value, name);
    case Culprit::kNobody:
      return "";
  }
  return "";
}

std::string WhyScreen(const WhyAnswer& answer) {
  const wire::ClassInfo& info = *answer.info;
  const Verdict& verdict = answer.verdict;
  std::string text;
  if (!answer.path.empty()) text += fmt::format("path      {}\n", answer.path);
  text += fmt::format("class     {}\n", answer.path.empty() ? info.name() : answer.reason);
  text += fmt::format("contract  weight {:g}, limit {}, reservation {}\n", info.weight(),
                      LimitText(info), RateOrDash(info.reservation().bytes_per_s()));
  text += BoundsText(answer);
  text += NamesText(answer);
  if (verdict.culprit == Culprit::kNobody) {
    const bool names = NamesOf(answer) != nullptr || !answer.names_missing.empty();
    return text + fmt::format("lately    asked for {} in the last ten seconds\n",
                              names ? "no data" : "nothing");
  }
  text += fmt::format(
      "lately    {}, {:.0f} requests/s, {:.1f} under way, busy {:.0f} % of the last {:.0f} s\n\n",
      FormatRate(static_cast<uint64_t>(verdict.bytes_per_s)), verdict.ops_per_s,
      verdict.split.total(), 100 * verdict.active_part, verdict.seconds);
  cli::Table table({"TIME OF A REQUEST", ">MEAN us", ">SHARE"});
  for (const Place& place : kPlaces) {
    const double requests = verdict.split.*place.requests;
    const bool known = verdict.ops_per_s > 0;
    table.AddRow({place.name, known ? fmt::format("{:.0f}", MeanUs(verdict, requests)) : "-",
                  fmt::format("{:.0f}%", SharePercent(verdict, requests))});
  }
  text += table.Render();
  if (!answer.mounts.empty()) {
    cli::Table mounts({"MOUNT", "PATH"});
    for (const MountLately& mount : answer.mounts) {
      mounts.AddRow({mount.client, std::string(ToText(mount.path))});
    }
    text += "\n" + mounts.Render();
  }
  text += fmt::format("\nto blame  {}\n", WhoIsToBlame(verdict, answer.neighbour));
  const std::string advice = Advice(answer);
  if (!advice.empty()) text += fmt::format("          {}\n", advice);
  if (const wire::FlowStats* heaviest = HeaviestOf(answer)) {
    text += fmt::format("          of its own, {} (osdctl top --flows {})\n",
                        HeaviestText(*heaviest, *answer.flows, answer.names), info.name());
  }
  return text;
}

}  // namespace weir::osdctl
