#include "client/fuse/early_interrupts.h"

#include <algorithm>

namespace weir::client {

void EarlyInterrupts::Remember(uint64_t number) {
  numbers_.push_back(number);
  if (numbers_.size() > kMost) numbers_.pop_front();
}

bool EarlyInterrupts::Take(uint64_t number) {
  const auto it = std::find(numbers_.begin(), numbers_.end(), number);
  if (it == numbers_.end()) return false;
  numbers_.erase(it);
  return true;
}

}  // namespace weir::client
