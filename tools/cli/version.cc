#include "tools/cli/version.h"

#include <fmt/format.h>

#include "common/disk/raw_format.h"
#include "common/net/envelope.h"
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

std::string VersionText(std::string_view program) {
  const Version version = ThisVersion();
  return fmt::format(
      "{} {} (commit {})\n"
      "wire protocol {}; disk formats: OSD {}, raw volume {}, namespace {}",
      program, version.number, version.commit, version.wire, version.osd_disk, version.raw_disk,
      version.namespace_values);
}

}  // namespace weir::cli
