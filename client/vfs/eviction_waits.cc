#include "client/vfs/eviction_waits.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace weir::client {

void EvictionWaits::Await(uint64_t epoch, TimePoint until, Then then) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopped_) {
      waits_.push_back({epoch, until, std::move(then)});
      return;
    }
  }
  then(Status(ErrorCode::kCancelled, "the mount is going away"));
}

void EvictionWaits::Heard(uint64_t epoch) {
  const std::lock_guard lock(mutex_);
  heard_ = std::max(heard_, epoch);
}

void EvictionWaits::Tick(TimePoint now) {
  std::list<Wait> over;
  uint64_t heard = 0;
  {
    const std::lock_guard lock(mutex_);
    heard = heard_;
    for (auto wait = waits_.begin(); wait != waits_.end();) {
      const auto next = std::next(wait);
      if (wait->epoch < heard || wait->until <= now) over.splice(over.end(), waits_, wait);
      wait = next;
    }
  }
  for (const Wait& wait : over) {
    wait.then(wait.epoch < heard ? Status::Ok()
                                 : Status(ErrorCode::kTimedOut, "the MDS evicts this mount"));
  }
}

void EvictionWaits::Stop() {
  std::list<Wait> left;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    left = std::exchange(waits_, {});
  }
  for (const Wait& wait : left) {
    wait.then(Status(ErrorCode::kCancelled, "the mount is going away"));
  }
}

}  // namespace weir::client
