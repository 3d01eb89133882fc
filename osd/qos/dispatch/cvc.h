// Cvc: the dual queue of Stonehenge (§4.1; RULES.md §4.2). Every waiting request stands in two
// orders: by finish time (FinishOrder), and as C-SCAN would serve it (Elevator). C-SCAN's choice u
// goes as long as that endangers nobody's finish time,
//
//   now + (requests on the disk) * mean + est <= LST_1                                       (5)
//
// else the request h that must finish first. est is what one service takes nine times out of ten.
// Requests without a deadline stand in C-SCAN's order only.
//   run_max     M_run: so many picks of u in a row, then h (A15)
//   candidates  M_cand: when u does not fit in (5), the next ones of C-SCAN with their own estimate
//   late_mode   A17: once FT(h) has passed, (5) would always fail and the disk, served in finish
//               order, would get slower and never catch up. Then C-SCAN's choice among those with
//               a deadline goes: h is lost anyway. Not among all, or best effort would take part
//               in serving classes that are late already, and they would stay late.
// As order `vc` h goes always; requests without a deadline then go by arrival.
// Example, with that of finish_order.h and est = 13.1: at t = 18 u goes (31.1 <= 32), at t = 19 h.
//
// Threads: the scheduler's owner.
#pragma once

#include "common/qos/cvc_config.h"
#include "osd/qos/device/service_time.h"
#include "osd/qos/dispatch/dispatch.h"
#include "osd/qos/dispatch/elevator.h"
#include "osd/qos/dispatch/finish_order.h"

namespace weir::osd::qos {

class Cvc final : public Dispatch {
 public:
  // `service_time` must outlive this.
  Cvc(const CvcConfig& config, bool finish_order_only, const ServiceTime* service_time)
      : config_(config),
        finish_order_only_(finish_order_only),
        service_time_(service_time),
        by_finish_(ShortestService()) {}

  // Not more: what is decided ahead leaves its class's queue. A class with fewer requests under way
  // than two depths would have nothing queued any more, and its share would go to whoever has.
  [[nodiscard]] size_t Capacity(uint32_t depth) const override { return depth; }
  [[nodiscard]] Request* Urgent() const override;

 private:
  // s of eq. (4): 1/IOPSmax, as configured or as measured.
  [[nodiscard]] Duration ShortestService() const;
  [[nodiscard]] Duration Estimate(const Request& request) const;
  // (5) for one candidate.
  [[nodiscard]] bool Fits(const Request& request, const DispatchMoment& moment);
  [[nodiscard]] bool InFinishOrder(const Request& request) const;
  [[nodiscard]] Request* Choose(const DispatchMoment& moment);

  void DoAdd(Request* request) override;
  void DoRemove(Request* request) override;
  Request* DoPeek(const DispatchMoment& moment) override;

  const CvcConfig config_;
  const bool finish_order_only_;
  const ServiceTime* const service_time_;
  Elevator elevator_;  // promised is there who has a deadline
  FinishOrder by_finish_;
  uint32_t run_ = 0;  // picks off the finish order in a row
};

}  // namespace weir::osd::qos
