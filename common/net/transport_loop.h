// TransportLoop: what a transport on a reactor needs whatever its sockets are: messages that other
// threads send, and its one timer. Private to this folder.
//
// Messages leave in the order in which Send was called, whoever called. Those of the reactor's own
// thread are delivered at once, behind what others have brought. A burst of another thread costs
// one task.
// Threads: Send, Post, RunAfter from any; End on the reactor's own.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "common/net/transport.h"
#include "common/reactor/reactor.h"

namespace weir::net {

class TransportLoop final : public std::enable_shared_from_this<TransportLoop> {
 public:
  // On the reactor's thread. Must not call back into who sends.
  using Deliver = std::function<void(PeerId, Message)>;

  static std::shared_ptr<TransportLoop> Make(Reactor& reactor, Deliver deliver);

  void Send(PeerId peer, Message message);
  // Never within the call.
  void Post(Loop::Task task);
  // As IoTimer::RunAfter.
  void RunAfter(Duration delay, Loop::Task task);
  // Nothing runs and nothing is delivered afterwards.
  void End();

  [[nodiscard]] Reactor& reactor() const { return reactor_; }

 private:
  struct Sent {
    PeerId peer;
    Message message;
  };
  TransportLoop(Reactor& reactor, Deliver deliver)
      : reactor_(reactor), deliver_(std::move(deliver)) {}
  void DeliverBrought();
  void ArmTimer();

  Reactor& reactor_;
  const Deliver deliver_;

  // Of the reactor's thread.
  bool ended_ = false;
  std::vector<Sent> delivering_;  // kept for its capacity
  LoopTimer timer_ = 0;

  std::mutex mutex_;
  std::vector<Sent> brought_;  // by other threads
  bool arming_ = false;        // ArmTimer is under way
  TimePoint timer_at_;         // of the latest RunAfter
  Loop::Task timer_task_;
};

}  // namespace weir::net
