#include "tools/osdctl/mds_load.h"

#include "common/base/units.h"
#include "tools/osdctl/stat_document.h"

namespace weir::osdctl {

uint64_t HeldBy(const wire::ClassLoadReply& load, uint32_t class_id) {
  for (const wire::ClassLoad& one : load.classes()) {
    if (one.class_id() == class_id) return one.held_bytes();
  }
  return 0;
}

Json LoadDocument(const wire::ClusterMap& map, const wire::ClassLoadReply& load,
                  std::optional<uint32_t> only) {
  Json classes = Json::array();
  for (const wire::ClassLoad& one : load.classes()) {
    if (only.has_value() && one.class_id() != *only) continue;
    classes.push_back({{"class", ClassName(map, one.class_id())},
                       {"id", one.class_id()},
                       {"operations", one.operations()},
                       {"queued", one.queued()},
                       {"delayed", one.delayed()},
                       {"limited", one.limited()},
                       {"held_bytes", one.held_bytes()}});
  }
  return {{"classes", classes}};
}

cli::Table LoadTable(const wire::ClusterMap& map, const wire::ClassLoadReply& load,
                     std::optional<uint32_t> only) {
  cli::Table table({"  CLASS", ">OPERATIONS", ">QUEUED", ">DELAYED", ">LIMITED", ">HELD"});
  for (const wire::ClassLoad& one : load.classes()) {
    if (only.has_value() && one.class_id() != *only) continue;
    table.AddRow({"  " + ClassName(map, one.class_id()), std::to_string(one.operations()),
                  std::to_string(one.queued()), std::to_string(one.delayed()),
                  std::to_string(one.limited()), FormatSize(one.held_bytes())});
  }
  return table;
}

}  // namespace weir::osdctl
