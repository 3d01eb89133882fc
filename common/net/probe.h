// Whether anybody listens at an endpoint, told by one connection that nothing is sent over.
#pragma once

#include "common/base/time.h"
#include "common/net/endpoint.h"

namespace weir::net {

// True for a host that does not say no within `patience`, and for what cannot be asked. May wait
// for DNS.
bool MayListen(const Endpoint& endpoint, Duration patience);

}  // namespace weir::net
