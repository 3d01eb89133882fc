#include "common/monitor/http_server.h"

#include <civetweb.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <mutex>
#include <utility>
#include <vector>

#include "common/net/resolve.h"

namespace weir::monitor {
namespace {

constexpr unsigned kIpv6 = 8;  // of civetweb's features
constexpr auto kKnockInterval = std::chrono::milliseconds(5);

// The page may talk to where it came from, and to nobody else.
constexpr const char* kSafeHeaders =
    "Cache-Control: no-store\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'\r\n"
    "Connection: close\r\n";

std::string Join(const std::string& host, int port) {
  const bool v6 = host.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

// A connection that says nothing.
void Knock(const std::string& address) {
  const size_t colon = address.rfind(':');
  const bool v6 = address.front() == '[';
  const std::string host = v6 ? address.substr(1, colon - 2) : address.substr(0, colon);
  addrinfo wanted{};
  wanted.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), address.c_str() + colon + 1, &wanted, &found) != 0) return;
  const int fd = ::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd >= 0) {
    (void)::connect(fd, found->ai_addr, found->ai_addrlen);
    ::close(fd);
  }
  freeaddrinfo(found);
}

const char* ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    default:
      return "Service Unavailable";
  }
}

}  // namespace

Result<std::string> ParseHttpAddress(const std::string& option, const std::string& text,
                                     bool insecure) {
  const auto endpoint = net::ParseEndpoint("tcp://" + text);
  if (!endpoint.ok() || endpoint->address == "*") {
    return {ErrorCode::kInvalid,
            fmt::format("{} {}: write ADDR:PORT with an address of this machine, as 127.0.0.1:9100",
                        option, text)};
  }
  const auto resolved = net::Resolve(*endpoint);
  if (!resolved.ok()) {
    return {ErrorCode::kInvalid,
            fmt::format("{} {}: {}", option, text, resolved.status().message())};
  }
  const std::string host = resolved->front().address;
  if (!insecure && !net::IsLoopback(resolved->front().ToString())) {
    return {ErrorCode::kInvalid,
            fmt::format("{} {}: will not serve there: it is reachable from other machines and "
                        "readers have no keys (use 127.0.0.1, or --insecure on a trusted network)",
                        option, text)};
  }
  if (host.find(':') != std::string::npos && mg_check_feature(kIpv6) == 0) {
    return {
        ErrorCode::kInvalid,
        fmt::format("{} {}: the HTTP library of this build (civetweb) knows no IPv6: use an IPv4 "
                    "address, as 127.0.0.1:9100",
                    option, text)};
  }
  return Join(host, endpoint->port);
}

struct HttpServer::Impl {
  std::map<std::string, Handler> routes;
  std::string address;
  mg_context* context = nullptr;
  std::mutex mutex;
  std::string complaint;  // the first of civetweb: the others follow from it

  HttpReply ReplyTo(const mg_request_info& request) const {
    const std::string_view method = request.request_method;
    if (method != "GET" && method != "HEAD") {
      return {405, "text/plain", "this server is only read from: GET or HEAD\n"};
    }
    const auto route = routes.find(request.local_uri == nullptr ? "" : request.local_uri);
    if (route == routes.end()) {
      std::string known;
      for (const auto& [path, handler] : routes) known += " " + path;
      return {404, "text/plain", "not here; there is" + known + "\n"};
    }
    return route->second(request.query_string == nullptr ? "" : request.query_string);
  }

  static int Answer(mg_connection* connection) {
    const mg_request_info& request = *mg_get_request_info(connection);
    const auto* self = static_cast<const Impl*>(request.user_data);
    const HttpReply reply = self->ReplyTo(request);
    const std::string head =
        fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}{}\r\n",
                    reply.status, ReasonOf(reply.status), reply.content_type, reply.body.size(),
                    reply.status == 405 ? "Allow: GET, HEAD\r\n" : "", kSafeHeaders);
    const bool with_body = std::string_view(request.request_method) != "HEAD";
    const std::string all = with_body ? head + reply.body : head;
    mg_write(connection, all.data(), all.size());
    return reply.status;
  }

  // Nobody reads civetweb's own log; what it says of an address is ours to tell.
  static int Complain(const mg_connection* connection, const char* message) {
    auto* self = static_cast<Impl*>(mg_get_user_data(mg_get_context(connection)));
    if (self != nullptr) {
      const std::lock_guard lock(self->mutex);
      if (self->complaint.empty()) self->complaint = message;
    }
    return 1;
  }

  Status Listen(const Options& options) {
    const std::string threads = std::to_string(options.threads);
    const std::string patience = std::to_string(
        std::chrono::duration_cast<std::chrono::milliseconds>(options.patience).count());
    const std::string queue = std::to_string(4 * options.threads);
    std::vector<const char*> settings = {"listening_ports",
                                         options.address.c_str(),
                                         "num_threads",
                                         threads.c_str(),
                                         "request_timeout_ms",
                                         patience.c_str(),
                                         "connection_queue",
                                         queue.c_str(),
                                         "enable_keep_alive",
                                         "no",
                                         "enable_directory_listing",
                                         "no",
                                         "decode_url",
                                         "yes",
                                         nullptr};
    mg_callbacks callbacks{};
    callbacks.begin_request = Answer;
    callbacks.log_message = Complain;
    mg_init_data init{&callbacks, this, settings.data()};
    char text[256] = "";
    mg_error_data error{0, text, sizeof text};
    context = mg_start2(&init, &error);
    if (context != nullptr) return Status::Ok();
    const std::lock_guard lock(mutex);
    const std::string why = complaint.empty() ? std::string(text) : complaint;
    return {ErrorCode::kBusy,
            fmt::format("cannot serve HTTP at {}: {} (choose another port)", options.address, why)};
  }
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<HttpServer>> HttpServer::Start(const Options& options,
                                                      std::map<std::string, Handler> routes) {
  static std::once_flag initialised;
  std::call_once(initialised, [] { mg_init_library(0); });
  auto impl = std::make_unique<Impl>();
  impl->routes = std::move(routes);
  WEIR_RETURN_IF_ERROR(impl->Listen(options));
  mg_server_port port{};
  mg_get_server_ports(impl->context, 1, &port);
  impl->address =
      options.address.substr(0, options.address.rfind(':') + 1) + std::to_string(port.port);
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

// civetweb's listening thread looks up every two seconds only, or when somebody connects.
HttpServer::~HttpServer() {
  const auto stopped = std::async(std::launch::async, [this] { mg_stop(impl_->context); });
  while (stopped.wait_for(kKnockInterval) != std::future_status::ready) Knock(impl_->address);
}

const std::string& HttpServer::address() const {
  return impl_->address;
}

}  // namespace weir::monitor
