#include "client/takeover/record_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

namespace weir::client {
namespace {

constexpr uint64_t kArea = 8192;
constexpr uint64_t kFirstArea = 4096;

class RecordFileTest : public ::testing::Test {
 protected:
  RecordFileTest() : fd_(*RecordFile::Create(kArea)) {}
  ~RecordFileTest() override { close(fd_); }

  RecordFile Open() { return std::move(*RecordFile::Open(fd_)); }
  std::vector<std::string> All() {
    std::vector<std::string> all;
    Open().Read([&](std::string_view record) { all.emplace_back(record); });
    return all;
  }
  std::string Bytes() {
    std::string bytes(kFirstArea + 2 * kArea, '\0');
    EXPECT_EQ(pread(fd_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    return bytes;
  }
  void SetBytes(const std::string& bytes) {
    EXPECT_EQ(pwrite(fd_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }

  const int fd_;
};

TEST_F(RecordFileTest, AnotherReaderFindsWhatWasAppended) {
  RecordFile file = Open();
  EXPECT_TRUE(file.Append("opened 1"));
  EXPECT_TRUE(file.Append(std::string(100, 'x')));
  EXPECT_EQ(All(), (std::vector<std::string>{"opened 1", std::string(100, 'x')}));
  // And goes on behind it.
  EXPECT_TRUE(Open().Append("closed 1"));
  EXPECT_EQ(All().size(), 3u);
}

// Goal: wherever a writer stops, a reader gets all records that were whole, and no other.
// Method: the area as it is after three appends, cut at every byte: what lies behind reads as
// zeros.
TEST_F(RecordFileTest, ACutAtAnyByteLeavesTheRecordsBeforeIt) {
  const std::vector<std::string> records = {"a", std::string(37, 'b'), "cccccccc"};
  std::vector<uint64_t> ends;  // of the last byte that counts
  RecordFile file = Open();
  for (const std::string& record : records) {
    const uint64_t begin = file.used();
    ASSERT_TRUE(file.Append(record));
    ends.push_back(begin + 8 + record.size());
  }
  const std::string whole = Bytes();
  for (uint64_t cut = 0; cut <= ends.back(); ++cut) {
    std::string bytes = whole;
    bytes.replace(kFirstArea + cut, kArea - cut, kArea - cut, '\0');
    SetBytes(bytes);
    std::vector<std::string> expected;
    for (size_t i = 0; i < records.size() && ends[i] <= cut; ++i) expected.push_back(records[i]);
    ASSERT_EQ(All(), expected) << "cut at " << cut;
    ASSERT_TRUE(Open().Append("next"));
    expected.emplace_back("next");
    ASSERT_EQ(All(), expected) << "cut at " << cut;
  }
}

TEST_F(RecordFileTest, ADamagedRecordEndsIt) {
  RecordFile file = Open();
  ASSERT_TRUE(file.Append("good"));
  const uint64_t second = kFirstArea + file.used();
  ASSERT_TRUE(file.Append("bad"));
  std::string bytes = Bytes();
  bytes[second + 8] ^= 1;
  SetBytes(bytes);
  EXPECT_EQ(All(), std::vector<std::string>{"good"});
}

TEST_F(RecordFileTest, RewriteTakesThePlaceOfAll) {
  RecordFile file = Open();
  for (int round = 0; round < 3; ++round) {  // into areas that were used before, too
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(file.Append("event " + std::to_string(i)));
    ASSERT_TRUE(file.Rewrite({"sum", "of them"}));
    EXPECT_EQ(All(), (std::vector<std::string>{"sum", "of them"}));
  }
  ASSERT_TRUE(file.Append("more"));
  EXPECT_EQ(All(), (std::vector<std::string>{"sum", "of them", "more"}));
}

TEST_F(RecordFileTest, WhatDoesNotFitChangesNothing) {
  RecordFile file = Open();
  ASSERT_TRUE(file.Append("first"));
  EXPECT_FALSE(file.Append(std::string(kArea, 'x')));
  EXPECT_FALSE(file.Rewrite({"other", std::string(kArea, 'x')}));
  EXPECT_EQ(All(), std::vector<std::string>{"first"});
  size_t count = 1;
  while (file.Append(std::string(100, 'y'))) ++count;
  EXPECT_EQ(All().size(), count);
}

TEST_F(RecordFileTest, ASpoiltOneIsRefused) {
  Open().Spoil();
  EXPECT_EQ(RecordFile::Open(fd_).code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace weir::client
