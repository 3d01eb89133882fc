#include "client/qos/affinity.h"

#include <set>

namespace weir::client {

std::optional<std::string> AffinityAnomaly(ClassId class_id,
                                           const std::vector<const DelayTracker*>& coordinators) {
  std::set<OsdId> all;
  for (const DelayTracker* tracker : coordinators) {
    for (OsdId osd : tracker->OsdsOf(class_id)) all.insert(osd);
  }
  if (all.size() < 2) return std::nullopt;
  for (size_t i = 0; i < coordinators.size(); ++i) {
    const std::vector<OsdId> used = coordinators[i]->OsdsOf(class_id);
    if (used.size() != 1) continue;
    return "class " + std::to_string(class_id.value) + ": coordinator " + std::to_string(i) +
           " uses only osd." + std::to_string(used.front().value) + " of the " +
           std::to_string(all.size()) +
           " OSDs that the class uses, so its total is not shared; let every mount use all of them";
  }
  return std::nullopt;
}

}  // namespace weir::client
