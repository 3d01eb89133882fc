// RPC: requests with a deadline, retried safely, over any Transport.
//
// Every request carries (session, request id). A server remembers the ids it has seen per session
// and answers a repeated one with the first answer, so that a retry after a lost connection never
// applies twice. Memory of that dies with the process: a service whose operations must not repeat
// across its own restart keeps the answers with its data (the MDS does; see
// IncomingCall::acked_below). Heartbeats: a client pings a server that owes it an answer; one that
// misses the peer timeout is dialled anew, and after a reconnect it gets every outstanding request
// again: a few at first, then ever more, fewer and slower when connections keep breaking. Bounds: a
// server refuses with kBusy above its byte bound; the client retries that after a backoff. A kBusy
// that a handler answers goes to the caller like any other error. At most one RpcClient per
// sub-session (sub_session.h) and server: request ids count up from 1 in each.
//
// Threads: Call and Respond from any thread. Handlers and callbacks run on the threads of their
// transports (transport.h); neither may block.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/result.h"
#include "common/base/time.h"
#include "common/net/sub_session.h"
#include "common/net/transport.h"

namespace weir::net {

struct Reply {
  std::string body;
  Buffer payload;
};

// One request at a server. Move-only in spirit: keep the shared_ptr until Respond, exactly once.
// One that is dropped unanswered counts as never come, and its client sends it again after a
// backoff: drop only what was not applied.
class IncomingCall {
 public:
  virtual ~IncomingCall() = default;
  [[nodiscard]] uint32_t method() const { return method_; }
  // Whose it is, on whichever of its connections.
  [[nodiscard]] uint64_t session() const { return SessionOf(sub_session_); }
  // With the connection's number (sub_session.h): names the request together with its id.
  [[nodiscard]] uint64_t sub_session() const { return sub_session_; }
  [[nodiscard]] uint64_t request_id() const { return request_id_; }
  // Every request id of this sub-session below it has been answered and needs no memory any more.
  [[nodiscard]] uint64_t acked_below() const { return acked_below_; }
  [[nodiscard]] const std::string& body() const { return body_; }
  [[nodiscard]] const Buffer& payload() const { return payload_; }
  virtual void Respond(Status status, std::string body, Buffer payload) = 0;
  void Respond(Status status) { Respond(std::move(status), {}, {}); }
  void Respond(std::string body) { Respond(Status::Ok(), std::move(body), {}); }

 protected:
  uint32_t method_ = 0;
  uint64_t sub_session_ = 0;
  uint64_t request_id_ = 0;
  uint64_t acked_below_ = 0;
  std::string body_;
  Buffer payload_;
};

struct RpcServerOptions {
  uint64_t max_queued_bytes = 512 << 20;  // payloads and bodies of unanswered requests
  size_t remembered_replies_per_session = 4096;
};

class RpcServer {
 public:
  using Handler = std::function<void(std::shared_ptr<IncomingCall>)>;
  // Starts to serve at once. The network and clock must outlive the server.
  static Result<std::unique_ptr<RpcServer>> Start(Network& network, Clock& clock,
                                                  const std::string& endpoint, Handler handler,
                                                  const RpcServerOptions& options = {});
  virtual ~RpcServer() = default;  // no handler runs afterwards; later Responds are dropped
  [[nodiscard]] virtual const std::string& endpoint() const = 0;
};

struct CallOptions {
  Duration timeout = std::chrono::seconds(30);  // Duration::max(): never gives up
  bool idempotent = false;   // the server need not remember the answer (reads, big replies)
  uint64_t reserved_id = 0;  // of ReserveId or Options::reserved_ids; 0: gets an id of its own
  // Gets the body of an answer that is an error, before the callback. Null: nobody wants it.
  std::shared_ptr<std::string> error_body = nullptr;
};

class RpcClient {
 public:
  using Callback = std::function<void(Result<Reply>)>;
  struct Options {
    uint64_t session = 0;  // random; of one mount's or tool's clients alike but for the connection
    // An unanswered request goes out again after this (then twice, four times ... this) although
    // the connection looks sound; cures nothing over a socket, costs little.
    Duration resend_interval = std::chrono::seconds(10);
    // Asked for a sign of life when it was silent for so long, so that there is time enough to
    // answer.
    Duration ping_after = std::chrono::milliseconds(1500);
    Duration peer_timeout = std::chrono::seconds(3);
    // Of a process that goes on with the session of a dead one: above all ids that were used. What
    // is still on its way of those is applied no more when it comes behind our first message,
    // unless it is reserved: then it may be asked again here, and finds the answer of the first.
    uint64_t ids_above = 0;
    std::vector<uint64_t> reserved_ids = {};
    bool control = false;  // Network::DialControl
  };
  static Result<std::unique_ptr<RpcClient>> Connect(Network& network, Clock& clock,
                                                    const std::string& endpoint,
                                                    const Options& options);
  virtual ~RpcClient() = default;  // outstanding calls get kCancelled first

  // The callback runs exactly once: with the reply, the error the server answered, or kTimedOut /
  // kUnreachable that names the endpoint.
  virtual void Call(uint32_t method, std::string body, Buffer payload, const CallOptions& options,
                    Callback callback) = 0;
  // An id for one call that is not idempotent. The server keeps its answer until FreeId, even when
  // it has come: so the call may be repeated, by another process too.
  virtual uint64_t ReserveId() { return 0; }
  // After the call's callback, or instead of the call.
  virtual void FreeId(uint64_t /*id*/) {}
  // The same, waiting; not from a callback.
  Result<Reply> CallAndWait(uint32_t method, std::string body, Buffer payload,
                            const CallOptions& options);
  // Heard from within the peer timeout, and the connection is not known to be lost. One over which
  // nothing is asked is left alone, and connected until somebody asks and hears nothing.
  [[nodiscard]] virtual bool connected() const = 0;
  // Since the last sign of life; Duration::max() before the first.
  [[nodiscard]] virtual Duration silence() const {
    return connected() ? Duration::zero() : Duration::max();
  }
};

}  // namespace weir::net
