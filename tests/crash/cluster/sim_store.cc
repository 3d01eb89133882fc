#include "tests/crash/cluster/sim_store.h"

#include <utility>

#include "osd/store/extent_store.h"

namespace weir::crash {
namespace {
constexpr uint64_t kFirstByte = 1 << 20;  // place 0 is no place
}  // namespace

SimStore::SimStore() = default;
SimStore::~SimStore() = default;

Result<std::unique_ptr<SimStore>> SimStore::Open(BlockDevice& device,
                                                 std::unique_ptr<RawKvStore> kv,
                                                 std::function<void()> wake) {
  osd::StoreOptions options;
  options.memory_bytes = 1 << 20;
  options.deferred_apply_bytes = 64 << 10;
  options.wake = std::move(wake);
  std::unique_ptr<SimStore> opened(new SimStore);
  opened->store_ = std::make_unique<osd::ExtentStore>(
      device, std::move(kv), Region{kFirstByte, device.size() - kFirstByte}, options);
  WEIR_RETURN_IF_ERROR(opened->store_->Recover());
  return opened;
}

osd::ObjectStore& SimStore::objects() {
  return *store_;
}

bool SimStore::Work() {
  return store_->Work();
}

bool SimStore::MoveOverlays() {
  return store_->MoveOverlays();
}

}  // namespace weir::crash
