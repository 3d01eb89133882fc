#include "osd/decisions/event.h"

namespace weir::osd {

using Kind = Event::Kind;

uint64_t EventMaker::NumberOf(const qos::Decision& decision) {
  if (decision.request == nullptr) return 0;
  if (decision.kind == Kind::kEnqueue) return numbers_[decision.request] = ++arrived_;
  const auto found = numbers_.find(decision.request);
  const uint64_t number = found->second;
  if (decision.kind == Kind::kCompleted) numbers_.erase(found);
  return number;
}

Event EventMaker::Make(const qos::Decision& decision) {
  Event event;
  event.kind = decision.kind;
  event.now = decision.now;
  event.request = NumberOf(decision);
  event.amount = decision.amount;
  event.class_id = decision.class_id;
  if (decision.config != nullptr) {
    event.config = std::make_shared<SchedulerConfig>(*decision.config);
  }
  if (decision.spec != nullptr) event.spec = std::make_shared<ClassSpec>(*decision.spec);
  if (decision.kind == Kind::kEnqueue) {
    const qos::Request& request = *decision.request;
    event.class_id = request.class_id;
    event.op = request.op;
    event.bytes = request.bytes;
    event.lba = request.lba;
    event.elsewhere = request.elsewhere;
    event.transaction = request.transaction;
    event.flow = request.flow;
  }
  return event;
}

void EventKeeper::Note(const qos::Decision& decision) {
  if (full()) return;
  events_.push_back(maker_.Make(decision));
}

}  // namespace weir::osd
