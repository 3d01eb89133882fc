// UnixConnection: one end of a Unix stream socket that carries messages, watched by an epoll.
// Private to unix_transport.
//
// Threads: Send from any; the rest from one.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>

#include "common/base/inheriting_mutex.h"
#include "common/net/envelope.h"
#include "common/net/message_reader.h"
#include "common/net/transport.h"

namespace weir::net {

class UnixConnection {
 public:
  // Takes the socket over, and has `epoll` tell of it as `key` as long as it lives.
  UnixConnection(int socket, Direction sends, int epoll, uint64_t key);
  ~UnixConnection();
  UnixConnection(const UnixConnection&) = delete;
  UnixConnection& operator=(const UnixConnection&) = delete;

  // Never waits: what the socket does not take now it gets when it has room. False: the message was
  // dropped, the peer has gone.
  bool Send(Message message);

  // Reads once and hands over what is whole. kRubbish: the peer speaks something else. After
  // kRubbish and kGone there is nothing more to read.
  enum class State : uint8_t { kOpen, kGone, kRubbish };
  State Receive(const std::function<void(Message)>& on_message);
  // The socket has room again.
  void SendMore();

 private:
  struct Outgoing {
    Message message;
    size_t sent = 0;  // bytes of both its parts
  };
  enum class Sent : uint8_t { kWhole, kInPart, kLost };
  Sent SendLocked(Outgoing& outgoing);
  void LoseLocked();
  void WatchLocked(bool for_room);

  const int socket_;
  const Direction sends_;
  const int epoll_;
  const uint64_t key_;
  MessageReader reader_;

  InheritingMutex mutex_;
  bool lost_ = false;
  std::deque<Outgoing> outgoing_;  // what the socket had no room for
};

}  // namespace weir::net
