#include "osd/decisions/served.h"

#include <algorithm>

namespace weir::osd {

using Kind = Event::Kind;

Served ServedOf(const std::vector<Event>& events) {
  Served served;
  if (events.empty()) return served;
  const TimePoint start = events.front().now;
  TimePoint end = start;
  for (const Event& event : events) end = event.timed() ? event.now : end;
  const auto steps = static_cast<size_t>((end - start) / Served::kStep + 1);
  std::vector<const Event*> arrivals;
  for (const Event& event : events) {
    if (event.kind == Kind::kEnqueue) {
      arrivals.push_back(&event);
      Served::OfClass& of_class = served.classes[event.class_id];
      of_class.until.resize(steps);
      of_class.largest = std::max(of_class.largest, event.bytes);
    } else if (event.kind == Kind::kCompleted) {
      const Event& arrival = *arrivals[event.request - 1];
      const auto step = static_cast<size_t>((event.now - start) / Served::kStep);
      served.classes[arrival.class_id].until[step] += arrival.bytes;
    }
  }
  for (auto& [id, of_class] : served.classes) {
    for (size_t i = 1; i < steps; ++i) of_class.until[i] += of_class.until[i - 1];
  }
  return served;
}

namespace {

// Whole steps.
size_t StepsOf(const Served& served) {
  return served.classes.empty() ? 0 : served.classes.begin()->second.until.size() - 1;
}

}  // namespace

ServedGap LargestGap(const Served& recorded, const Served& replayed, uint64_t requests_free) {
  ServedGap largest;
  const size_t steps = std::min(StepsOf(recorded), StepsOf(replayed));
  for (const auto& [id, ours] : recorded.classes) {
    const auto found = replayed.classes.find(id);
    const uint64_t all = std::max<uint64_t>(1, ours.until.back());
    for (size_t i = 0; i < steps; ++i) {
      const uint64_t a = ours.until[i];
      const uint64_t b = found == replayed.classes.end() ? 0 : found->second.until[i];
      const uint64_t apart = std::max(a, b) - std::min(a, b);
      const uint64_t counted = apart - std::min(apart, requests_free * ours.largest);
      const double part = static_cast<double>(counted) / static_cast<double>(all);
      if (part <= largest.part) continue;
      largest = {id, static_cast<int64_t>(i + 1) * Served::kStep, a, b, part};
    }
  }
  return largest;
}

}  // namespace weir::osd
