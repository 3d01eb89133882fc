// osdctl version: what the daemons and mounts of a cluster were built from.

#include <fmt/format.h>

#include <cstdio>

#include "common/wire/build.h"
#include "common/wire/mds.pb.h"
#include "common/wire/osd.pb.h"
#include "tools/osdctl/command.h"
#include "tools/osdctl/version_document.h"

namespace weir::osdctl {

Result<std::vector<Built>> AskBuilds(ClusterLink& link) {
  wire::StatusReply status;
  WEIR_RETURN_IF_ERROR(link.Call(wire::MDS_STATUS, wire::Empty(), &status));
  std::vector<Built> all = {{"osdctl", wire::ThisBuild()}, {"mds", status.build()}};
  std::vector<wire::OsdInfo> up;
  for (const auto& osd : status.map().osds()) {
    if (osd.up()) up.push_back(osd);
  }
  const auto answers = link.Stats(up, false);
  for (size_t i = 0; i < up.size(); ++i) {
    if (answers[i].ok()) all.push_back({fmt::format("osd.{}", up[i].id()), answers[i]->build()});
  }
  for (const auto& mount : status.mounts()) {
    all.push_back({"mount " + mount.client_name(), mount.build()});
  }
  return all;
}

namespace {

Result<ExitCode> RunVersion(Globals& globals) {
  WEIR_ASSIGN_OR_RETURN(ClusterLink * link, globals.Link());
  WEIR_ASSIGN_OR_RETURN(const std::vector<Built> all, AskBuilds(*link));
  if (globals.json()) {
    PrintJson(VersionDocument(all));
  } else {
    fmt::print("{}", VersionTable(all));
  }
  if (!AreAlike(all)) {
    std::fputs("osdctl: warning: not all run the same build; upgrade those that are behind\n",
               stderr);
  }
  return ExitCode::kDone;
}

}  // namespace

void AddVersion(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("version", "what the daemons and mounts were built from");
  verb->footer(
      "Warns where they differ. OSDs that are down are not shown.\n"
      "Example: osdctl version");
  verb->callback([&globals] { globals.action = RunVersion; });
}

}  // namespace weir::osdctl
