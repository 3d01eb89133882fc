#include "common/placement/striper.h"

#include <gtest/gtest.h>

#include <map>

#include "common/base/prng.h"
#include "common/testing/seed.h"

namespace weir {
namespace {

// A byte of a file, followed through the definition of the layout one unit at a time.
std::pair<uint64_t, uint64_t> Locate(const FileLayout& l, uint64_t offset) {
  const uint64_t unit = offset / l.stripe_unit;
  const uint64_t row = unit / l.stripe_count;
  const uint64_t rows_per_object = l.object_size / l.stripe_unit;
  const uint64_t object = row / rows_per_object * l.stripe_count + unit % l.stripe_count;
  return {object, row % rows_per_object * l.stripe_unit + offset % l.stripe_unit};
}

FileLayout RandomLayout(Prng& prng) {
  FileLayout layout;
  layout.stripe_unit = 4096u << prng.Uniform(0, 3);
  layout.stripe_count = static_cast<uint32_t>(prng.Uniform(1, 5));
  layout.object_size = layout.stripe_unit * prng.Uniform(1, 5);
  return layout;
}

TEST(StriperTest, MapRangeCoversTheRangeExactlyAndAgreesWithTheDefinition) {
  Prng prng(weir::testing::TestSeed());
  for (int round = 0; round < 2000; ++round) {
    const FileLayout layout = RandomLayout(prng);
    ASSERT_TRUE(ValidateLayout(layout).ok());
    const uint64_t offset = prng.Uniform(0, 400'000);
    const uint64_t length = prng.Uniform(0, 300'000);
    uint64_t at = offset;
    uint64_t last_object = UINT64_MAX, last_end = 0;
    for (const ObjectExtent& piece : MapRange(layout, offset, length)) {
      ASSERT_EQ(piece.file_offset, at);
      ASSERT_GT(piece.length, 0u);
      ASSERT_LE(piece.object_offset + piece.length, layout.object_size);
      ASSERT_FALSE(piece.object_index == last_object && piece.object_offset == last_end);
      for (const uint64_t inside : {uint64_t{0}, piece.length / 2, piece.length - 1}) {
        const auto [object, object_offset] = Locate(layout, at + inside);
        ASSERT_EQ(object, piece.object_index);
        ASSERT_EQ(object_offset, piece.object_offset + inside);
      }
      at += piece.length;
      last_object = piece.object_index;
      last_end = piece.object_offset + piece.length;
    }
    ASSERT_EQ(at, offset + length);
  }
}

TEST(StriperTest, ObjectSizesAddUpToTheFile) {
  Prng prng(weir::testing::TestSeed());
  for (int round = 0; round < 2000; ++round) {
    const FileLayout layout = RandomLayout(prng);
    const uint64_t size = prng.Uniform(0, 500'000);
    std::map<uint64_t, uint64_t> sizes;
    for (const ObjectExtent& piece : MapRange(layout, 0, size)) {
      sizes[piece.object_index] = piece.object_offset + piece.length;
    }
    uint64_t sum = 0;
    for (uint64_t i = 0; i < 200; ++i) {
      ASSERT_EQ(ObjectSizeAt(layout, i, size), sizes.contains(i) ? sizes[i] : 0) << i;
      sum += ObjectSizeAt(layout, i, size);
    }
    ASSERT_EQ(sum, size);
  }
  EXPECT_EQ(ObjectSizeAt({}, UINT64_MAX, kMaxFileSize), 0u);
}

TEST(StriperTest, TruncationLeavesEveryObjectAtTheLengthOfTheShorterFile) {
  Prng prng(weir::testing::TestSeed());
  for (int round = 0; round < 2000; ++round) {
    const FileLayout layout = RandomLayout(prng);
    const uint64_t old_size = prng.Uniform(0, 500'000);
    const uint64_t size = prng.Uniform(0, old_size);
    const TruncatePlan plan = PlanTruncate(layout, size);
    std::map<uint64_t, uint64_t> cut;
    for (const auto& c : plan.cuts) cut[c.object_index] = c.object_size;
    for (uint64_t i = 0; i < 200; ++i) {
      uint64_t left = i >= plan.first_gone ? 0 : ObjectSizeAt(layout, i, old_size);
      if (cut.contains(i)) left = std::min(left, cut[i]);
      ASSERT_EQ(left, ObjectSizeAt(layout, i, size)) << "object " << i << " size " << size;
    }
  }
  EXPECT_EQ(PlanTruncate({}, 0).first_gone, 0u);
  EXPECT_TRUE(PlanTruncate({}, 4 << 20).cuts.empty());
}

TEST(StriperTest, ALargeFileWithDefaultLayoutIsOneExtentPerObject) {
  const auto pieces = MapRange({}, (4 << 20) - 1, (4 << 20) + 2);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[1], (ObjectExtent{1, 0, 4 << 20, 4 << 20}));
  EXPECT_EQ(MapRange({}, kMaxFileSize - 1, 1)[0].object_index, (kMaxFileSize - 1) / (4 << 20));
}

TEST(StriperTest, BrokenLayoutsAreRefusedByTheRuleTheyBreak) {
  const auto message = [](uint64_t unit, uint32_t count, uint64_t size) {
    const Status status = ValidateLayout({unit, count, size, PoolId(0)});
    EXPECT_EQ(status.code(), ErrorCode::kInvalid);
    return status.message();
  };
  EXPECT_THAT(message(0, 1, 4 << 20), ::testing::HasSubstr("stripe_unit 0"));
  EXPECT_THAT(message(5000, 1, 4 << 20), ::testing::HasSubstr("power of two"));
  EXPECT_THAT(message(8 << 20, 1, 8 << 20), ::testing::HasSubstr("4M"));
  EXPECT_THAT(message(65536, 1, 4096), ::testing::HasSubstr("object_size 4096"));
  EXPECT_THAT(message(65536, 1, 65536 * 3 / 2), ::testing::HasSubstr("multiple"));
  EXPECT_THAT(message(65536, 0, 65536), ::testing::HasSubstr("stripe_count 0"));
  EXPECT_THAT(message(65536, 1025, 65536), ::testing::HasSubstr("1025"));
  EXPECT_THAT(message(4096, 1, UINT64_MAX), ::testing::HasSubstr("object_size"));
}

}  // namespace
}  // namespace weir
