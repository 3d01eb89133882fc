// TestSeed: the seed of a randomised test, TEST_SEED=<n> to rerun one; it prints itself on failure.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>

namespace weir::testing {

inline uint64_t TestSeed(uint64_t default_seed = 42) {
  const char* text = std::getenv("TEST_SEED");
  const uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 0) : default_seed;
  ::testing::Test::RecordProperty("seed", std::to_string(seed));
  return seed;
}

}  // namespace weir::testing
