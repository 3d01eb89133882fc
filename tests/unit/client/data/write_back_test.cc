// Goal: buffered writes reach the OSDs in an order in which the newest bytes win, within bounded
// memory, and no failure is lost. Method: random writes, flushes and reads with answers in random
// order, against a plain string; then the rules one by one.
#include "client/data/write_back.h"

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "common/testing/manual_clock.h"
#include "common/testing/seed.h"

namespace weir::client {
namespace {

using namespace std::chrono_literals;

struct Flight {
  InodePtr inode;
  OpenerPtr opener;
  uint64_t offset;
  Buffer data;
  bool aged;
  WriteCallback done;
};

class WriteBackTest : public ::testing::Test {
 protected:
  void Start(WriteBack::Options options) {
    write_back_ = std::make_unique<WriteBack>(
        clock_, options,
        [this](const InodePtr& inode, const OpenerPtr& opener, uint64_t offset, Buffer data,
               bool aged, WriteCallback done) {
          flights_.push_back({inode, opener, offset, std::move(data), aged, std::move(done)});
        });
  }
  static std::span<const uint8_t> Bytes(const std::string& text) {
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
  }
  void Write(const InodePtr& inode, uint64_t offset, const std::string& text,
             const WriteBack::Writer& writer = {nullptr, ClassId(16)}) {
    ++asked_;
    write_back_->Write(inode, writer, offset, Bytes(text), [this](const Status& status) {
      ASSERT_TRUE(status.ok());
      ++accepted_;
    });
  }
  // Lands on `disk_`, or is lost with an error.
  void Land(size_t place, ErrorCode code = ErrorCode::kOk) {
    Flight flight = std::move(flights_.at(place));
    flights_.erase(flights_.begin() + static_cast<ptrdiff_t>(place));
    if (code == ErrorCode::kOk) {
      std::string& disk = disk_[flight.inode->id()];
      if (disk.size() < flight.offset + flight.data.size()) {
        disk.resize(flight.offset + flight.data.size());
      }
      disk.replace(flight.offset, flight.data.size(), flight.data.view());
    }
    flight.done(code == ErrorCode::kOk ? Status::Ok() : Status(code, "told to fail"));
  }
  // What a reader of the whole file sees.
  std::string Read(const InodePtr& inode, size_t size) {
    std::string seen = disk_[inode->id()];
    seen.resize(size);
    for (const auto& piece : write_back_->Overlapping(inode->id(), 0, size)) {
      seen.replace(piece.offset, piece.data.size(), piece.data.view());
    }
    return seen;
  }

  testing::ManualClock clock_;
  std::unique_ptr<WriteBack> write_back_;
  std::vector<Flight> flights_;
  std::map<InodeId, std::string> disk_;
  int asked_ = 0;
  int accepted_ = 0;
};

TEST_F(WriteBackTest, ReadersAlwaysSeeTheNewestBytesAndSoDoTheOsdsInTheEnd) {
  Prng prng(weir::testing::TestSeed());
  for (int round = 0; round < 40; ++round) {
    disk_.clear();
    Start({.bytes_max = 8192, .run_bytes = 256, .block_bytes = 1});
    const auto inode = std::make_shared<Inode>(InodeId(5));
    std::string model;
    for (int step = 0; step < 300; ++step) {
      const uint64_t choice = prng.Uniform(0, 9);
      if (choice < 5 && asked_ == accepted_) {
        const uint64_t offset = prng.Uniform(0, 3000);
        std::string text(prng.Uniform(1, 700), '\0');
        for (char& byte : text) byte = static_cast<char>(prng.Uniform('a', 'z'));
        if (model.size() < offset + text.size()) model.resize(offset + text.size());
        model.replace(offset, text.size(), text);
        Write(inode, offset, text);
      } else if (choice < 8 && !flights_.empty()) {
        Land(prng.Uniform(0, flights_.size() - 1));
      } else if (choice == 8) {
        clock_.Advance(1s);
        write_back_->Tick();
      }
      for (size_t a = 0; a < flights_.size(); ++a) {
        for (size_t b = a + 1; b < flights_.size(); ++b) {
          ASSERT_FALSE(flights_[a].offset < flights_[b].offset + flights_[b].data.size() &&
                       flights_[b].offset < flights_[a].offset + flights_[a].data.size())
              << "two overlapping writes on their way at once";
        }
      }
      if (asked_ == accepted_) {
        ASSERT_EQ(Read(inode, model.size()), model) << "step " << step;
      }
      ASSERT_LE(write_back_->held_bytes(), 8192u);
    }
    bool flushed = false;
    write_back_->Flush(inode->id(), [&] { flushed = true; });
    while (!flights_.empty()) Land(prng.Uniform(0, flights_.size() - 1));
    ASSERT_TRUE(flushed || asked_ != accepted_);
    write_back_->Flush(inode->id(), [] {});
    while (!flights_.empty()) Land(0);
    ASSERT_EQ(asked_, accepted_);
    disk_[inode->id()].resize(model.size());
    ASSERT_EQ(disk_[inode->id()], model);
    ASSERT_EQ(write_back_->held_bytes(), 0u);
    ASSERT_FALSE(write_back_->Holds(inode->id()));
  }
}

TEST_F(WriteBackTest, SmallNeighboursLeaveAsOneFullRun) {
  Start({.run_bytes = 1024});
  const auto inode = std::make_shared<Inode>(InodeId(5));
  for (uint64_t i = 0; i < 16; ++i) Write(inode, i * 128, std::string(128, 'x'));
  ASSERT_EQ(flights_.size(), 2u);
  EXPECT_EQ(flights_[0].offset, 0u);
  EXPECT_EQ(flights_[0].data.size(), 1024u);
  EXPECT_EQ(flights_[1].offset, 1024u);
  EXPECT_EQ(flights_[1].data.size(), 1024u);
}

TEST_F(WriteBackTest, DataLeavesBeforeItIsFiveSecondsOld) {
  Start({});
  const auto inode = std::make_shared<Inode>(InodeId(5));
  Write(inode, 0, "old");
  clock_.Advance(3s);
  write_back_->Tick();
  EXPECT_TRUE(flights_.empty());
  Write(inode, 1, "l");  // touching it does not make it younger
  clock_.Advance(1500ms);
  write_back_->Tick();
  ASSERT_EQ(flights_.size(), 1u);
  EXPECT_EQ(flights_[0].data.view(), "old");
}

TEST_F(WriteBackTest, WritersWaitWhenTheirClassHasFilledItsShareAndOthersDoNot) {
  Start({.bytes_max = 4000, .run_bytes = 1000, .block_bytes = 1});
  const auto hog = std::make_shared<Inode>(InodeId(5));
  const auto other = std::make_shared<Inode>(InodeId(6));
  const WriteBack::Writer neighbour{nullptr, ClassId(17)};
  Write(hog, 0, std::string(1000, 'a'));
  EXPECT_EQ(accepted_, 1);
  Write(hog, 1000, std::string(1000, 'b'));
  EXPECT_EQ(accepted_, 1) << "a quarter of the memory is all a class may hold";
  Write(other, 0, std::string(500, 'c'), neighbour);
  EXPECT_EQ(accepted_, 2);
  Land(0);
  EXPECT_EQ(accepted_, 3);
}

TEST_F(WriteBackTest, OnesClassThatMustWaitDoesNotSendOffAnothersHalfFullRuns) {
  Start({.bytes_max = 4000, .run_bytes = 1000, .block_bytes = 1});
  const auto hog = std::make_shared<Inode>(InodeId(5));
  const auto other = std::make_shared<Inode>(InodeId(6));
  Write(other, 0, std::string(500, 'c'), {nullptr, ClassId(17)});
  Write(hog, 0, std::string(900, 'a'));
  Write(hog, 900, std::string(1000, 'b'));
  ASSERT_EQ(flights_.size(), 1u);
  EXPECT_EQ(flights_[0].inode, hog);
}

TEST_F(WriteBackTest, WhatTwoWritersOfAFileWroteLeavesInTheNameOfEach) {
  Start({});
  const auto inode = std::make_shared<Inode>(InodeId(5));
  const auto one = std::make_shared<Opener>(1, 1, std::vector<gid_t>(), 0);
  const auto two = std::make_shared<Opener>(2, 2, std::vector<gid_t>(), 0);
  Write(inode, 0, "aaaa", {one, ClassId(16)});
  Write(inode, 4, "bbbb", {two, ClassId(17)});
  Write(inode, 8, "BBBB", {two, ClassId(17)});
  write_back_->Flush(inode->id(), [] {});
  ASSERT_EQ(flights_.size(), 2u);
  EXPECT_EQ(flights_[0].opener, one);
  EXPECT_EQ(flights_[0].data.view(), "aaaa");
  EXPECT_EQ(flights_[1].opener, two);
  EXPECT_EQ(flights_[1].data.view(), "bbbbBBBB");
}

TEST_F(WriteBackTest, AWriteWhoseProcessWasKilledGivesItsPlaceToTheNext) {
  Start({.bytes_max = 4000, .run_bytes = 1000, .block_bytes = 1});
  const auto inode = std::make_shared<Inode>(InodeId(5));
  const WriteBack::Writer writer{nullptr, ClassId(16)};
  Write(inode, 0, std::string(900, 'a'));
  const auto dead = std::make_shared<std::atomic<bool>>(false);
  Status told;
  write_back_->Write(
      inode, writer, 2000, Bytes(std::string(1000, 'b')),
      [&told](const Status& status) { told = status; }, dead);
  Write(inode, 900, std::string(50, 'c'));
  EXPECT_EQ(accepted_, 1) << "behind the one that waits";
  write_back_->DropAbandoned();
  EXPECT_TRUE(told.ok()) << "it is alive";
  *dead = true;
  write_back_->DropAbandoned();
  EXPECT_EQ(told.code(), ErrorCode::kCancelled);
  EXPECT_EQ(accepted_, 2);
}

TEST_F(WriteBackTest, AFailureIsToldOnceAndEndsTheFlush) {
  Start({});
  const auto inode = std::make_shared<Inode>(InodeId(5));
  Write(inode, 0, "data");
  bool flushed = false;
  write_back_->Flush(inode->id(), [&] { flushed = true; });
  ASSERT_EQ(flights_.size(), 1u);
  Land(0, ErrorCode::kNoSpace);
  EXPECT_TRUE(flushed);
  std::atomic<uint64_t> mark{0};
  EXPECT_EQ(inode->TakeError(&mark).code(), ErrorCode::kNoSpace);
  EXPECT_TRUE(inode->TakeError(&mark).ok());
  EXPECT_EQ(write_back_->held_bytes(), 0u);
}

TEST_F(WriteBackTest, ASmallFileTakesAWholeBlockOfTheMemory) {
  Start({.bytes_max = 32'768, .run_bytes = 4096, .block_bytes = 4096});
  const auto one = std::make_shared<Inode>(InodeId(5)), two = std::make_shared<Inode>(InodeId(6));
  Write(one, 0, "a");
  Write(one, 1, "b");
  EXPECT_EQ(write_back_->held_bytes(), 4096u);
  Write(two, 0, "c");
  EXPECT_EQ(write_back_->held_bytes(), 8192u);
  Write(std::make_shared<Inode>(InodeId(7)), 0, "d");
  EXPECT_EQ(accepted_, 3);
  EXPECT_EQ(flights_.size(), 2u);
}

TEST_F(WriteBackTest, WhatIsDroppedNeverLeavesAndGivesItsMemoryBack) {
  Start({.bytes_max = 4000, .run_bytes = 1000, .block_bytes = 1});
  const auto inode = std::make_shared<Inode>(InodeId(5));
  const auto other = std::make_shared<Inode>(InodeId(6));
  Write(inode, 0, std::string(100, 'a'));
  bool flushed = false;
  write_back_->Flush(inode->id(), [&] { flushed = true; });
  ASSERT_EQ(flights_.size(), 1u);
  Write(inode, 100, std::string(700, 'b'));
  write_back_->Drop(inode->id());
  EXPECT_FALSE(flushed) << "one is on its way";
  EXPECT_EQ(write_back_->held_bytes(), 100u);
  Write(other, 0, std::string(900, 'c'));
  EXPECT_EQ(accepted_, 3);
  Land(0);
  EXPECT_TRUE(flushed);
  EXPECT_FALSE(write_back_->Holds(inode->id()));
  EXPECT_TRUE(flights_.empty());
  write_back_->Drop(inode->id());
}

TEST_F(WriteBackTest, AFlushDoesNotWaitForWhatIsWrittenLater) {
  Start({});
  const auto inode = std::make_shared<Inode>(InodeId(5));
  Write(inode, 0, "early");
  bool flushed = false;
  write_back_->Flush(inode->id(), [&] { flushed = true; });
  Write(inode, 100, "late");
  Land(0);
  EXPECT_TRUE(flushed);
  EXPECT_TRUE(write_back_->Holds(inode->id()));
}

// However full others leave the memory: a class whose own disk is quick must not wait for them.
TEST_F(WriteBackTest, ManyThrottledClassesLeaveANewcomerItsOwn) {
  constexpr size_t kMiB = 1 << 20;
  Start({.bytes_max = 16 * kMiB, .run_bytes = kMiB});
  const auto inode = std::make_shared<Inode>(InodeId(5));
  uint64_t at = 0;
  for (uint32_t id = 16; id < 20; ++id) {
    for (int i = 0; i < 4; ++i) {
      Write(inode, at++ * kMiB, std::string(kMiB, 'h'), {nullptr, ClassId(id)});
    }
  }
  EXPECT_EQ(write_back_->held_bytes(), 16 * kMiB);
  accepted_ = 0;
  Write(inode, at++ * kMiB, std::string(kMiB, 'n'), {nullptr, ClassId(40)});
  Write(inode, at++ * kMiB, std::string(kMiB, 'n'), {nullptr, ClassId(40)});
  EXPECT_EQ(accepted_, 2);
  Write(inode, at++ * kMiB, std::string(kMiB, 'n'), {nullptr, ClassId(40)});
  EXPECT_EQ(accepted_, 2) << "more than its own waits as all do";
  while (!flights_.empty()) Land(0);
  EXPECT_EQ(accepted_, 3);
}

}  // namespace
}  // namespace weir::client
