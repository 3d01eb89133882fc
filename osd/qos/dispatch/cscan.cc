#include "osd/qos/dispatch/cscan.h"

#include <algorithm>
#include <tuple>

namespace weir::osd::qos {

std::vector<Cscan::Entry>::iterator Cscan::Find(uint64_t lba, uint64_t sequence) {
  return std::lower_bound(by_address_.begin(), by_address_.end(), std::tie(lba, sequence),
                          [](const Entry& entry, const auto& wanted) {
                            return std::tie(entry.lba, entry.sequence) < wanted;
                          });
}

void Cscan::DoAdd(Request* request) {
  // Everything that is here may go before it, and as many again.
  const uint64_t patience = std::max<uint64_t>(kLeastPatience, 2 * (by_address_.size() + 1));
  by_address_.insert(Find(request->lba, request->sequence),
                     {request->lba, request->sequence, departures_ + patience, request});
}

void Cscan::DoRemove(Request* request) {
  by_address_.erase(Find(request->lba, request->sequence));
}

Request* Cscan::DoPeek() {
  Request* oldest = entered().front();
  auto next = Find(oldest->lba, oldest->sequence);
  if (departures_ < next->goes_first_at) {
    next = Find(head_, 0);
    if (next == by_address_.end()) next = by_address_.begin();
  }
  ++departures_;
  head_ = next->lba + next->request->bytes;
  return next->request;
}

}  // namespace weir::osd::qos
