// Elevator: requests in the order of C-SCAN, upwards from where the disk's head is (AQuA §5.2,
// Stonehenge §4.1.1): the smallest address at or after the head's position, else the smallest.
// Those that are promised may be asked for by themselves.
//
// A request that others have passed too often goes first: a stream of fresh, ever higher addresses
// would otherwise hold back a low one until the disk ends. Threads: the scheduler's owner.
#pragma once

#include <cstddef>
#include <cstdint>

#include "osd/qos/dispatch/request_tree.h"
#include "osd/qos/request.h"

namespace weir::osd::qos {

class Elevator {
 public:
  void Add(Request* request, bool promised = false);
  // Requires: `request` is here, as promised as it was added. Takes it out without a service (a
  // client is gone).
  void Remove(const Request& request, bool promised = false);
  // The request whose turn it is; `oldest` is the one that came first of all here.
  // Requires: not empty.
  [[nodiscard]] Request* First(Request* oldest) const;
  // The same among those that are promised; `oldest` is one of them.
  [[nodiscard]] Request* FirstPromised(Request* oldest) const;
  // The one that C-SCAN serves after `request`, which is here.
  [[nodiscard]] Request* After(const Request& request) const {
    return From({request.lba, request.sequence + 1});
  }
  // The disk serves `request` now (it is still here): the head moves behind it, and everyone else
  // has been passed once more.
  void Served(const Request& request) {
    ++departures_;
    head_ = request.lba + request.bytes;
  }

 private:
  using Tree = RequestTree<Request*>;
  static constexpr uint64_t kLeastPatience = 8;  // departures

  static TreeKey KeyOf(const Request& request) { return {request.lba, request.sequence}; }
  // Everything that is here may go before a newcomer, and as many again.
  [[nodiscard]] uint64_t GoesFirstAt(size_t here) const;
  // The first one from `key` on, else the first of all; null: it is empty.
  [[nodiscard]] static Request* From(const Tree& tree, const TreeKey& key);
  // The same of both trees.
  [[nodiscard]] Request* From(const TreeKey& key) const;

  Tree promised_;
  Tree others_;
  uint64_t head_ = 0;  // where the last request ended
  uint64_t departures_ = 0;
};

}  // namespace weir::osd::qos
