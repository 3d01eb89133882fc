// What the host of an endpoint stands for, as this machine knows it (/etc/hosts, DNS). May wait for
// DNS. Any thread.
#pragma once

#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/net/endpoint.h"

namespace weir::net {

// Whether the host is a name, rather than an address or `*`.
bool HasHostName(const Endpoint& endpoint);

// The same endpoint with each address of its host, IPv4 first: never empty. One without a host name
// is itself. kUnreachable: there is no such host; kTimedOut: nobody can be asked at the moment.
Result<std::vector<Endpoint>> Resolve(const Endpoint& endpoint);

// Whether only this machine reaches whoever listens there: each address is IsLoopback.
Result<bool> IsOfThisMachineOnly(const Endpoint& endpoint);

// For an error, behind the endpoint that nobody answered at: what its host stands for here, and the
// way out where only this machine reaches that, as where a host finds its own name in /etc/hosts.
// Empty for an address.
std::string WhereItWasSought(const Endpoint& endpoint);

}  // namespace weir::net
