// What is shown of the builds of a cluster's programs. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/wire/map.pb.h"
#include "tools/osdctl/command.h"

namespace weir::osdctl {

struct Built {
  std::string who;    // "osd.3"
  wire::Build build;  // empty: from before programs said so
};

bool AreAlike(const std::vector<Built>& all);
std::string VersionTable(const std::vector<Built>& all);
Json VersionDocument(const std::vector<Built>& all);

// Of osdctl, the MDS, the OSDs that are up and answer, and the mounts.
Result<std::vector<Built>> AskBuilds(ClusterLink& link);

}  // namespace weir::osdctl
