#include "osd/qos/dispatch/dispatch.h"

#include "common/base/check.h"
#include "osd/qos/device/depth_control.h"

namespace weir::osd::qos {

void Dispatch::Add(Request* request) {
  entered_.PushBack(request);
  ++size_;
  bytes_ += request->bytes;
  if (DepthControl::EntersBeyond(*request)) light_bytes_ += request->bytes;
  DoAdd(request);
}

void Dispatch::Remove(Request* request) {
  DoRemove(request);
  entered_.Remove(request);
  --size_;
  bytes_ -= request->bytes;
  if (DepthControl::EntersBeyond(*request)) light_bytes_ -= request->bytes;
}

Request* Dispatch::Next(const DispatchMoment& moment) {
  WEIR_CHECK(size_ > 0, "the dispatch window is empty");
  Request* request = DoPeek(moment);
  Remove(request);
  return request;
}

}  // namespace weir::osd::qos
