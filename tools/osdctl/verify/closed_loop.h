// ClosedLoop: so many requests of one class under way at any time, on given objects, until Stop.
//
// Threads: Start and Stop from one thread; answers come on RPC threads.
// Errors:  the first ends the load; Stop returns it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "client/remote/object_io.h"
#include "common/base/prng.h"

namespace weir::osdctl {

class ClosedLoop {
 public:
  struct Shape {
    ClassId class_id;
    PoolId pool;
    std::vector<ObjectId> objects;
    uint64_t object_bytes = 0;  // of each object, all written before
    uint64_t bytes = 0;         // of a request, at a random multiple of it
    bool write = false;
    uint32_t outstanding = 1;
  };
  struct Result {
    std::vector<uint32_t> latencies_us;
    uint64_t bytes = 0;  // answered between Start and Stop
    Status status;
  };

  ClosedLoop(client::ObjectIo& io, Clock& clock, Shape shape, uint64_t seed);
  ~ClosedLoop();
  ClosedLoop(const ClosedLoop&) = delete;
  ClosedLoop& operator=(const ClosedLoop&) = delete;

  void Start();
  [[nodiscard]] bool failed() const;
  // No more requests; waits for those under way.
  Result Stop();

 private:
  void SendOne();
  void OnDone(TimePoint sent, const Status& status);

  client::ObjectIo& io_;
  Clock& clock_;
  const Shape shape_;
  Buffer payload_;
  uint32_t payload_crc_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable idle_;
  Prng prng_;
  Result result_;
  uint32_t under_way_ = 0;
  bool stopping_ = false;
};

// Writes every object whole.
Status WriteWhole(client::ObjectIo& io, const ClosedLoop::Shape& shape);

}  // namespace weir::osdctl
