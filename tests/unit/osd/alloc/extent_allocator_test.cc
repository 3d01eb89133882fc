#include "osd/alloc/extent_allocator.h"

#include <gtest/gtest.h>

#include <set>

#include "common/base/prng.h"
#include "common/testing/seed.h"

namespace weir::osd {
namespace {

TEST(ExtentAllocatorTest, LargeRequestsFollowEachOtherInOnePiece) {
  ExtentAllocator allocator(100, 100000);
  EXPECT_EQ(allocator.Allocate(1024), (std::vector<Extent>{{100, 1024}}));
  EXPECT_EQ(allocator.Allocate(256), (std::vector<Extent>{{1124, 256}}));
  const std::vector<Extent> small = allocator.Allocate(1);
  ASSERT_EQ(small.size(), 1u);
  EXPECT_GT(small[0].place, 50000u);  // not in the way of the large ones
}

// Goal: what is overwritten out of place again and again stays together. Method: a device ten times
// as large as the data, which is written thirty times over.
TEST(ExtentAllocatorTest, WhatIsOverwrittenStaysTogether) {
  Prng prng(weir::testing::TestSeed());
  constexpr uint32_t kData = 1 << 17, kObject = 256;
  ExtentAllocator allocator(0, 10 * kData);
  std::vector<Extent> objects(kData / kObject);
  for (Extent& object : objects) object = allocator.Allocate(kObject).at(0);
  for (uint32_t i = 0; i < 30 * kData / kObject; ++i) {
    Extent& object = objects[prng.Uniform(0, objects.size() - 1)];
    const std::vector<Extent> fresh = allocator.Allocate(kObject);
    ASSERT_EQ(fresh.size(), 1u) << "in one piece";
    ASSERT_LT(fresh[0].place, 3 * kData);
    allocator.Free(object);
    object = fresh[0];
  }
}

// Three groups; the first is written in pieces of 64 blocks, of which so many in eight are kept.
std::vector<Extent> AfterASweep(ExtentAllocator::Medium medium, uint32_t kept, uint32_t wanted) {
  constexpr uint32_t kGroup = 32768, kPiece = 64;
  ExtentAllocator allocator(0, 3 * kGroup, medium);
  std::vector<Extent> pieces(kGroup / kPiece);
  for (Extent& piece : pieces) piece = allocator.Allocate(kPiece).at(0);
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (i % 8 < 8 - kept) allocator.Free(pieces[i]);
  }
  return allocator.Allocate(wanted);
}
constexpr auto kFlash = ExtentAllocator::Medium::kFlash;
constexpr auto kPlatter = ExtentAllocator::Medium::kPlatter;

TEST(ExtentAllocatorTest, OnAPlatterWhatIsInTheWayCutsARequest) {
  EXPECT_EQ(AfterASweep(kPlatter, 1, 512), (std::vector<Extent>{{0, 448}, {512, 64}}));
  EXPECT_EQ(AfterASweep(kFlash, 1, 512), (std::vector<Extent>{{32768, 512}}));
  EXPECT_EQ(AfterASweep(kFlash, 1, 448), (std::vector<Extent>{{0, 448}}));
}

TEST(ExtentAllocatorTest, OnAPlatterNoPartIsLessThanAnEighth) {
  EXPECT_EQ(AfterASweep(kPlatter, 1, 4096), (std::vector<Extent>{{32768, 4096}}));
}

TEST(ExtentAllocatorTest, OnAPlatterASweepBeginsAgainWhenTwoThirdsAreFree) {
  EXPECT_EQ(AfterASweep(kPlatter, 3, 64).at(0).place, 32768u);
  EXPECT_EQ(AfterASweep(kPlatter, 2, 64).at(0).place, 0u);
  EXPECT_EQ(AfterASweep(kFlash, 3, 64).at(0).place, 0u);
  EXPECT_EQ(AfterASweep(kFlash, 5, 64).at(0).place, 32768u);
}

TEST(ExtentAllocatorTest, ReservedBlocksAreKeptForTheirOwner) {
  ExtentAllocator allocator(1, 64);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(allocator.Reserve());
  EXPECT_EQ(allocator.free_blocks(), 60u);
  EXPECT_TRUE(allocator.Allocate(61).empty());
  EXPECT_FALSE(allocator.Allocate(60).empty());
  EXPECT_FALSE(allocator.Reserve());
  const uint32_t place = allocator.AllocateReserved();
  allocator.Free({place, 1});
  EXPECT_EQ(allocator.free_blocks(), 1u);
}

TEST(ExtentAllocatorTest, TakeRefusesWhatIsTakenOrOutside) {
  ExtentAllocator allocator(10, 100);
  EXPECT_TRUE(allocator.Take({10, 100}));
  EXPECT_FALSE(allocator.Take({50, 1}));
  EXPECT_FALSE(allocator.Take({9, 1}));
  EXPECT_FALSE(allocator.Take({110, 1}));
  EXPECT_TRUE(allocator.Allocate(1).empty());
}

// Goal: no block is ever given twice, none is lost, and every request that fits is served.
class EitherMediumTest : public ::testing::TestWithParam<ExtentAllocator::Medium> {};
INSTANTIATE_TEST_SUITE_P(, EitherMediumTest, ::testing::Values(kFlash, kPlatter));

TEST_P(EitherMediumTest, NeverGivesABlockTwiceAndLosesNone) {
  Prng prng(weir::testing::TestSeed());
  constexpr uint32_t kFirst = 77, kBlocks = 70001;
  ExtentAllocator allocator(kFirst, kBlocks, GetParam());
  std::vector<bool> taken(kFirst + kBlocks);
  std::vector<Extent> held;
  uint64_t free = kBlocks;
  for (int step = 0; step < 20000; ++step) {
    if (prng.Chance(0.55)) {
      const auto wanted =
          static_cast<uint32_t>(prng.Chance(0.5) ? prng.Uniform(1, 4) : prng.Uniform(1, 1024));
      const std::vector<Extent> extents = allocator.Allocate(wanted);
      ASSERT_EQ(extents.empty(), wanted > free);
      uint32_t got = 0;
      for (const Extent& extent : extents) {
        for (uint32_t i = 0; i < extent.count; ++i) {
          ASSERT_GE(extent.place, kFirst);
          ASSERT_LT(extent.place + i, kFirst + kBlocks);
          ASSERT_FALSE(taken[extent.place + i]);
          taken[extent.place + i] = true;
        }
        got += extent.count;
        held.push_back(extent);
      }
      ASSERT_EQ(got, extents.empty() ? 0 : wanted);
      free -= got;
    } else if (!held.empty()) {
      const size_t i = prng.Uniform(0, held.size() - 1);
      allocator.Free(held[i]);
      for (uint32_t j = 0; j < held[i].count; ++j) taken[held[i].place + j] = false;
      free += held[i].count;
      held[i] = held.back();
      held.pop_back();
    }
    ASSERT_EQ(allocator.free_blocks(), free);
  }
}

}  // namespace
}  // namespace weir::osd
