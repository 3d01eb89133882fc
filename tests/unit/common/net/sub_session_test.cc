#include "common/net/sub_session.h"

#include <gtest/gtest.h>

#include <set>

namespace weir::net {
namespace {

// Also of a number that somebody has drawn without leaving room for the connection's.
TEST(SubSessionTest, EveryConnectionHasItsNumberAndAllHaveOneSession) {
  for (const uint64_t number : {uint64_t{0}, uint64_t{7}, ~uint64_t{0}, uint64_t{5} << 61 | 9}) {
    std::set<uint64_t> numbers;
    for (uint32_t i = 0; i < kMostConnections; ++i) {
      numbers.insert(OnConnection(number, i));
      EXPECT_EQ(SessionOf(OnConnection(number, i)), SessionOf(number));
    }
    EXPECT_EQ(numbers.size(), kMostConnections);
    EXPECT_EQ(OnConnection(number, 0), number);
  }
  EXPECT_NE(SessionOf(7), SessionOf(8));
}

}  // namespace
}  // namespace weir::net
