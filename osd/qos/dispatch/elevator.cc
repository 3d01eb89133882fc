#include "osd/qos/dispatch/elevator.h"

#include <algorithm>
#include <tuple>

namespace weir::osd::qos {

size_t Elevator::Find(uint64_t lba, uint64_t sequence) const {
  const auto found = std::lower_bound(
      by_address_.begin(), by_address_.end(), std::tie(lba, sequence),
      [](const Entry& e, const auto& key) { return std::tie(e.lba, e.sequence) < key; });
  return static_cast<size_t>(found - by_address_.begin());
}

void Elevator::Add(Request* request) {
  // Everything that is here may go before it, and as many again.
  const uint64_t patience = std::max<uint64_t>(kLeastPatience, 2 * (by_address_.size() + 1));
  const auto place = static_cast<std::ptrdiff_t>(Find(request->lba, request->sequence));
  by_address_.insert(by_address_.begin() + place,
                     {request->lba, request->sequence, departures_ + patience, request});
}

void Elevator::Remove(const Request& request) {
  const auto place = static_cast<std::ptrdiff_t>(Find(request.lba, request.sequence));
  by_address_.erase(by_address_.begin() + place);
}

Request* Elevator::First(const Request& oldest) const {
  const Entry& first = by_address_[Find(oldest.lba, oldest.sequence)];
  if (departures_ >= first.goes_first_at) return first.request;
  const size_t next = Find(head_, 0);
  return by_address_[next == by_address_.size() ? 0 : next].request;
}

Request* Elevator::After(const Request& request) const {
  const size_t next = Find(request.lba, request.sequence) + 1;
  return by_address_[next == by_address_.size() ? 0 : next].request;
}

void Elevator::Served(const Request& request) {
  ++departures_;
  head_ = request.lba + request.bytes;
}

}  // namespace weir::osd::qos
