// IoMeter: who is asked before background I/O (flushes and compactions of RocksDB, the moving of
// small writes) goes to a device that others are promised parts of. Which threads are in the
// background, they say themselves (BackgroundThread).
//
// Threads: any. Begin may block, but for a bounded time whatever the foreground does: a foreground
//          write may be waiting for the very flush that asks.
#pragma once

#include <cstdint>

namespace weir {

class IoMeter {
 public:
  struct Io {
    bool write = false;
    uint64_t bytes = 0;
    uint64_t offset = 0;  // on the device
    // Somebody in the foreground waits, or soon will: it only has to be counted.
    bool urgent = false;
  };
  // Large I/O asks for one piece of this size after the other, so that others get in between.
  static constexpr uint64_t kPieceBytes = 128 << 10;

  virtual ~IoMeter() = default;
  // Returns when the I/O may start, with what End wants when it is over.
  virtual void* Begin(const Io& io) = 0;
  virtual void End(void* ticket) = 0;
  // While true everything that waits, and all that comes, goes at once.
  virtual void SetUrgent(bool urgent) = 0;
};

// Marks the calling thread as in the background (or, with false, as doing something for the
// foreground) while it lives.
class BackgroundThread {
 public:
  explicit BackgroundThread(bool background = true) : before_(marked_) { marked_ = background; }
  ~BackgroundThread() { marked_ = before_; }
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;
  static bool IsThis() { return marked_; }

 private:
  static inline thread_local bool marked_ = false;
  const bool before_;
};

}  // namespace weir
