// StreamConnection: one end of a stream socket that carries messages (message_reader.h), read and
// written by a reactor's thread.
//
// Receiving: a turn takes at most kTurnBytes or kTurnMessages from one peer, then everybody else
// has his turn; the bytes of a payload go from the socket to where they stay. Sending: what a turn
// produces for the peer leaves at its end, as few sendmsg as possible; large messages go in pieces
// of 128 KiB, when what else has come is done (Reactor::Continue). What the peer does not read
// is queued without a limit of its own: requests are bounded by the OSD's credits and by what a
// mount may have under way, answers by the requests.
// Threads: the reactor's own.
// Source:  common/reactor/README.md; bulk in slices so that small messages of others pass.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "common/net/envelope.h"
#include "common/net/message_reader.h"
#include "common/net/transport.h"
#include "common/reactor/reactor.h"

namespace weir::net {

class StreamConnection final : public std::enable_shared_from_this<StreamConnection>,
                               private Watcher {
 public:
  static constexpr size_t kTurnBytes = 32 << 10;
  static constexpr int kTurnMessages = 32;

  enum class Ended : uint8_t { kGone, kRubbish };  // kRubbish: the peer speaks something else
  struct Events {
    std::function<void(Message)> on_message;
    // The last one: nothing more comes. Not after Close.
    std::function<void(Ended)> on_end;
  };
  // Takes over a connected socket that does not block. Both events may Close it.
  static std::shared_ptr<StreamConnection> Make(Reactor& reactor, int socket, Direction sends,
                                                Events events);
  ~StreamConnection() override;
  StreamConnection(const StreamConnection&) = delete;
  StreamConnection& operator=(const StreamConnection&) = delete;

  // At the end of the turn, or when the socket has room. Dropped when the peer has gone.
  void Send(Message message);
  // Hangs up; what is queued is dropped. Idempotent.
  void Close();

  // System calls that sent something, and the bytes they sent.
  [[nodiscard]] uint64_t sends() const { return sends_done_; }
  [[nodiscard]] size_t queued() const { return outgoing_.size(); }

 private:
  static constexpr size_t kParts = 64;  // of one sendmsg
  using Parts = std::array<iovec, kParts>;

  StreamConnection(Reactor& reactor, int socket, Direction sends, Events events);
  void OnReadable() override;
  void OnWritable() override;
  void OnContinue() override;
  enum class Received : uint8_t { kSome, kNothing, kGone };
  Received Receive(size_t* bytes_left);
  bool TakeMessages(int* messages_left);
  void End(Ended how);
  void SendAtTurnEnd();
  void SendQueued();
  size_t Gather(Parts* parts, size_t most) const;
  void Forget(size_t sent);

  Reactor& reactor_;
  const int socket_;
  const Direction sends_;
  Events events_;
  MessageReader reader_;
  bool open_ = true;
  bool lost_ = false;         // it takes nothing more; its reader hears of the end, too
  bool ending_turn_ = false;  // SendQueued runs at the turn's end
  bool full_ = false;         // waits for room
  bool receiving_ = false, sending_ = false;  // go on in OnContinue
  std::deque<Message> outgoing_;
  size_t first_sent_ = 0;  // bytes of the first one
  uint64_t sends_done_ = 0;
};

}  // namespace weir::net
