// HttpServer: answers GET and HEAD from a fixed table of paths; nothing can be sent to it, no file
// is ever opened for it. civetweb underneath.
//
// It has a few threads of its own and nobody else's: clients that say nothing, or read slowly, are
// cut off after `patience`, hold up at most other clients of this server, and beyond a short queue
// new ones wait in the kernel.
//
// Threads: Start and the destructor from one; handlers run on the server's, several at a time.
// Errors:  Start: kBusy or what the system says of the address, with the address in it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/base/time.h"

namespace weir::monitor {

// An address to serve at, as typed: ADDR:PORT, canonical afterwards ("127.0.0.1:9100",
// "[::1]:9100"). kInvalid for what is no IP address (or localhost) with a port, and for one that
// other machines reach unless `insecure`. `option` is the name of the option, for the message.
Result<std::string> ParseHttpAddress(const std::string& option, const std::string& text,
                                     bool insecure);

struct HttpReply {
  int status = 200;
  std::string content_type;
  std::string body;
};

class HttpServer {
 public:
  // `query` is what follows the '?', as sent.
  using Handler = std::function<HttpReply(std::string_view query)>;
  struct Options {
    std::string address;  // canonical; port 0: any free one
    uint32_t threads = 3;
    Duration patience = std::chrono::seconds(5);
  };
  static Result<std::unique_ptr<HttpServer>> Start(const Options& options,
                                                   std::map<std::string, Handler> routes);
  ~HttpServer();  // answers what is being answered
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] const std::string& address() const;  // as bound

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::monitor
