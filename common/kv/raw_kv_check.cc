#include "common/kv/raw_kv_check.h"

namespace weir {
namespace {

// Damage is for the report; an error of the device ends the check.
Status Note(const Status& status, const char* kind, Findings* findings) {
  if (status.code() != ErrorCode::kCorrupt) return status;
  findings->Add(kind, status.message());
  return {};
}

}  // namespace

Result<std::unique_ptr<RawKvStore>> OpenForCheck(BlockDevice& device, Region region, bool deep,
                                                 Findings* findings) {
  std::unique_ptr<RawKvStore> none;
  {
    const auto volume = RawVolume::Mount(device, region);
    if (!volume.ok()) {
      WEIR_RETURN_IF_ERROR(Note(volume.status(), "volume", findings));
      return none;
    }
    for (std::string& problem : (*volume)->SpaceProblems()) {
      findings->Add("volume", std::move(problem));
    }
  }
  auto store = OpenRawKvStore(device, region, {.compact = false});
  if (!store.ok()) {
    WEIR_RETURN_IF_ERROR(Note(store.status(), "tables", findings));
    return none;
  }
  if (deep) WEIR_RETURN_IF_ERROR(Note((*store)->VerifyTables(), "tables", findings));
  return *std::move(store);
}

}  // namespace weir
