#include "common/placement/object_audit.h"

#include <fmt/format.h>

namespace weir {

void ObjectAudit::Saw(OsdId osd, ObjectId id, uint64_t size,
                      const std::optional<AuditedFile>& file) {
  ++objects_;
  bytes_ += size;
  const std::string name =
      fmt::format("object {}.{} of {} bytes at osd.{}", id.inode.value, id.index, size, osd.value);
  if (!file.has_value()) {
    findings_.Add("leak", name + " belongs to no inode");
    return;
  }
  if (file->purging) {
    ++purging_;
    return;
  }
  const Chain* chain = map_.ChainOf(file->layout.pool, id);
  if (chain == nullptr || !chain->Has(osd))
    findings_.Add("misplaced", name + " lies where the map does not look for it");
  if (size > file->layout.object_size) {
    findings_.Add("overlong", fmt::format("{}, of which its file has {} at most", name,
                                          file->layout.object_size));
  }
  if (size > 0 && ObjectSizeAt(file->layout, id.index, file->size) == 0) ++behind_end_;
}

CheckReport ObjectAudit::Report() const {
  CheckReport report;
  report.subject = "objects of cluster " + map_.cluster_uuid;
  report.facts = {{"objects", objects_},
                  {"bytes", bytes_},
                  {"purging_objects", purging_},
                  {"behind_end_objects", behind_end_}};
  report.findings = findings_;
  return report;
}

}  // namespace weir
