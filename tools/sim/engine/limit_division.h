// LimitDivision: divides limits over several OSDs among coordinators as mounts and MDS do
// (common/qos/limit_share.h, limit_divider.h): each reports ten times a second while it uses such a
// class, and hears of its part a round trip later. The divider has run for long: it knows all.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "common/qos/limit_divider.h"
#include "common/qos/limit_share.h"
#include "tools/sim/engine/event_queue.h"

namespace weir::sim {

class LimitDivision {
 public:
  struct Hooks {
    // Of all classes with such a limit.
    std::function<std::map<ClassId, LimitShare::Counts>(size_t coordinator)> counts;
    // Its parts may be others than before.
    std::function<void(size_t coordinator)> obey;
  };
  LimitDivision(EventQueue* events, Hooks hooks);

  void SetLimits(const std::map<ClassId, uint64_t>& limits) { divider_.SetLimits(limits); }
  // Something waits there for such a limit.
  void Wanted(size_t coordinator);
  [[nodiscard]] double PartOf(size_t coordinator, ClassId id) const;

 private:
  struct Mount {
    LimitShare share{0};
    bool reports = false;
    bool asks = false;  // and is not answered yet
  };
  void Poll(size_t coordinator);
  bool Tell(size_t coordinator);  // whether more is to be told later
  void Heard(size_t coordinator, uint64_t number, const std::vector<LimitPart>& parts);

  EventQueue* events_;
  const Hooks hooks_;
  LimitDivider divider_;
  std::map<size_t, Mount> mounts_;
};

}  // namespace weir::sim
