// Ranges over several objects and OSDs, compared with what the file is in one piece.
#include "client/data/range_io.h"

#include <gtest/gtest.h>

#include "client/data/object_reader.h"
#include "common/testing/manual_clock.h"
#include "tests/unit/client/fake_osds.h"

namespace weir::client {
namespace {

constexpr uint64_t kKiB = 1 << 10;

class RangeIoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    osds_.immediate = true;
    osds_.map = MapOf(3);
    io_.SetMap(osds_.map);
  }
  // Two stripes of 4 KiB over objects of 8 KiB.
  static FileTarget File(uint64_t inode) {
    return {InodeId(inode), kBestEffort, LayoutOf(4 * kKiB, 2, 8 * kKiB)};
  }
  void Put(const FileTarget& file, uint64_t offset, const std::string& bytes) {
    const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
    WriteObjects(io_, file, PrepareWrite(file.layout, offset, data, bytes.size()),
                 [](const Result<uint64_t>& grown) { EXPECT_TRUE(grown.ok()); });
  }
  std::string Get(const FileTarget& file, uint64_t offset, uint64_t length) {
    std::string bytes(length, '?');
    ReadObjects(io_, file, offset, length, [&bytes](Result<Segments> read) {
      ASSERT_TRUE(read.ok());
      CopyTo(*read, reinterpret_cast<uint8_t*>(bytes.data()));
    });
    return bytes;
  }
  std::optional<uint64_t> Find(const FileTarget& file, Wanted wanted, uint64_t offset,
                               uint64_t size) {
    std::optional<uint64_t> found;
    FindInObjects(io_, file, wanted, offset, size, [&found](const auto& result) {
      ASSERT_TRUE(result.ok());
      found = *result;
    });
    return found;
  }
  static std::string Pattern(uint64_t size) {
    std::string bytes(size, 0);
    for (uint64_t i = 0; i < size; ++i) bytes[i] = static_cast<char>('a' + i * 7 / 5 % 23);
    return bytes;
  }

  weir::testing::ManualClock clock_;
  FakeOsds osds_;
  ObjectIo io_{clock_, osds_, {}};
};

TEST_F(RangeIoTest, PunchReachesEveryStripe) {
  std::string bytes = Pattern(60 * kKiB);
  Put(File(5), 0, bytes);
  PunchObjects(io_, File(5), 5000, 40'000, [](const auto& freed) { EXPECT_TRUE(freed.ok()); });
  bytes.replace(5000, 40'000, 40'000, 0);
  EXPECT_EQ(Get(File(5), 0, bytes.size()), bytes);
}

TEST_F(RangeIoTest, AllocatesAllOrNothing) {
  const auto blocks = [this] {
    uint64_t count = 0;
    for (const auto& [id, kept] : osds_.kept) count += kept.size();
    return count;
  };
  Allocation first;
  AllocateObjects(io_, File(5), 100, 2 * kBlockSize, false, kBlockSize, [&first](const auto& all) {
    ASSERT_TRUE(all.ok());
    first = *all;
  });
  EXPECT_EQ(blocks(), 3u);
  EXPECT_EQ(first.grown_bytes, 3 * kBlockSize);
  EXPECT_EQ(first.beyond_bytes, 2 * kBlockSize);
  // The last of several objects has no room: what the others kept newly goes, and nothing else.
  osds_.immediate = false;
  Status status;
  AllocateObjects(io_, File(5), 0, 10 * kBlockSize, false, 0,
                  [&status](const auto& all) { status = all.status(); });
  while (osds_.flights.size() > 1) osds_.Answer(0);
  EXPECT_GT(blocks(), 3u);
  osds_.immediate = true;
  osds_.Fail(0, ErrorCode::kNoSpace);
  EXPECT_EQ(status.code(), ErrorCode::kNoSpace);
  EXPECT_EQ(blocks(), 3u);
}

TEST_F(RangeIoTest, FindsDataAndHolesAcrossStripes) {
  const uint64_t size = 100 * kKiB;
  Put(File(5), 10'000, Pattern(30'000));
  EXPECT_EQ(Find(File(5), Wanted::kData, 0, size), 10'000u);
  EXPECT_EQ(Find(File(5), Wanted::kData, 20'000, size), 20'000u);
  EXPECT_EQ(Find(File(5), Wanted::kHole, 20'000, size), 40'960u);  // to the block
  EXPECT_EQ(Find(File(5), Wanted::kHole, 100, size), 100u);
  EXPECT_EQ(Find(File(5), Wanted::kData, 40'960, size), std::nullopt);
  EXPECT_EQ(Find(File(5), Wanted::kHole, 20'000, 40'000), 40'000u);  // the end of the file
  EXPECT_EQ(Find(File(5), Wanted::kHole, 20'000, 30'000), 30'000u);
}

// Goal: a hole of an EiB costs no request per object. Method: count them.
TEST_F(RangeIoTest, WhatNoOsdHasIsLeftOut) {
  const uint64_t far = (uint64_t{1} << 50) + 123;
  Put(File(5), far, "x");
  const uint64_t before = osds_.sent;
  EXPECT_EQ(Find(File(5), Wanted::kData, 1, far + 1), far);
  EXPECT_LT(osds_.sent - before, 1000u);
  EXPECT_EQ(Find(File(5), Wanted::kHole, far, far + 100), far + 100);
  PunchObjects(io_, File(5), 0, kMaxFileSize, [](const auto& freed) { EXPECT_TRUE(freed.ok()); });
  EXPECT_EQ(Get(File(5), far, 1), std::string(1, 0));
  EXPECT_LT(osds_.sent - before, 5000u);
}

TEST_F(RangeIoTest, HolesThatWereLeftOutAreFound) {
  const uint64_t far = uint64_t{1} << 40;
  Put(File(5), 0, Pattern(128 * 4 * kKiB));  // a window of objects, to its end
  Put(File(5), far, "x");
  EXPECT_EQ(Find(File(5), Wanted::kHole, 0, far + 1), 128 * 4 * kKiB);
}

TEST_F(RangeIoTest, CopiesInsideOsdsAndThroughTheMount) {
  const std::string bytes = Pattern(70 * kKiB);
  Put(File(5), 0, bytes);
  for (const uint64_t to : {uint64_t{0}, 12 * kKiB, uint64_t{777}}) {
    const FileTarget target = File(100 + to);
    uint64_t copied = 0;
    CopyObjects(io_, File(5), 3000, target, to, 60'000, [&copied](const Result<uint64_t>& result) {
      ASSERT_TRUE(result.ok());
      copied = *result;
    });
    EXPECT_EQ(copied, 60'000u);
    EXPECT_EQ(Get(target, to, 60'000), bytes.substr(3000, 60'000));
  }
  EXPECT_GT(osds_.copied, 0u);
  EXPECT_LT(osds_.copied, 180'000u);  // some went through the mount
}

TEST_F(RangeIoTest, EveryRequestSaysItsTierAndCopiesBetweenTiersGoThroughTheMount) {
  FileTarget fast = File(5), slow = File(6);
  fast.layout.tier = TierName::FromWire("ssd");
  slow.layout.tier = TierName::FromWire("hdd");
  Put(fast, 0, Pattern(20 * kKiB));
  const auto copied = [](const Result<uint64_t>& count) { EXPECT_EQ(*count, 20 * kKiB); };
  CopyObjects(io_, fast, 0, slow, 0, 20 * kKiB, copied);
  EXPECT_EQ(osds_.copied, 0u);
  EXPECT_EQ(Get(slow, 0, 20 * kKiB), Pattern(20 * kKiB));
  osds_.tiers.clear();
  CopyObjects(io_, fast, 0, fast, 64 * kKiB, 20 * kKiB, copied);
  PunchObjects(io_, fast, 0, 9000, [](const auto& freed) { EXPECT_TRUE(freed.ok()); });
  Find(fast, Wanted::kHole, 0, 84 * kKiB);
  EXPECT_GT(osds_.copied, 0u);
  EXPECT_EQ(osds_.tiers, std::set<std::string>{"ssd"});
}

TEST_F(RangeIoTest, OneCallTakesNoMoreThanItsShare) {
  FileTarget from{InodeId(5), kBestEffort, LayoutOf(4 << 20, 1, 4 << 20)};
  FileTarget to = from;
  to.inode = InodeId(6);
  Result<uint64_t> copied = uint64_t{0};
  CopyObjects(io_, from, 0, to, 0, uint64_t{1} << 40,
              [&](Result<uint64_t> count) { copied = std::move(count); });
  ASSERT_TRUE(copied.ok());
  EXPECT_GT(*copied, 0u);
  EXPECT_LE(*copied, kCopyMost);
}

TEST_F(RangeIoTest, AnErrorOfOneObjectIsTheAnswer) {
  osds_.immediate = false;
  Status answer;
  PunchObjects(io_, File(5), 0, 16 * kKiB,
               [&answer](const auto& freed) { answer = freed.status(); });
  ASSERT_GE(osds_.flights.size(), 2u);
  osds_.Fail(0, ErrorCode::kNoSpace);
  EXPECT_TRUE(answer.ok());
  osds_.AnswerAll();
  EXPECT_EQ(answer.code(), ErrorCode::kNoSpace);
}

}  // namespace
}  // namespace weir::client
