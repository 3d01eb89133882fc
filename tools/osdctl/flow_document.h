// Who of a class used the disks, and the MDS, lately, as `osdctl top --flows` and `why` say it;
// pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/wire/mds.pb.h"
#include "common/wire/osd.pb.h"
#include "tools/osdctl/command.h"
#include "tools/osdctl/stat_document.h"

namespace weir::osdctl {

// The flows of one class over all OSDs, or at the MDS.
struct ClassFlows {
  std::string name;
  uint32_t id = 0;
  std::string kind;  // "user"
  wire::FlowsOfClass flows;
};

using MountNames = std::map<uint64_t, std::string>;  // by session
MountNames MountNamesOf(const wire::StatusReply& status);

// Of every class that had requests, the busiest first, or of `only` alone, if it had any.
std::vector<ClassFlows> FlowsOf(const wire::ClusterMap& map, const StatsByOsd& stats,
                                const std::optional<uint32_t>& only);

Json FlowsDocument(const ClassFlows& one, const MountNames& mounts);
std::string FlowsScreen(const std::vector<ClassFlows>& all, const MountNames& mounts);

// The user with the most device time; the opener, where there is one user only. Null: there is
// nobody beside it.
const wire::FlowStats* Heaviest(const wire::FlowsOfClass& flows);
Json FlowDocument(const wire::FlowStats& flow, const wire::FlowsOfClass& flows,
                  const MountNames& mounts);
// "uid 1001 on web-3 takes 93 % of its device time"
std::string HeaviestText(const wire::FlowStats& flow, const wire::FlowsOfClass& flows,
                         const MountNames& mounts);

// The same of operations on names at the MDS.
std::vector<ClassFlows> NameFlowsOf(const wire::ClusterMap& map, const wire::ClassLoadReply& load,
                                    const std::optional<uint32_t>& only);
Json NameFlowsDocument(const ClassFlows& one, const MountNames& mounts);
// `missing`: why the MDS did not tell; empty: it did.
std::string NameFlowsScreen(const std::vector<ClassFlows>& all, const MountNames& mounts,
                            const std::string& missing);
Json NameFlowDocument(const wire::FlowStats& flow, const wire::FlowsOfClass& flows,
                      const MountNames& mounts);
// "uid 1001 on web-3 has 93 % of the operations on names of gold, 14 of 15 that wait"
std::string NameHolderText(const wire::FlowStats& flow, const ClassFlows& of,
                           const MountNames& mounts);
// Of those that began lately or wait, how long one waits.
uint64_t MeanWaitUs(uint64_t waited_us, uint64_t requests, uint64_t waiting);

}  // namespace weir::osdctl
