// AfterAll: what runs when several things that end in any order, on any thread, have ended.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

namespace weir {

// Runs `then` when it is called for the `count`-th time. Requires count > 0.
inline std::function<void()> AfterAll(size_t count, std::function<void()> then) {
  auto missing = std::make_shared<std::atomic<size_t>>(count);
  return [missing, then = std::move(then)] {
    if (missing->fetch_sub(1) == 1) then();
  };
}

}  // namespace weir
