// SessionMemory: what a server knows of one session's requests, so that none is applied twice.
//
// A request is in progress, answered with its answer kept, or answered and its answer forgotten
// (the client has it, or too many were kept). Pure. Threads: one at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "common/net/transport.h"

namespace weir::net {

class SessionMemory {
 public:
  explicit SessionMemory(size_t most_answers) : most_answers_(most_answers) {}

  enum class Seen : uint8_t {
    kNew,         // now in progress: apply it
    kInProgress,  // the peer gets the answer too when it comes
    kAnswered,    // send *answer again
    kForgotten,   // the answer is gone; nobody who has not got it should be asking
    kObsolete,    // the client says it needs no answer any more: a late duplicate
  };
  Seen Arrive(uint64_t id, PeerId peer, bool idempotent, const Message** answer);

  // Forgets a request in progress as if it had never come; returns who waits for its answer.
  std::vector<PeerId> Retract(uint64_t id);
  // Ends a request in progress; returns who waits for the answer. Keeps the answer unless the
  // request was idempotent.
  std::vector<PeerId> Finish(uint64_t id, const Message& answer);

  // The client has these answers, and all below `acked_below`.
  void Acknowledge(uint64_t acked_below, const std::vector<uint64_t>& ids);

  [[nodiscard]] bool HasInProgress() const { return in_progress_ > 0; }
  [[nodiscard]] size_t answers_kept() const { return answers_; }
  // Places in the queue of the oldest: at least as many.
  [[nodiscard]] size_t places_kept() const { return order_.size(); }

  TimePoint last_heard;  // kept by the server

 private:
  struct Entry {
    bool idempotent = false;
    bool answered = false;
    std::vector<PeerId> waiting;
    Message answer;
  };
  void Forget(std::map<uint64_t, Entry>::iterator it);
  void DropForgottenOrder();
  void MarkForgotten(uint64_t id);
  [[nodiscard]] bool IsForgotten(uint64_t id) const;

  size_t most_answers_;
  size_t in_progress_ = 0;
  size_t answers_ = 0;
  uint64_t acked_below_ = 0;
  std::map<uint64_t, Entry> entries_;
  std::map<uint64_t, uint64_t> forgotten_;  // first -> last, disjoint runs of ids
  std::deque<uint64_t> order_;              // kept answers, oldest first; some are gone already
};

}  // namespace weir::net
