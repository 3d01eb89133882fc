#include "client/data/read_ahead.h"

#include <algorithm>
#include <utility>

namespace weir::client {

// One prefetched piece. Its memory is given back when the last reference to it goes.
struct ReadAhead::Chunk {
  struct Waiter {
    uint64_t offset;
    uint64_t length;
    ReadCallback callback;
  };
  Chunk(std::shared_ptr<Usage> usage, ClassId class_id, uint64_t begin, uint64_t bytes)
      : usage(std::move(usage)), class_id(class_id), begin(begin), bytes(bytes) {}
  ~Chunk() {
    std::lock_guard lock(usage->mutex);
    usage->bytes -= bytes;
    const auto mine = usage->of_class.find(class_id);
    if ((mine->second -= bytes) == 0) usage->of_class.erase(mine);
  }
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

  [[nodiscard]] bool Covers(uint64_t offset, uint64_t length) const {
    return offset >= begin && offset + length <= begin + bytes;
  }

  const std::shared_ptr<Usage> usage;
  const ClassId class_id;
  const uint64_t begin;
  const uint64_t bytes;
  std::mutex mutex;
  bool done = false;
  Result<Segments> data = Segments{};
  std::vector<Waiter> waiters;

  void Answer(const Waiter& waiter) const {
    if (!data.ok()) return waiter.callback(data.status());
    waiter.callback(SliceOf(*data, waiter.offset - begin, waiter.length));
  }
};

struct ReadAhead::Stream::State {
  std::mutex mutex;
  uint64_t next_offset = 0;  // where a sequential reader goes on
  uint32_t in_a_row = 0;
  uint64_t generation = 0;
  uint64_t ahead_until = 0;
  std::map<uint64_t, std::shared_ptr<Chunk>> chunks;  // by begin
};

ReadAhead::Stream::Stream() : state_(std::make_shared<State>()) {}
ReadAhead::Stream::~Stream() = default;

uint64_t ReadAhead::used_bytes() const {
  std::lock_guard lock(used_->mutex);
  return used_->bytes;
}

bool ReadAhead::Reserve(ClassId class_id, uint64_t bytes) {
  std::lock_guard lock(used_->mutex);
  if (used_->bytes + bytes > options_.bytes_max) return false;
  const auto mine = used_->of_class.find(class_id);
  const uint64_t before = mine == used_->of_class.end() ? 0 : mine->second;
  if (before + bytes > options_.bytes_max / kClassShare) return false;
  used_->bytes += bytes;
  used_->of_class[class_id] += bytes;
  return true;
}

void ReadAhead::Read(Stream& stream, ClassId class_id, uint64_t offset, uint64_t length,
                     uint64_t size, uint64_t generation, const Fetch& fetch,
                     ReadCallback callback) {
  if (options_.ahead_bytes == 0) return fetch(offset, length, false, std::move(callback));
  std::shared_ptr<Chunk> chunk;
  bool sequential = false;
  {
    Stream::State& state = *stream.state_;
    std::lock_guard lock(state.mutex);
    if (state.generation != generation) {
      state.chunks.clear();
      state.generation = generation;
      state.ahead_until = 0;
    }
    state.in_a_row = offset == state.next_offset ? state.in_a_row + 1 : 0;
    state.next_offset = offset + length;
    sequential = state.in_a_row >= options_.sequential_reads;
    if (!sequential) state.ahead_until = 0;
    auto it = state.chunks.upper_bound(offset);
    if (it != state.chunks.begin() && std::prev(it)->second->Covers(offset, length)) {
      chunk = std::prev(it)->second;
    }
    // What lies behind the reader has served.
    std::erase_if(state.chunks, [&](const auto& entry) {
      return entry.second->begin + entry.second->bytes <= offset || !sequential;
    });
  }
  if (sequential) FetchAhead(stream, class_id, size, generation, fetch);
  if (chunk == nullptr) return fetch(offset, length, false, std::move(callback));
  Chunk::Waiter waiter{offset, length, std::move(callback)};
  {
    std::lock_guard lock(chunk->mutex);
    if (!chunk->done) {
      chunk->waiters.push_back(std::move(waiter));
      return;
    }
  }
  chunk->Answer(waiter);
}

void ReadAhead::FetchAhead(Stream& stream, ClassId class_id, uint64_t size, uint64_t generation,
                           const Fetch& fetch) {
  std::vector<std::shared_ptr<Chunk>> started;
  {
    Stream::State& state = *stream.state_;
    std::lock_guard lock(state.mutex);
    if (state.generation != generation) return;
    const uint64_t goal = std::min(state.next_offset + options_.ahead_bytes, size);
    uint64_t begin = std::max(state.ahead_until, state.next_offset);
    while (begin < goal) {
      const uint64_t end =
          std::min((begin / options_.chunk_bytes + 1) * options_.chunk_bytes, size);
      if (!Reserve(class_id, end - begin)) break;
      auto chunk = std::make_shared<Chunk>(used_, class_id, begin, end - begin);
      state.chunks[begin] = chunk;
      started.push_back(std::move(chunk));
      begin = end;
    }
    state.ahead_until = begin;
  }
  for (const std::shared_ptr<Chunk>& chunk : started) {
    fetch(chunk->begin, chunk->bytes, true, [chunk](Result<Segments> data) {
      std::vector<Chunk::Waiter> waiters;
      {
        std::lock_guard lock(chunk->mutex);
        chunk->done = true;
        chunk->data = std::move(data);
        waiters.swap(chunk->waiters);
      }
      for (const Chunk::Waiter& waiter : waiters) chunk->Answer(waiter);
    });
  }
}

}  // namespace weir::client
