#include "mds/service/fsck_mds.h"

#include "common/disk/scratch_device.h"
#include "common/kv/raw_kv_check.h"
#include "mds/check/namespace_check.h"
#include "mds/service/mds_store.h"

namespace weir::mds {

Result<CheckReport> FsckMds(const std::string& directory, const FsckOptions& options) {
  const std::string path = MdsImagePath(directory);
  WEIR_ASSIGN_OR_RETURN(const auto device, OpenDevice(path, {.read_only = !options.repair}));
  ScratchDevice scratch(*device);
  BlockDevice& target = options.repair ? *device : scratch;
  CheckReport report;
  report.subject = path;
  WEIR_ASSIGN_OR_RETURN(const auto kv,
                        OpenForCheck(target, {0, device->size()}, options.deep, &report.findings));
  if (kv == nullptr) return report;
  const Status checked = CheckNamespace(*kv, {.repair = options.repair}, &report);
  if (checked.code() == ErrorCode::kCorrupt) {
    report.findings.Add("tables", checked.message());
  } else {
    WEIR_RETURN_IF_ERROR(checked);
  }
  return report;
}

}  // namespace weir::mds
