// Fifo: the disk sees requests as the stages release them. No window (Wd = 0): a decision is made
// only when the device has a free slot, so the policy's order is the disk's order.
#pragma once

#include "osd/qos/dispatch/dispatch.h"

namespace weir::osd::qos {

class Fifo final : public Dispatch {
 public:
  [[nodiscard]] size_t Capacity(uint32_t /*depth*/) const override { return 0; }

 private:
  void DoAdd(Request* /*request*/) override {}
  void DoRemove(Request* /*request*/) override {}
  Request* DoPeek(const DispatchMoment& /*moment*/) override { return entered().front(); }
};

}  // namespace weir::osd::qos
