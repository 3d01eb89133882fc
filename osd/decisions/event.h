// Event: one call that moved a Scheduler, by itself: it points to nothing of the scheduler's.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "common/base/ids.h"
#include "common/base/time.h"
#include "common/qos/qos_config.h"
#include "osd/qos/decision_recorder.h"
#include "osd/qos/scheduler.h"

namespace weir::osd {

struct Event {
  using Kind = qos::Decision::Kind;

  Kind kind{};
  TimePoint now;         // kSetBooked and kDoneOutside: not known
  uint64_t request = 0;  // numbered from 1 in their order of arrival; 0: none
  std::shared_ptr<const SchedulerConfig> config;  // kStart, kConfigure
  std::shared_ptr<const ClassSpec> spec;          // kSetClass
  uint64_t amount = 0;                            // as Decision::amount
  ClassId class_id;                               // kRemoveClass, kEnqueue
  qos::OpKind op{};                               // kEnqueue, as the rest
  uint64_t bytes = 0;
  uint64_t lba = 0;
  int64_t elsewhere = 0;
  uint32_t transaction = 0;
  FlowKey flow;

  // Whether the scheduler was told `now`.
  [[nodiscard]] bool timed() const {
    return kind != Kind::kSetBooked && kind != Kind::kDoneOutside;
  }
};

// Makes events of what a DecisionRecorder hears, and numbers the requests.
class EventMaker {
 public:
  Event Make(const qos::Decision& decision);

 private:
  uint64_t NumberOf(const qos::Decision& decision);

  uint64_t arrived_ = 0;
  std::unordered_map<const qos::Request*, uint64_t> numbers_;  // of those that are not complete
};

// Keeps the first events that it hears in memory. Threads: the scheduler's owner.
class EventKeeper final : public qos::DecisionRecorder {
 public:
  explicit EventKeeper(size_t events_max = SIZE_MAX) : events_max_(events_max) {}
  void Note(const qos::Decision& decision) override;

  [[nodiscard]] const std::vector<Event>& events() const { return events_; }
  [[nodiscard]] bool full() const { return events_.size() >= events_max_; }

 private:
  const size_t events_max_;
  EventMaker maker_;
  std::vector<Event> events_;
};

}  // namespace weir::osd
