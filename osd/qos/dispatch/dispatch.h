// Dispatch: the last stage, a bounded window of released requests and the order in which the disk
// sees them. The window is the only place where order is optimised for the disk, so its size adds
// to the depth D in the fairness bounds (4) and (8).
//
// Threads: the scheduler's owner. Ownership: none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "osd/qos/request_list.h"

namespace weir::osd::qos {

// What an order may look at besides the requests themselves.
struct DispatchMoment {
  TimePoint now;
  size_t in_flight = 0;     // on the device
  bool by_address = false;  // whatever the deadlines say
};

class Dispatch {
 public:
  virtual ~Dispatch() = default;

  void Add(Request* request);
  // Takes a request that is in the window out of it.
  void Remove(Request* request);
  // Takes out the request that the disk should see next. Requires: size() > 0.
  Request* Next(const DispatchMoment& moment = {});

  // Requests the window may hold beyond the one that is on its way, for a device of this depth.
  [[nodiscard]] virtual size_t Capacity(uint32_t depth) const = 0;

  // The request with the earliest deadline, or none: one that may have to go beyond the depth.
  [[nodiscard]] virtual Request* Urgent() const { return nullptr; }

  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  // Of those that may enter the device beyond its depth.
  [[nodiscard]] uint64_t light_bytes() const { return light_bytes_; }
  [[nodiscard]] const RequestList& entered() const { return entered_; }  // in order of entry

 private:
  virtual void DoAdd(Request* request) = 0;
  virtual void DoRemove(Request* request) = 0;
  [[nodiscard]] virtual Request* DoPeek(const DispatchMoment& moment) = 0;

  RequestList entered_;
  size_t size_ = 0;
  uint64_t bytes_ = 0;
  uint64_t light_bytes_ = 0;
};

}  // namespace weir::osd::qos
