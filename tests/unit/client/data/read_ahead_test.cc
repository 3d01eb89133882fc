// Goal: sequential readers find their data fetched, others cost nothing, nothing stale is served,
// memory is bounded. Method: a fetcher whose answers the test releases.
#include "client/data/read_ahead.h"

#include <gtest/gtest.h>

namespace weir::client {
namespace {

class ReadAheadTest : public ::testing::Test {
 protected:
  struct Fetched {
    uint64_t offset;
    uint64_t length;
    bool ahead;
    ReadCallback callback;
  };
  static constexpr uint64_t kSize = 1000;

  std::string ByteAt(uint64_t offset, uint64_t length) const {
    std::string text;
    for (uint64_t i = offset; i < offset + length; ++i) {
      text.push_back(static_cast<char>('a' + (i + version_) % 26));
    }
    return text;
  }
  // Reads and, when answered, notes what was seen.
  void Read(ReadAhead& ahead, uint64_t offset, uint64_t length) {
    ahead.Read(
        stream_, ClassId(16), offset, length, kSize, version_,
        [this](uint64_t from, uint64_t bytes, bool is_ahead, ReadCallback done) {
          fetches_.push_back({from, bytes, is_ahead, std::move(done)});
        },
        [this](const Result<Segments>& data) {
          ASSERT_TRUE(data.ok());
          seen_.emplace_back(TotalSize(*data), '\0');
          CopyTo(*data, reinterpret_cast<uint8_t*>(seen_.back().data()));
        });
  }
  void AnswerAll() {
    auto fetches = std::move(fetches_);
    fetches_.clear();
    for (Fetched& fetch : fetches) {
      fetch.callback(Segments{Buffer::CopyOf(ByteAt(fetch.offset, fetch.length))});
    }
  }

  ReadAhead::Stream stream_;
  uint64_t version_ = 1;
  std::vector<Fetched> fetches_;
  std::vector<std::string> seen_;
};

TEST_F(ReadAheadTest, ASequentialReaderIsServedFromWhatWasFetchedAhead) {
  ReadAhead ahead({.ahead_bytes = 200, .chunk_bytes = 100, .bytes_max = 1000});
  Read(ahead, 0, 50);
  EXPECT_EQ(fetches_.size(), 1u) << "one read is no pattern";
  Read(ahead, 50, 50);
  ASSERT_GT(fetches_.size(), 2u);
  AnswerAll();
  Read(ahead, 100, 50);
  ASSERT_EQ(seen_.size(), 3u) << "answered without a fetch of its own";
  EXPECT_EQ(seen_[2], ByteAt(100, 50));
  Read(ahead, 150, 50);
  ASSERT_EQ(seen_.size(), 4u);
  EXPECT_EQ(seen_[3], ByteAt(150, 50));
}

TEST_F(ReadAheadTest, AReaderThatCatchesUpWaitsForTheFetchOnItsWay) {
  ReadAhead ahead({.ahead_bytes = 200, .chunk_bytes = 100, .bytes_max = 1000});
  Read(ahead, 0, 50);
  Read(ahead, 50, 50);
  const size_t fetches = fetches_.size();
  Read(ahead, 100, 50);
  EXPECT_EQ(seen_.size(), 0u);
  for (size_t i = 0; i < fetches; ++i) EXPECT_NE(fetches_[i].length, 0u);
  AnswerAll();
  ASSERT_EQ(seen_.size(), 3u);
}

TEST_F(ReadAheadTest, RandomReadsFetchOnlyWhatTheyAsk) {
  ReadAhead ahead({.ahead_bytes = 200, .chunk_bytes = 100, .bytes_max = 1000});
  for (uint64_t offset : {500, 100, 900, 300}) Read(ahead, offset, 10);
  EXPECT_EQ(fetches_.size(), 4u);
  EXPECT_EQ(ahead.used_bytes(), 0u);
}

TEST_F(ReadAheadTest, WhatWasFetchedBeforeAWriteIsNotServedAfterIt) {
  ReadAhead ahead({.ahead_bytes = 200, .chunk_bytes = 100, .bytes_max = 1000});
  Read(ahead, 0, 50);
  Read(ahead, 50, 50);
  AnswerAll();
  seen_.clear();
  version_ = 2;
  Read(ahead, 100, 50);
  EXPECT_TRUE(seen_.empty()) << "served from before the write";
  AnswerAll();
  ASSERT_EQ(seen_.size(), 1u);
  EXPECT_EQ(seen_[0], ByteAt(100, 50));
}

TEST_F(ReadAheadTest, StopsAtTheEndOfTheFileAndAtItsMemory) {
  ReadAhead ahead({.ahead_bytes = 5000, .chunk_bytes = 100, .bytes_max = 1200});
  Read(ahead, 0, 50);
  Read(ahead, 50, 50);
  EXPECT_EQ(ahead.used_bytes(), 300u) << "a quarter, which is what a class may have";
  for (const Fetched& fetch : fetches_) EXPECT_LE(fetch.offset + fetch.length, kSize);
  AnswerAll();
  Read(ahead, 900, 50);  // a jump lets go of everything
  EXPECT_EQ(ahead.used_bytes(), 0u);
}

TEST_F(ReadAheadTest, AClassThatHasFilledItsShareLeavesTheOthersTheirs) {
  ReadAhead ahead({.ahead_bytes = 400, .chunk_bytes = 100, .bytes_max = 1600});
  std::vector<ReadAhead::Stream> hogs(8);
  const auto read = [&](ReadAhead::Stream& stream, ClassId class_id, uint64_t offset) {
    ahead.Read(
        stream, class_id, offset, 50, kSize, version_,
        [this](uint64_t from, uint64_t bytes, bool is_ahead, ReadCallback done) {
          fetches_.push_back({from, bytes, is_ahead, std::move(done)});
        },
        [](const Result<Segments>&) {});
  };
  for (ReadAhead::Stream& hog : hogs) {
    read(hog, ClassId(16), 0);
    read(hog, ClassId(16), 50);
  }
  EXPECT_EQ(ahead.used_bytes(), 400u);
  ReadAhead::Stream other;
  read(other, ClassId(17), 0);
  read(other, ClassId(17), 50);
  EXPECT_EQ(ahead.used_bytes(), 800u) << "the neighbour's read-ahead was crowded out";
  AnswerAll();
}

}  // namespace
}  // namespace weir::client
