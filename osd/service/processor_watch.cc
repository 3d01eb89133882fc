#include "osd/service/processor_watch.h"

#include <memory>
#include <utility>

#include "common/base/processor_stalls.h"

namespace weir::osd {

Dispatcher::Processors WatchThisMachine() {
  std::optional<ProcessorStalls> stalls = ProcessorStalls::Open();
  if (!stalls) return nullptr;
  return
      [stalls = std::make_shared<ProcessorStalls>(std::move(*stalls))] { return stalls->Total(); };
}

}  // namespace weir::osd
