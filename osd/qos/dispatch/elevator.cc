#include "osd/qos/dispatch/elevator.h"

#include <algorithm>

namespace weir::osd::qos {

uint64_t Elevator::GoesFirstAt(size_t here) const {
  return departures_ + std::max<uint64_t>(kLeastPatience, 2 * (here + 1));
}

void Elevator::Add(Request* request, bool promised) {
  request->goes_first_at = GoesFirstAt(promised_.size() + others_.size());
  request->goes_first_of_promised_at = GoesFirstAt(promised_.size());
  (promised ? promised_ : others_).Insert(KeyOf(*request), request);
}

void Elevator::Remove(const Request& request, bool promised) {
  (promised ? promised_ : others_).Remove(KeyOf(request));
}

Request* Elevator::From(const Tree& tree, const TreeKey& key) {
  if (tree.empty()) return nullptr;
  Request* const* next = tree.FirstFrom(key);
  return next == nullptr ? tree.First() : *next;
}

Request* Elevator::From(const TreeKey& key) const {
  Request* promised = From(promised_, key);
  Request* other = From(others_, key);
  if (promised == nullptr || other == nullptr) return promised == nullptr ? other : promised;
  // Behind the head before those that a new stroke brings.
  const bool promised_later = KeyOf(*promised) < key;
  const bool other_later = KeyOf(*other) < key;
  if (promised_later != other_later) return promised_later ? other : promised;
  return KeyOf(*promised) < KeyOf(*other) ? promised : other;
}

Request* Elevator::First(Request* oldest) const {
  if (departures_ >= oldest->goes_first_at) return oldest;
  return From({head_, 0});
}

Request* Elevator::FirstPromised(Request* oldest) const {
  if (departures_ >= oldest->goes_first_of_promised_at) return oldest;
  return From(promised_, {head_, 0});
}

}  // namespace weir::osd::qos
