// What tests that drive a scheduler by hand share: requests that live as long as the test, and a
// clock that the test moves.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "osd/qos/scheduler.h"

namespace weir::osd::qos::testing {

class SchedulerFixture : public ::testing::Test {
 protected:
  // What a request may say beside its class and size.
  struct More {
    int64_t elsewhere = 0;
    uint32_t transaction = 0;
    uint64_t lba = 0;
    FlowKey flow;
  };
  Request* Add(Scheduler* scheduler, ClassId id, uint64_t bytes, const More& more) {
    Request* request = &requests_.emplace_back();
    request->class_id = id;
    request->bytes = bytes;
    request->elsewhere = more.elsewhere;
    request->transaction = more.transaction;
    request->lba = more.lba;
    request->flow = more.flow;
    scheduler->Enqueue(request, now_);
    return request;
  }
  Request* Add(Scheduler* scheduler, ClassId id, uint64_t bytes = 4096, int64_t elsewhere = 0) {
    return Add(scheduler, id, bytes, More{.elsewhere = elsewhere});
  }
  // The next request, done at once; null for none.
  Request* Serve(Scheduler* scheduler) {
    Request* request = scheduler->Pull(now_).request;
    if (request != nullptr) scheduler->Completed(request, now_);
    return request;
  }
  // Everything that may go to the device now; what the last pull said is in last_.
  std::vector<Request*> PullAll(Scheduler* scheduler) {
    std::vector<Request*> out;
    for (;;) {
      last_ = scheduler->Pull(now_);
      if (last_.request == nullptr) return out;
      out.push_back(last_.request);
    }
  }

  std::deque<Request> requests_;
  TimePoint now_{0};
  PullResult last_;
};

}  // namespace weir::osd::qos::testing
