#include "common/net/resolve.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>

namespace weir::net {
namespace {

bool IsAddress(const std::string& host) {
  in6_addr parsed;
  return host == "*" || host.find(':') != std::string::npos ||
         inet_pton(AF_INET, host.c_str(), &parsed) == 1;
}

std::string AddressOf(const addrinfo& found) {
  std::array<char, NI_MAXHOST> text{};
  const int error = getnameinfo(found.ai_addr, found.ai_addrlen, text.data(), text.size(), nullptr,
                                0, NI_NUMERICHOST);
  return error == 0 ? text.data() : "";
}

Status CannotResolve(const std::string& host, int error) {
  const bool later = error == EAI_AGAIN;
  return {later ? ErrorCode::kTimedOut : ErrorCode::kUnreachable,
          "host '" + host + "' has no address here: " + gai_strerror(error) +
              (later ? "" : " (name one that exists, or an address)")};
}

}  // namespace

bool HasHostName(const Endpoint& endpoint) {
  return endpoint.kind == Endpoint::Kind::kTcp && !IsAddress(endpoint.address);
}

Result<std::vector<Endpoint>> Resolve(const Endpoint& endpoint) {
  if (!HasHostName(endpoint)) return std::vector<Endpoint>{endpoint};
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(endpoint.address.c_str(), nullptr, &wanted, &list);
  if (error != 0) return CannotResolve(endpoint.address, error);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  std::vector<Endpoint> all;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const addrinfo* found = list; found != nullptr; found = found->ai_next) {
      if (found->ai_family != family) continue;
      const std::string address = AddressOf(*found);
      const bool known = std::any_of(all.begin(), all.end(),
                                     [&](const Endpoint& one) { return one.address == address; });
      if (!address.empty() && !known) all.push_back({endpoint.kind, address, endpoint.port});
    }
  }
  if (all.empty()) return CannotResolve(endpoint.address, EAI_NONAME);
  return all;
}

Result<bool> IsOfThisMachineOnly(const Endpoint& endpoint) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<Endpoint> all, Resolve(endpoint));
  return std::all_of(all.begin(), all.end(),
                     [](const Endpoint& one) { return IsLoopback(one.ToString()); });
}

std::string WhereItWasSought(const Endpoint& endpoint) {
  if (!HasHostName(endpoint)) return "";
  const Result<std::vector<Endpoint>> all = Resolve(endpoint);
  if (!all.ok()) return "";
  std::string addresses;
  for (const Endpoint& one : *all) addresses += (addresses.empty() ? "" : ", ") + one.address;
  const bool hidden = std::all_of(all->begin(), all->end(),
                                  [](const Endpoint& one) { return IsLoopback(one.ToString()); });
  return " ('" + endpoint.address + "' is " + addresses + " here" +
         (hidden ? ": whoever listens at another address of this machine must be named by that)"
                 : ")");
}

}  // namespace weir::net
