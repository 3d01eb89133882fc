#include "osd/qos/dispatch/finish_order.h"

#include "common/base/check.h"

namespace weir::osd::qos {

void FinishOrder::Add(Request* request) {
  tree_.Insert(KeyOf(*request), request);
}

void FinishOrder::Remove(const Request& request) {
  const Request* removed = tree_.Remove(KeyOf(request));
  WEIR_CHECK(removed == &request, "the request is in the order");
}

void FinishOrder::SetService(Duration service) {
  if (service.count() != tree_.parameter()) tree_.SetParameter(service.count());
}

}  // namespace weir::osd::qos
