// What --version says.
#pragma once

#include <string>
#include <string_view>

namespace weir::cli {

// What a build is told apart by.
struct Version {
  std::string_view number;    // of the release
  std::string_view commit;    // "+changes" behind it: of a tree that was changed since
  uint32_t wire;              // common/wire/PROTOCOL.md
  uint32_t osd_disk;          // osd/format/DISK_FORMAT.md
  uint32_t raw_disk;          // RocksDB's files on a raw disk: common/disk/raw_format.h
  uint32_t namespace_values;  // mds/format/NAMESPACE_FORMAT.md
};
Version ThisVersion();
// What this process says to others that it is (common/wire/build.h). Before threads.
void SetThisBuild();
// Lines for people.
std::string VersionText(std::string_view program);

}  // namespace weir::cli
