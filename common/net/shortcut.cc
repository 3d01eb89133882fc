#include "common/net/shortcut.h"

#include <unistd.h>

#include <string_view>

#include "common/net/abstract_socket.h"

namespace weir::net {
namespace {

constexpr std::string_view kIpc = "ipc://";
constexpr std::string_view kEverywhere[] = {"127.0.0.1", "localhost", "0.0.0.0", "*", "::"};

std::optional<std::string> NameOf(const Endpoint& endpoint) {
  if (endpoint.kind != Endpoint::Kind::kTcp || endpoint.port == 0) return std::nullopt;
  for (const std::string_view host : kEverywhere) {
    if (endpoint.address == host) return "@weirfs-127.0.0.1-" + std::to_string(endpoint.port);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> ShortcutOf(const Endpoint& endpoint) {
  const auto name = NameOf(endpoint);
  if (!name.has_value()) return std::nullopt;
  return std::string(kIpc) + *name;
}

std::string ShortestWayTo(const Endpoint& endpoint) {
  const auto name = NameOf(endpoint);
  if (!name.has_value()) return endpoint.ToString();
  const Result<int> socket = DialOurs(*name);
  if (!socket.ok()) return endpoint.ToString();
  close(*socket);
  return std::string(kIpc) + *name;
}

std::optional<std::string> PromptNameOf(const Endpoint& endpoint) {
  const auto name = NameOf(endpoint);
  if (!name.has_value()) return std::nullopt;
  return *name + "-prompt";
}

}  // namespace weir::net
