#include "tools/osdctl/name_load.h"

#include <utility>

#include "common/placement/flow_totals.h"

namespace weir::osdctl {

NameLoad NameLoadOf(const Status& called, wire::ClassLoadReply load) {
  const Status status = called.ok() ? CheckFlowsAreTold(load) : called;
  if (!status.ok()) return {{}, status.message()};
  return {std::move(load), ""};
}

NameLoad AskNameLoad(ClusterLink& link) {
  wire::ClassLoadRequest request;
  request.set_flows(true);
  wire::ClassLoadReply load;
  const Status called =
      link.Call(wire::MDS_CLASS_LOAD, request, &load, ClusterLink::kContactTimeout);
  return NameLoadOf(called, std::move(load));
}

}  // namespace weir::osdctl
