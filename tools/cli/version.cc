#include "tools/cli/version.h"

#include <fmt/format.h>

#include "common/disk/raw_format.h"
#include "common/net/envelope.h"
#include "common/wire/build.h"
#include "mds/format/ns_values_format.h"
#include "osd/format/superblock_format.h"
#include "tools/cli/commit.h"

namespace weir::cli {

Version ThisVersion() {
  return {.number = WEIR_VERSION,
          .commit = WEIR_COMMIT,
          .wire = net::kProtocolVersion,
          .osd_disk = osd::kFormatVersion,
          .raw_disk = raw::kVersion,
          .namespace_values = mds::kValueVersion};
}

namespace {
std::string DiskFormats(const Version& version) {
  return fmt::format("OSD {}, raw volume {}, namespace {}", version.osd_disk, version.raw_disk,
                     version.namespace_values);
}
}  // namespace

void SetThisBuild() {
  const Version version = ThisVersion();
  wire::Build& build = wire::MutableThisBuild();
  build.set_version(std::string(version.number));
  build.set_commit(std::string(version.commit));
  build.set_wire(version.wire);
  build.set_disk_formats(DiskFormats(version));
}

std::string VersionText(std::string_view program) {
  const Version version = ThisVersion();
  return fmt::format("{} {} (commit {})\nwire protocol {}; disk formats: {}", program,
                     version.number, version.commit, version.wire, DiskFormats(version));
}

}  // namespace weir::cli
