#include "osd/qos/dispatch/elevator.h"

#include <algorithm>

namespace weir::osd::qos {

void Elevator::Add(Request* request) {
  // Everything that is here may go before it, and as many again.
  const uint64_t patience = std::max<uint64_t>(kLeastPatience, 2 * (by_address_.size() + 1));
  by_address_.Insert(KeyOf(*request), {departures_ + patience, request});
}

void Elevator::Remove(const Request& request) {
  by_address_.Remove(KeyOf(request));
}

Request* Elevator::From(const TreeKey& key) const {
  const Entry* next = by_address_.FirstFrom(key);
  return next == nullptr ? by_address_.First().request : next->request;
}

Request* Elevator::First(const Request& oldest) const {
  const Entry& first = *by_address_.FirstFrom(KeyOf(oldest));
  if (departures_ >= first.goes_first_at) return first.request;
  return From({head_, 0});
}

Request* Elevator::After(const Request& request) const {
  return From({request.lba, request.sequence + 1});
}

void Elevator::Served(const Request& request) {
  ++departures_;
  head_ = request.lba + request.bytes;
}

}  // namespace weir::osd::qos
