// Goal: a position says where it stands exactly and where the listing ends nearly, is the same
// however often it was told, and fits what programs can keep.
#include "client/vfs/listing_position.h"

#include <gtest/gtest.h>

#include <random>

#include "common/testing/seed.h"

namespace weir::client {
namespace {

constexpr uint64_t kCookiesEnd = uint64_t{1} << 48;

void CheckPosition(uint64_t at, uint64_t end) {
  const uint64_t told = EncodePosition({at, end});
  const ListingPosition found = DecodePosition(told);
  EXPECT_EQ(found.at, at) << end;
  EXPECT_GE(found.end, end);
  EXPECT_LE(found.end - end, end / 128);
  EXPECT_EQ(EncodePosition(found), told) << at << " " << end;
  EXPECT_LT(told, uint64_t{1} << 63);
}

TEST(ListingPositionTest, SaysWhereItStandsAndWhereItEndsForEveryNumber) {
  for (uint64_t end = 1; end < 3000; ++end) {
    CheckPosition(0, end);
    CheckPosition(end - 1, end);
  }
  for (unsigned bit = 10; bit < 48; ++bit) {
    const uint64_t power = uint64_t{1} << bit;
    for (uint64_t end = power - 300; end <= power + 300; ++end) CheckPosition(end - 1, end);
  }
  CheckPosition(kCookiesEnd - 2, kCookiesEnd - 1);
  std::mt19937_64 random(testing::TestSeed());
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t end = 1 + (random() % (kCookiesEnd - 1) >> random() % 47);
    CheckPosition(random() % end, end);
  }
}

TEST(ListingPositionTest, SmallOnesFitProgramsOf32Bits) {
  EXPECT_LT(EncodePosition({520'000, 520'001}), uint64_t{1} << 31);
}

TEST(ListingPositionTest, OtherEndsGiveOtherNumbers) {
  EXPECT_NE(EncodePosition({50, 100}), EncodePosition({50, 101}));
  EXPECT_NE(EncodePosition({50, 5000}), EncodePosition({50, 5100}));
}

TEST(ListingPositionTest, PlainNumbersKnowNoEnd) {
  for (const uint64_t plain : {uint64_t{0}, uint64_t{2}, uint64_t{5018}, (uint64_t{1} << 30) - 1}) {
    EXPECT_EQ(DecodePosition(plain).at, plain);
    EXPECT_EQ(DecodePosition(plain).end, 0u);
  }
}

}  // namespace
}  // namespace weir::client
