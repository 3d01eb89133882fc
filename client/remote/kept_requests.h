// KeptRequests: changes that the MDS has answered to this mount before they were durable: to be
// asked again, in order, of one that begins anew without them.
//
// Bounded by the MDS, which answers so many early and not more (NamespaceDb), and tells in each
// answer what has become durable.
// Threads: none of its own; the caller has a lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weir::client {

class KeptRequests {
 public:
  struct Request {
    size_t channel = 0;  // whose id that is
    uint64_t id = 0;     // reserved
    uint32_t method = 0;
    std::shared_ptr<const std::string> body;
    uint64_t inode = 0;    // that it made, or 0
    int64_t stamp_ns = 0;  // when it happened
  };

  void Keep(uint64_t order, Request request) { kept_[order] = std::move(request); }
  // Those that are durable, and nobody asks again.
  std::vector<Request> TakeDurable(uint64_t durable) {
    std::vector<Request> done;
    while (!kept_.empty() && kept_.begin()->first <= durable) {
      done.push_back(std::move(kept_.begin()->second));
      kept_.erase(kept_.begin());
    }
    return done;
  }
  // All, in order, when another life of the MDS counts anew.
  std::vector<Request> TakeAll() { return TakeDurable(UINT64_MAX); }
  [[nodiscard]] bool empty() const { return kept_.empty(); }

 private:
  std::map<uint64_t, Request> kept_;  // by their order
};

}  // namespace weir::client
