// What the MDS tells of operations on names, or why it does not: `top --flows` and `why` show the
// OSDs' part without.
#pragma once

#include <string>

#include "common/wire/mds.pb.h"
#include "tools/osdctl/command.h"

namespace weir::osdctl {

struct NameLoad {
  wire::ClassLoadReply load;
  std::string missing;  // why it is not known; empty: it is
};
// Gives up after ClusterLink::kContactTimeout.
NameLoad AskNameLoad(ClusterLink& link);
// `called`: how the call went. Pure.
NameLoad NameLoadOf(const Status& called, wire::ClassLoadReply load);

}  // namespace weir::osdctl
