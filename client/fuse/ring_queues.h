// RingQueues: takes requests off the kernel for one reactor by FUSE over io_uring, and gives
// answers back.
//
// The kernel has a queue per processor, and puts a request into that of the processor it comes
// from. An entry of a queue is taken from its request until the answer, which also asks for the
// next one. Its memory is mapped from the start and used as needed; what has not been used for a
// second goes back to the system.
//
// Threads: Answer from any; Map before all else; the rest from the reactor's.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "client/fuse/inbox.h"
#include "client/fuse/ring_protocol.h"
#include "client/fuse/ring_requests.h"
#include "common/base/result.h"
#include "common/reactor/reactor.h"

namespace weir::client {

class RingQueues;

class RingEntry final : public RingCompletion {
 public:
  void Complete(int32_t result, uint32_t flags) override;
  // A fuse_out_header, and what follows it. Any thread; once per request.
  void Answer(std::span<const iovec> parts);

 private:
  friend class RingQueues;
  RingQueues* queues = nullptr;
  size_t queue = 0;  // of those of the reactor
  RingHeaders* headers = nullptr;
  std::span<uint8_t> payload;
  iovec buffers[2] = {};
  uint64_t number = 0;  // of the request that has it
  size_t dirty = 0;     // bytes of the payload that are memory
  bool taken = false;   // by a request that is not answered
  bool resting = false;
  bool registered = false;
};

class RingQueues {
 public:
  struct Options {
    std::vector<uint16_t> processors;  // whose requests it takes
    uint32_t payload_bytes = 0;
    RingDepth::Limits depth;
    // The kernel takes no entries, and goes on with /dev/fuse; once.
    std::function<void(int error)> on_refusal;
  };
  struct Counters {
    uint64_t requests = 0;
    uint64_t entries = 0;
    uint64_t bytes = 0;  // of memory
  };
  RingQueues(Reactor& reactor, Inbox& inbox, RingRequests& requests, Options options);
  ~RingQueues();
  RingQueues(const RingQueues&) = delete;
  RingQueues& operator=(const RingQueues&) = delete;

  // kNoSpace: the addresses are not to be had.
  Status Map();
  // After FUSE_INIT was answered.
  void Start(int device);
  // Has the kernel put `mark` behind all that it has in each queue; `refused`: once for each where
  // it would not.
  void Mark(uint64_t mark, const std::function<void()>& refused);
  [[nodiscard]] size_t size() const { return options_.processors.size(); }
  [[nodiscard]] Counters counters() const;

 private:
  friend class RingEntry;
  // Entries that were made together.
  struct Block {
    uint8_t* memory = nullptr;
    size_t bytes = 0;
    std::unique_ptr<RingHeaders[]> headers;
    std::unique_ptr<RingEntry[]> entries;
    size_t count = 0;
  };
  Status AddBlock(size_t queue, size_t count);
  void Register(Block& block);
  void Ended(RingEntry& entry, int32_t result);
  void Take(RingEntry& entry);
  void Grow(size_t queue, size_t count);
  void GiveBack(RingEntry& entry);
  void Commit(RingEntry& entry);
  void CommitOthers();
  void Send(RingEntry& entry, RingCommand command);
  void Rest();
  void RestLater();

  Reactor& reactor_;
  Inbox& inbox_;
  RingRequests& requests_;
  const Options options_;
  int device_ = -1;
  bool refused_ = false;
  std::vector<RingDepth> depths_;  // of the queues
  std::vector<std::unique_ptr<Block>> blocks_;
  bool resting_soon_ = false;
  std::atomic<uint64_t> taken_{0}, entries_{0}, bytes_{0};

  std::mutex mutex_;
  std::vector<RingEntry*> answered_;  // by other threads; guarded by mutex_
};

}  // namespace weir::client
