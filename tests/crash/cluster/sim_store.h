// The object store of a simulated OSD, worked by hand.
// Threads: one.
#pragma once

#include <functional>
#include <memory>

#include "common/base/result.h"

namespace weir {
class BlockDevice;
class RawKvStore;
}  // namespace weir
namespace weir::osd {
class ExtentStore;
class ObjectStore;
}  // namespace weir::osd

namespace weir::crash {

class SimStore {
 public:
  // Recovers what the disk holds. `wake`: Work soon.
  static Result<std::unique_ptr<SimStore>> Open(BlockDevice& device, std::unique_ptr<RawKvStore> kv,
                                                std::function<void()> wake);
  ~SimStore();

  [[nodiscard]] osd::ObjectStore& objects();
  // As in osd/store/extent_store.h.
  bool Work();
  bool MoveOverlays();

 private:
  SimStore();
  std::unique_ptr<osd::ExtentStore> store_;
};

}  // namespace weir::crash
