// Cscan: the elevator of ODIS (AQuA §5.2; RULES.md §4.2) as a dispatch order of its own.
//
// The window holds 2 D requests (A12), or everything that waits when nothing sorts before it
// (profile `cscan`).
#pragma once

#include "osd/qos/dispatch/dispatch.h"
#include "osd/qos/dispatch/elevator.h"

namespace weir::osd::qos {

class Cscan final : public Dispatch {
 public:
  [[nodiscard]] size_t Capacity(uint32_t depth) const override { return 2 * size_t{depth}; }

 private:
  void DoAdd(Request* request) override { elevator_.Add(request); }
  void DoRemove(Request* request) override { elevator_.Remove(*request); }
  Request* DoPeek(const DispatchMoment& /*moment*/) override {
    Request* next = elevator_.First(entered().front());
    elevator_.Served(*next);
    return next;
  }

  Elevator elevator_;
};

}  // namespace weir::osd::qos
