// ContractMeter: does a class keep its latency bound, and what would admission by measurement like
// to know about this OSD?
//
// A bound counts from the moment a request is among the first max_pending + 1 of its class (A19);
// of a virtual disk from its arrival. A miss is a request that took longer. A second is violated
// when more than 1 - E of the requests done in it were missed (rounded up: one request is no rate),
// or when none was done in it although one waited all the time.
//
// The service is measured over an hour that begins small (service_monitor.h). A class is part of it
// after 1000 requests, or 60 seconds with any, under the contract that it has now (A20).
//
// Threads: the scheduler's owner. Ownership: none; its memory of a class is in ClassQueue.
#pragma once

#include <vector>

#include "osd/qos/admission/service_monitor.h"
#include "osd/qos/class_queue.h"

namespace weir::osd::qos {

class ContractMeter {
 public:
  static constexpr Duration kWindow = std::chrono::hours(1);
  static constexpr Duration kFirstHalf = std::chrono::seconds(5);
  static constexpr uint64_t kEnoughRequests = 1000;
  static constexpr uint32_t kEnoughSeconds = 60;

  explicit ContractMeter(TimePoint now) : monitor_(kWindow, now, kFirstHalf) {}

  // The class's spec or what the device is taken to do (IOPSmax, bytes that a request is worth)
  // changed. Requests that are under way keep their clocks unless the bound changed.
  void Changed(ClassQueue* queue, double iops_max, double unit_bytes);

  void Arrived(ClassQueue* queue, const Request& request, TimePoint now) {
    if (queue->contract.clock) queue->contract.clock->Arrived(request.sequence, now);
  }
  void Cancelled(ClassQueue* queue, const Request& request, TimePoint now) {
    if (queue->contract.clock) queue->contract.clock->Completed(request.sequence, now);
  }
  // `promised`: the request used what the class is promised.
  void Completed(ClassQueue* queue, const Request& request, bool promised, TimePoint now);

  // Ends a second; true if it was one in which the bound was broken.
  bool CloseSecond(ClassQueue* queue, bool waited_throughout);

  // Something other than the classes changed what service they get (C15).
  void Restart(TimePoint now) { monitor_.Restart(now); }
  [[nodiscard]] ServiceReport Report() const { return monitor_.Report(); }
  [[nodiscard]] static bool IsMeasured(const ClassQueue& queue);

 private:
  void NoteDelay(ClassQueue* queue, Duration delay, TimePoint now);

  ServiceMonitor monitor_;
};

}  // namespace weir::osd::qos
