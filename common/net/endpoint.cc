#include "common/net/endpoint.h"

#include <arpa/inet.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>

namespace weir::net {
namespace {

Status Bad(std::string_view text, const std::string& why) {
  return {ErrorCode::kInvalid, "endpoint '" + std::string(text) + "': " + why +
                                   "; write tcp://HOST:PORT, ipc:///PATH or HOST[:PORT]"};
}

bool IsHostChar(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
         c == '-' || c == '_' || c == '*';
}

// Of a link-local one the interface may follow: fe80::1%eth0.
bool IsV6Address(std::string_view host) {
  const size_t percent = host.find('%');
  in6_addr parsed;
  if (inet_pton(AF_INET6, std::string(host.substr(0, percent)).c_str(), &parsed) != 1) return false;
  if (percent == std::string_view::npos) return true;
  const std::string_view interface = host.substr(percent + 1);
  return !interface.empty() && std::all_of(interface.begin(), interface.end(), IsHostChar);
}

Result<uint16_t> ParsePort(std::string_view text, std::string_view digits) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    return Bad(text, "'" + std::string(digits) + "' is no port from 0 to 65535");
  }
  return port;
}

Result<Endpoint> ParseTcp(std::string_view text, std::string_view rest, bool port_needed) {
  Endpoint endpoint{.kind = Endpoint::Kind::kTcp, .address = {}, .port = kDefaultMdsPort};
  std::string_view host, port;
  bool has_port = false;
  if (rest.starts_with('[')) {
    const size_t close = rest.find(']');
    if (close == std::string_view::npos) return Bad(text, "a '[' without its ']'");
    host = rest.substr(1, close - 1);
    if (!IsV6Address(host)) return Bad(text, "'" + std::string(host) + "' is no IPv6 address");
    rest.remove_prefix(close + 1);
    has_port = rest.starts_with(':');
    if (!has_port && !rest.empty()) return Bad(text, "something else than :PORT follows the ']'");
    if (has_port) port = rest.substr(1);
  } else {
    const size_t colon = rest.rfind(':');
    has_port = colon != std::string_view::npos;
    host = rest.substr(0, colon);
    if (has_port) port = rest.substr(colon + 1);
    if (host.empty()) return Bad(text, "no host");
    if (host.size() > 255 || !std::all_of(host.begin(), host.end(), IsHostChar)) {
      return Bad(text, "'" + std::string(host.substr(0, 64)) + "' is no host name or address");
    }
  }
  if (!has_port && port_needed) return Bad(text, "no port");
  if (has_port) {
    WEIR_ASSIGN_OR_RETURN(endpoint.port, ParsePort(text, port));
  }
  endpoint.address = host;
  return endpoint;
}

}  // namespace

std::string Endpoint::ToString() const {
  switch (kind) {
    case Kind::kIpc:
      return "ipc://" + address;
    case Kind::kInproc:
      return "inproc://" + address;
    case Kind::kTcp:
      break;
  }
  const bool v6 = address.find(':') != std::string::npos;
  return "tcp://" + (v6 ? "[" + address + "]" : address) + ":" + std::to_string(port);
}

Result<Endpoint> ParseEndpoint(std::string_view text) {
  const size_t scheme_end = text.find("://");
  if (scheme_end == std::string_view::npos) return ParseTcp(text, text, false);
  const std::string_view scheme = text.substr(0, scheme_end);
  const std::string_view rest = text.substr(scheme_end + 3);
  if (rest.find('\0') != std::string_view::npos) return Bad(text, "contains a NUL byte");
  if (scheme == "tcp") return ParseTcp(text, rest, true);
  if (scheme == "inproc") {
    if (rest.empty()) return Bad(text, "no name");
    return Endpoint{Endpoint::Kind::kInproc, std::string(rest), 0};
  }
  if (scheme != "ipc") return Bad(text, "unknown scheme '" + std::string(scheme) + "'");
  if (rest.empty()) return Bad(text, "no path");
  constexpr size_t kMaxPath = sizeof(sockaddr_un::sun_path) - 1;
  if (rest.size() > kMaxPath) {
    return Bad(text, "the path has " + std::to_string(rest.size()) +
                         " bytes, a socket's path at most " + std::to_string(kMaxPath));
  }
  return Endpoint{Endpoint::Kind::kIpc, std::string(rest), 0};
}

bool IsLoopback(std::string_view text) {
  const auto endpoint = ParseEndpoint(text);
  if (!endpoint.ok()) return false;
  if (endpoint->kind != Endpoint::Kind::kTcp) return true;
  const std::string& host = endpoint->address;
  in_addr v4;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6;
  if (inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return host == "localhost";
}

}  // namespace weir::net
