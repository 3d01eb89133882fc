// What `osdctl why` says, from a verdict of common/qos/blame.h; pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/qos/blame.h"
#include "common/wire/map.pb.h"
#include "tools/osdctl/command.h"
#include "tools/osdctl/flow_document.h"

namespace weir::osdctl {

struct WhyAnswer {
  std::string path;    // that was asked about; empty: a class was
  std::string reason;  // why the path has that class: "gold (from /db)"
  const wire::ClassInfo* info = nullptr;
  std::string neighbour;  // name of the verdict's
  Verdict verdict;
  std::vector<MountLately> mounts;  // that used the class
  // Whom it waits for among its own: where it is held up, and by no neighbour, and not one flow is
  // all that it has.
  std::optional<wire::FlowsOfClass> flows;
  MountNames names;
  // Operations on names at the MDS, of all classes.
  std::vector<ClassFlows> at_mds;
  std::string names_missing;  // why the MDS did not tell; empty: it did
  // Of a class with a latency bound: how each OSD keeps it.
  StatsByOsd osds;
};
// Whether flows say more: the class is held up by what it asks for itself.
bool WaitsForItsOwn(const Verdict& verdict);
// Whether operations on names are what waits: more than requests for data do.
bool WaitsForNames(const WhyAnswer& answer);

// Null: it is not known.
Json PathJson(int path);

Json WhyDocument(const WhyAnswer& answer);
std::string WhyScreen(const WhyAnswer& answer);
// The way out: what to type, or what else helps.
std::string Advice(const WhyAnswer& answer);

}  // namespace weir::osdctl
