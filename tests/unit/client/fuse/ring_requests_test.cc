#include "client/fuse/ring_requests.h"

#include <gtest/gtest.h>

namespace weir::client {
namespace {

// Entries are told apart by their addresses alone.
RingEntry* Entry(uintptr_t which) {
  return reinterpret_cast<RingEntry*>(which);  // NOLINT(performance-no-int-to-ptr)
}

TEST(RingRequestsTest, ARequestLeadsToItsEntryOnce) {
  RingRequests requests;
  for (uintptr_t number = 2; number <= 200; number += 2) requests.Add(number, Entry(number));
  EXPECT_EQ(requests.Take(42), Entry(42));
  EXPECT_EQ(requests.Take(42), nullptr) << "answered already";
  EXPECT_EQ(requests.Take(43), nullptr) << "it came by /dev/fuse";
  EXPECT_EQ(requests.Take(44), Entry(44));
}

TEST(RingDepthTest, GrowsBeforeTheLastEntryIsTaken) {
  RingDepth depth({.first = 8, .most = 20});
  EXPECT_EQ(depth.Begin(), 8U);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(depth.Take(), 0U) << i;
  EXPECT_EQ(depth.Take(), 8U) << "one is left";
  EXPECT_EQ(depth.total(), 16U);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(depth.Take(), 0U) << i;
  EXPECT_EQ(depth.Take(), 4U) << "up to the limit";
  for (int i = 0; i < 5; ++i) EXPECT_EQ(depth.Take(), 0U) << "and not beyond";
  EXPECT_EQ(depth.taken(), 20U);
  EXPECT_EQ(depth.total(), 20U);
}

TEST(RingDepthTest, WhoComesAndGoesNeedsNoMore) {
  RingDepth depth({.first = 8, .most = 20});
  (void)depth.Begin();
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(depth.Take(), 0U);
    depth.Return();
  }
  EXPECT_EQ(depth.total(), 8U);
}

TEST(RingDepthTest, MemoryBoundsIt) {
  constexpr uint64_t kMib = 1 << 20;
  const auto plenty = RingDepth::LimitsOf(uint64_t{64} << 30, 2 * kMib);
  EXPECT_EQ(plenty.first, 128U);
  EXPECT_EQ(plenty.most, 4096U);
  const auto some = RingDepth::LimitsOf(300 * 2 * kMib, 2 * kMib);
  EXPECT_EQ(some.first, 128U);
  EXPECT_EQ(some.most, 300U);
  EXPECT_EQ(RingDepth::LimitsOf(127 * 2 * kMib, 2 * kMib).first, 0U) << "/dev/fuse then";
}

}  // namespace
}  // namespace weir::client
