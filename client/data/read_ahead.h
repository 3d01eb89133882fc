// ReadAhead: prefetches for handles that read on sequentially, where the kernel's own read-ahead
// may not be raised. Pure bookkeeping plus one function that fetches.
//
// Memory: `bytes_max` over all handles, of which a class may have a quarter; beyond it nothing more
// is fetched: a class whose data comes slowly does not keep its neighbours' from being fetched.
// What was fetched is valid only under the inode's generation at that time, so a write or
// truncation drops it. Threads: any. Callbacks run on whoever completes a fetch.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "client/data/object_reader.h"

namespace weir::client {

class ReadAhead {
 public:
  // Fetches a range; the same contract as ReadObjects. `ahead`: beyond what was asked for.
  using Fetch = std::function<void(uint64_t offset, uint64_t length, bool ahead, ReadCallback)>;

  struct Options {
    uint64_t ahead_bytes = 4 << 20;  // per handle; 0 switches all of it off
    uint64_t chunk_bytes = 1 << 20;
    uint64_t bytes_max = 64 << 20;
    uint32_t sequential_reads = 2;  // in a row, until a handle counts as sequential
  };

  // What belongs to one handle.
  class Stream {
   public:
    Stream();
    ~Stream();
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

   private:
    friend class ReadAhead;
    struct State;
    std::shared_ptr<State> state_;
  };

  explicit ReadAhead(Options options) : options_(options), used_(std::make_shared<Usage>()) {}

  // Of `bytes_max`, what one class may have.
  static constexpr uint64_t kClassShare = 4;

  // Serves [offset, offset + length) of a file of `size` bytes, which the range does not exceed:
  // from what was fetched ahead when that holds all of it, else by `fetch`; then fetches ahead, in
  // the memory of `class_id`.
  void Read(Stream& stream, ClassId class_id, uint64_t offset, uint64_t length, uint64_t size,
            uint64_t generation, const Fetch& fetch, ReadCallback callback);

  [[nodiscard]] uint64_t used_bytes() const;

 private:
  struct Usage {
    std::mutex mutex;
    uint64_t bytes = 0;
    std::map<ClassId, uint64_t> of_class;
  };
  struct Chunk;
  bool Reserve(ClassId class_id, uint64_t bytes);
  void FetchAhead(Stream& stream, ClassId class_id, uint64_t size, uint64_t generation,
                  const Fetch& fetch);

  const Options options_;
  std::shared_ptr<Usage> used_;
};

}  // namespace weir::client
