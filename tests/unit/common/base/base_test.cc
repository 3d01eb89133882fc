#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/crc32c.h"
#include "common/base/ids.h"
#include "common/base/prng.h"
#include "common/base/result.h"
#include "common/testing/manual_clock.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

TEST(Crc32cTest, MatchesRfc3720AndSplitsAnywhere) {
  const char text[] = "123456789";
  EXPECT_EQ(Crc32c(text, 9), 0xe3069283u);
  for (size_t cut = 0; cut <= 9; ++cut) {
    EXPECT_EQ(Crc32c(text + cut, 9 - cut, Crc32c(text, cut)), 0xe3069283u) << cut;
  }
}

TEST(Crc32cTest, ChecksumsOfBlocksJoinToThatOfAllBytes) {
  Prng prng(3);
  std::vector<uint8_t> bytes(300 * Crc32cOfBlocks::kBlock);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(prng.Next());
  Crc32cOfBlocks joined;
  for (size_t at = 0; at < bytes.size(); at += Crc32cOfBlocks::kBlock) {
    EXPECT_EQ(joined.joined(), Crc32c(bytes.data(), at)) << at;
    joined.Add(Crc32c(bytes.data() + at, Crc32cOfBlocks::kBlock));
  }
  EXPECT_EQ(joined.joined(), Crc32c(bytes.data(), bytes.size()));
}

TEST(Crc32cTest, CopyAndChecksumAgreesWithChecksumOfTheCopy) {
  Prng prng(1);
  for (size_t size : {0, 1, 4095, 4096, 16384, 16385, 100000}) {
    std::vector<uint8_t> from(size), to(size);
    for (uint8_t& byte : from) byte = static_cast<uint8_t>(prng.Next());
    EXPECT_EQ(CopyCrc32c(to.data(), from.data(), size), Crc32c(from.data(), size));
    EXPECT_EQ(from, to);
  }
}

TEST(StatusTest, ErrnoRoundTripsForEveryCodeThatOwnsOne) {
  EXPECT_EQ(ToErrno(ErrorCode::kNotFound), ENOENT);
  EXPECT_EQ(FromErrno(ENOTEMPTY), ErrorCode::kNotEmpty);
  EXPECT_EQ(weir::FromErrno(12345), ErrorCode::kIo);
  EXPECT_EQ(Status(ErrorCode::kIo, "x").Annotate("reading y").message(), "reading y: x");
  EXPECT_TRUE(Status::Ok().Annotate("reading y").ok());
}

TEST(BufferTest, SlicesShareBytesAndOutliveTheWhole) {
  Buffer slice;
  {
    Buffer whole = Buffer::Aligned(100);
    EXPECT_TRUE(whole.IsAligned());
    whole.data()[10] = 7;
    slice = whole.Slice(10, 5);
  }
  EXPECT_EQ(slice.data()[0], 7);
  EXPECT_EQ(slice.size(), 5u);
  EXPECT_DEATH((void)slice.Slice(3, 3), "slice outside the buffer");
}

TEST(PrngTest, SameSeedSameSequenceAndUniformStaysInRange) {
  Prng a(9), b(9), c(10);
  EXPECT_EQ(a.Next(), b.Next());
  EXPECT_NE(a.Next(), c.Next());
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(a.Uniform(5, 9));
  EXPECT_EQ(seen, (std::set<uint64_t>{5, 6, 7, 8, 9}));
}

TEST(PrngTest, ScopedSeedsRepeatAndEndWithTheirScope) {
  const auto two = [](uint64_t seed) {
    const ScopedSeeds seeds(seed);
    const uint64_t first = RandomSeed();
    return std::pair(first, RandomSeed());
  };
  EXPECT_EQ(two(3), two(3));
  EXPECT_NE(two(3), two(4));
  const ScopedSeeds outer(5);
  const auto inner = two(5);
  EXPECT_EQ(RandomSeed(), inner.first);  // the outer ones go on where they were
}

TEST(ManualClockTest, MovesOnlyWhenTold) {
  testing::ManualClock clock;
  EXPECT_EQ(clock.Now(), TimePoint{0});
  clock.Advance(3s);
  EXPECT_EQ(clock.Now() - TimePoint{0}, 3s);
}

}  // namespace
}  // namespace weir
