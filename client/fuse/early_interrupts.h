// EarlyInterrupts: of requests that have not come here yet. The kernel tells of a signal by a way
// of its own, which may be shorter than the request's. Pure.
//
// One for a request that was answered meanwhile waits for nobody: so only the newest are kept.
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace weir::client {

class EarlyInterrupts {
 public:
  // A request is on its way for a turn of a reactor at most: this many signals do not meet there.
  static constexpr size_t kMost = 1024;

  void Remember(uint64_t number);
  // The request with that number has come: whether it is interrupted.
  bool Take(uint64_t number);

 private:
  std::deque<uint64_t> numbers_;  // oldest first
};

}  // namespace weir::client
