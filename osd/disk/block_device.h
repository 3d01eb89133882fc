// BlockDevice: raw blocks. Public calls check, count and complain; a backend is five small
// virtuals. Backends: UringDevice (block device or image file, O_DIRECT), MemDevice and
// FaultyDevice (tests).
//
// Units:   bytes. Offsets, lengths and buffer addresses are multiples of kBlockSize (4096).
// Threads: every call from any thread. Completion callbacks run on the device's own completion
// thread
//          (or, in the memory backends, inside the call) and must not block.
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

namespace weir::osd {

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
  // The same, waiting. Not from a completion callback.
  Status Read(uint64_t offset, Buffer buffer);
  Status Write(uint64_t offset, Buffer buffer);
  Status Flush();
  // Tells the device that a range is not needed; may do nothing.
  Status Discard(uint64_t offset, uint64_t length);

  [[nodiscard]] virtual uint64_t size() const = 0;
  [[nodiscard]] virtual const std::string& name() const = 0;
  [[nodiscard]] virtual bool rotational() const { return false; }
  [[nodiscard]] const Counters& counters() const { return counters_; }

 protected:
  virtual void DoRead(uint64_t offset, Buffer buffer, Done done) = 0;
  virtual void DoWrite(uint64_t offset, Buffer buffer, Done done) = 0;
  virtual void DoFlush(Done done) = 0;
  virtual Status DoDiscard(uint64_t offset, uint64_t length) = 0;

 private:
  Status Check(uint64_t offset, const Buffer& buffer) const;
  Counters counters_;
};

struct OpenOptions {
  bool read_only = false;
  bool exclusive = true;  // O_EXCL on a block device, flock on an image file: nobody else has it
};
// A block device or image file, O_DIRECT, io_uring underneath.
Result<std::unique_ptr<BlockDevice>> OpenDevice(const std::string& path,
                                                const OpenOptions& options);

}  // namespace weir::osd
