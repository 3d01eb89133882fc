// What each class asks of the metadata server, for osdctl stat. Pure.
#pragma once

#include <optional>

#include "common/wire/mds.pb.h"
#include "tools/cli/table.h"
#include "tools/osdctl/command.h"

namespace weir::osdctl {

// What the files of a class hold.
uint64_t HeldBy(const wire::ClassLoadReply& load, uint32_t class_id);

// Of all classes, or of one.
Json LoadDocument(const wire::ClusterMap& map, const wire::ClassLoadReply& load,
                  std::optional<uint32_t> only);
cli::Table LoadTable(const wire::ClusterMap& map, const wire::ClassLoadReply& load,
                     std::optional<uint32_t> only);

}  // namespace weir::osdctl
