// BlockDevice: raw blocks. Public calls check, count and complain; a backend is five small
// virtuals. Backends: the device of OpenDevice (block device or image file, O_DIRECT, on a
// reactor), MemDevice and FaultyDevice (tests).
//
// Units:   bytes. Offsets, lengths and buffer addresses are multiples of kBlockSize (4096).
// Threads: every call from any thread. Completion callbacks run on the device's own completion
//          thread (or, in the memory backends, inside the call) and must not block; so nobody may
//          hold a lock that a callback takes while calling *Async.
// Errors:  kIo from the medium; kInvalid for unaligned or out-of-range requests, before any I/O.
// Durability: a completed write survives power loss only after a Flush that began later completed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/base/buffer.h"
#include "common/base/result.h"

namespace weir {

class Reactor;

class BlockDevice {
 public:
  using Done = std::function<void(Status)>;
  struct Counters {
    std::atomic<uint64_t> reads{0}, read_bytes{0}, writes{0}, write_bytes{0}, flushes{0}, errors{0};
  };

  virtual ~BlockDevice() = default;

  // Fills buffer (whose size is the length, a multiple of kBlockSize) from `offset`.
  void ReadAsync(uint64_t offset, Buffer buffer, Done done);
  void WriteAsync(uint64_t offset, Buffer buffer, Done done);
  void FlushAsync(Done done);
  // The same, waiting. Not from a completion callback. Cheaper than the asynchronous calls for a
  // thread that has nothing else to do: a backend may do the I/O in the calling thread.
  Status Read(uint64_t offset, Buffer buffer);
  Status Write(uint64_t offset, Buffer buffer);
  Status Flush();
  // Tells the device that a range is not needed; may do nothing.
  Status Discard(uint64_t offset, uint64_t length);

  // Makes an image file larger, durably; what is new reads as zeros. kNotSupported: no image.
  virtual Status Grow(uint64_t size);

  [[nodiscard]] virtual uint64_t size() const = 0;
  [[nodiscard]] virtual const std::string& name() const = 0;
  [[nodiscard]] virtual bool rotational() const { return false; }
  // An image file: its first write to a block costs its filesystem a journal commit per flush, so
  // formatting writes zeros where small synchronous writes will land.
  [[nodiscard]] virtual bool is_image() const { return false; }
  [[nodiscard]] const Counters& counters() const { return counters_; }

  // How many writes were complete before now, and how many of those are known to be durable: those
  // that were complete when a flush, by whomever, began that has ended well. A write is durable
  // once durable_writes() has reached what completed_writes() was after it. After a failed flush
  // nobody knows, and the second number stays.
  [[nodiscard]] uint64_t completed_writes() const { return completed_writes_; }
  [[nodiscard]] uint64_t durable_writes() const { return durable_writes_; }
  [[nodiscard]] bool flush_failed() const { return flush_failed_; }

 protected:
  virtual void DoRead(uint64_t offset, Buffer buffer, Done done) = 0;
  virtual void DoWrite(uint64_t offset, Buffer buffer, Done done) = 0;
  virtual void DoFlush(Done done) = 0;
  virtual Status DoDiscard(uint64_t offset, uint64_t length) = 0;
  // Default: the asynchronous call and a wait.
  virtual Status DoReadSync(uint64_t offset, Buffer buffer);
  virtual Status DoWriteSync(uint64_t offset, Buffer buffer);
  virtual Status DoFlushSync();

 private:
  Status Check(uint64_t offset, const Buffer& buffer) const;
  Status Count(Status status);
  Status CountWrite(Status status);
  Status CountFlush(Status status, uint64_t completed_before);
  Counters counters_;
  std::atomic<uint64_t> completed_writes_{0}, durable_writes_{0};
  std::atomic<bool> flush_failed_{false};
};

struct OpenOptions {
  bool read_only = false;
  bool direct = true;     // O_DIRECT; otherwise through the page cache
  bool exclusive = true;  // O_EXCL on a block device, flock on an image file: nobody else has it
  bool threads = true;    // false: only Read, Write and Flush are called, and none is started
  // Takes the asynchronous requests to the disk and completes them, and outlives the device; null:
  // one of the device's own.
  Reactor* reactor = nullptr;
};
// A block device or image file, O_DIRECT, a reactor underneath.
// A loop device and the file below it are one disk.
// kBusy: mounted, or another process has it; kInvalid: not a multiple of kBlockSize, or neither a
// block device nor a file; kNotFound, kAccess: as the operating system says.
Result<std::unique_ptr<BlockDevice>> OpenDevice(const std::string& path,
                                                const OpenOptions& options);

// Makes an image file of `size` bytes with all its space allocated. `fill` is called with a path at
// which it can be opened before it has its name; so there is all of an image, or none, whatever
// happens. kExists if there is one.
Status CreateImage(const std::string& path, uint64_t size,
                   const std::function<Status(const std::string& unnamed)>& fill = {});

// Writes zeros over a range, in large pieces.
Status ZeroRange(BlockDevice& device, uint64_t offset, uint64_t length);

}  // namespace weir
