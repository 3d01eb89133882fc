// Elevator: requests in the order of C-SCAN, upwards from where the disk's head is (AQuA §5.2,
// Stonehenge §4.1.1): the smallest address at or after the head's position, else the smallest.
//
// A request that others have passed too often goes first: a stream of fresh, ever higher addresses
// would otherwise hold back a low one until the disk ends. Threads: the scheduler's owner.
#pragma once

#include <cstddef>
#include <cstdint>

#include "osd/qos/dispatch/request_tree.h"
#include "osd/qos/scheduler.h"

namespace weir::osd::qos {

class Elevator {
 public:
  void Add(Request* request);
  // Requires: `request` is here. Takes it out without a service (a client is gone).
  void Remove(const Request& request);
  // The request whose turn it is; `oldest` is the one that came first of all here.
  // Requires: not empty.
  [[nodiscard]] Request* First(const Request& oldest) const;
  // The one that C-SCAN serves after `request`, which is here.
  [[nodiscard]] Request* After(const Request& request) const;
  // The disk serves `request` now (it is still here): the head moves behind it, and everyone else
  // has been passed once more.
  void Served(const Request& request);

 private:
  static constexpr uint64_t kLeastPatience = 8;  // departures

  struct Entry {
    uint64_t goes_first_at;  // count of departures
    Request* request;
  };
  static TreeKey KeyOf(const Request& request) { return {request.lba, request.sequence}; }
  // The first one from `key` on, else the first of all.
  [[nodiscard]] Request* From(const TreeKey& key) const;

  RequestTree<Entry> by_address_;
  uint64_t head_ = 0;  // where the last request ended
  uint64_t departures_ = 0;
};

}  // namespace weir::osd::qos
