#include "common/qos/blame.h"

#include <fmt/format.h>

#include <algorithm>

namespace weir {
namespace {

constexpr double kNanos = 1e-9;
// Whoever has something to do less than half of the time is not slowed down by others.
constexpr double kAsksLittle = 0.5;

// Requests, on average over the time, that waited because of it.
struct Reasons {
  double limit = 0;
  double neighbour = 0;
  double disk = 0;
  double processors = 0;
  double network = 0;
};

double Rate(uint64_t sum, double seconds, double unit = kNanos) {
  return seconds > 0 ? static_cast<double>(sum) * unit / seconds : 0;
}

// The part of its wait for a turn that others are the reason for.
double OthersPart(const OsdClassTimes& times) {
  const auto own = static_cast<double>(times.turn_own_bytes);
  const auto others = static_cast<double>(times.turn_others_bytes);
  return others > 0 ? others / (own + others) : 0;
}

ClassId BusiestNeighbour(const std::map<ClassId, double>& served_to) {
  const auto most =
      std::max_element(served_to.begin(), served_to.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == served_to.end() ? ClassId() : most->first;
}

void AddOsd(const OsdLately& osd, const OsdClassTimes& times, Verdict* verdict, Reasons* reasons) {
  const double seconds = osd.seconds;
  const double turn = Rate(times.turn_ns, seconds);
  const double pace = Rate(times.pace_ns, seconds);
  const double rate = Rate(times.rate_ns, seconds) + pace;
  const double owed = Rate(times.owed_ns, seconds);
  const double device = Rate(times.device_ns, seconds);
  const double limit = Rate(times.limit_ns, seconds);
  verdict->split.class_queue += std::max(0.0, turn - rate);
  verdict->split.token_wait += rate + limit;
  verdict->split.device += owed + device;
  const double crowd = std::min(device, Rate(times.crowd_ns, seconds));
  const double in_turn = std::max(0.0, turn - pace);
  const double others = OthersPart(times) * in_turn + crowd;
  reasons->limit += limit;
  reasons->neighbour += others;
  reasons->disk += in_turn + owed + device - others;
  reasons->processors += pace;
  verdict->active_part = std::max(verdict->active_part, Rate(times.active_ns, seconds));
  verdict->limited_part = std::max(verdict->limited_part, Rate(times.limited_ns, seconds));
  verdict->ops_per_s += Rate(times.ops, seconds, 1);
  verdict->bytes_per_s += Rate(times.bytes, seconds, 1);
  verdict->seconds = std::max(verdict->seconds, seconds);
}

// Without any: what was sent, and nobody has, is on its way.
Culprit WorstOf(const Reasons& reasons) {
  const std::pair<double, Culprit> all[] = {{reasons.network, Culprit::kNetwork},
                                            {reasons.limit, Culprit::kLimit},
                                            {reasons.neighbour, Culprit::kNeighbour},
                                            {reasons.disk, Culprit::kDisk},
                                            {reasons.processors, Culprit::kProcessors}};
  return std::max_element(std::begin(all), std::end(all),
                          [](const auto& a, const auto& b) { return a.first < b.first; })
      ->second;
}

}  // namespace

std::string_view ToText(Culprit culprit) {
  switch (culprit) {
    case Culprit::kNobody:
      return "nobody";
    case Culprit::kLimit:
      return "limit";
    case Culprit::kNeighbour:
      return "neighbour";
    case Culprit::kDisk:
      return "disk";
    case Culprit::kNetwork:
      return "network";
    case Culprit::kApplication:
      return "application";
    case Culprit::kProcessors:
      return "processors";
  }
  return "nobody";
}

Verdict Judge(const Lately& lately, ClassId id) {
  Verdict verdict;
  Reasons reasons;
  std::map<ClassId, double> served_to;  // others, where the class waited, by how much it did
  double longest = -1;
  for (const OsdLately& osd : lately.osds) {
    const auto own = osd.classes.find(id);
    if (own == osd.classes.end()) continue;
    const double before = reasons.neighbour;
    const double all_before = verdict.split.total();
    AddOsd(osd, own->second, &verdict, &reasons);
    const double here = verdict.split.total() - all_before;
    if (here > longest) verdict.osd = osd.osd;
    longest = std::max(longest, here);
    const double waited = reasons.neighbour - before;
    double others = 0;
    for (const auto& [other, times] : osd.classes) {
      if (other != id) others += static_cast<double>(times.bytes);
    }
    for (const auto& [other, times] : osd.classes) {
      if (other == id || others <= 0) continue;
      served_to[other] += waited * static_cast<double>(times.bytes) / others;
    }
  }
  for (const MountLately& mount : lately.mounts) {
    verdict.split.client_window += Rate(mount.times.window_ns, mount.seconds);
    const double limit = Rate(mount.times.limit_ns, mount.seconds);
    verdict.split.token_wait += limit;
    reasons.limit += limit;
    verdict.limited_part =
        std::max(verdict.limited_part, Rate(mount.times.limited_ns, mount.seconds));
    const double network = Rate(mount.times.network_ns, mount.seconds);
    verdict.split.network += network;
    reasons.network += network;
    const double active = Rate(mount.times.active_ns, mount.seconds);
    verdict.active_part = std::max(verdict.active_part, active);
    verdict.seconds = std::max(verdict.seconds, mount.seconds);
  }
  verdict.active_part = std::min(1.0, verdict.active_part);
  verdict.limited_part = std::min(1.0, verdict.limited_part);
  if (verdict.split.total() <= 0 && verdict.active_part <= 0) return verdict;
  verdict.culprit = verdict.active_part < kAsksLittle ? Culprit::kApplication : WorstOf(reasons);
  if (verdict.culprit == Culprit::kNeighbour) verdict.neighbour = BusiestNeighbour(served_to);
  return verdict;
}

std::string WhoIsToBlame(const Verdict& verdict, std::string_view neighbour_name) {
  switch (verdict.culprit) {
    case Culprit::kNobody:
      return "nobody (it asked for nothing)";
    case Culprit::kLimit:
      return "its own limit";
    case Culprit::kNeighbour:
      return fmt::format("neighbour '{}' (on osd.{})", neighbour_name, verdict.osd.value);
    case Culprit::kDisk:
      return fmt::format("the disk (osd.{})", verdict.osd.value);
    case Culprit::kNetwork:
      return "the network";
    case Culprit::kApplication:
      return fmt::format("the application (it has something under way {:.0f} % of the time)",
                         100 * verdict.active_part);
    case Culprit::kProcessors:
      return fmt::format("the processors (osd.{}), kept free for a class with a latency bound",
                         verdict.osd.value);
  }
  return {};
}

}  // namespace weir
