// What a RawVolume that was just mounted says about its own space.
#include "common/disk/raw_volume.h"

namespace weir {

std::vector<std::string> RawVolume::SpaceProblems() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> problems;
  std::map<uint32_t, const RawFile*> owners;
  for (const auto& [name, file] : files_) {
    uint64_t room = 0;
    for (const RawExtent& extent : file->extents) {
      room += extent.count * super_.unit_bytes;
      for (uint32_t i = 0; i < extent.count; ++i) {
        const auto [owner, first] = owners.emplace(extent.unit + i, file.get());
        if (first) continue;
        problems.push_back("unit " + std::to_string(extent.unit + i) + " belongs to " +
                           owner->second->name + " and to " + name);
      }
    }
    if (!file->framed && file->size > room) {
      problems.push_back(name + " has " + std::to_string(file->size) + " bytes and space for " +
                         std::to_string(room));
    }
  }
  if (problems.empty() && free_units_ != units_.size() - owners.size()) {
    problems.push_back(std::to_string(free_units_) + " units are taken for free, " +
                       std::to_string(units_.size() - owners.size()) + " are");
  }
  return problems;
}

}  // namespace weir
