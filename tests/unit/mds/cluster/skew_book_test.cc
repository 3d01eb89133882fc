// Goal: the leeway that a class's use of the OSDs asks for, whatever reports do in between.
#include "mds/cluster/skew_book.h"

#include <gtest/gtest.h>

namespace weir::mds {
namespace {

using namespace std::chrono_literals;
constexpr ClassId kGold{16}, kOther{17};

class SkewBookTest : public ::testing::Test {
 protected:
  // A second in which the OSDs did so many requests of 1000 bytes, told of by each a little later
  // than by the one before.
  void Second(const std::vector<uint64_t>& requests, ClassId id = kGold) {
    for (size_t osd = 0; osd < requests.size(); ++osd) {
      OsdClassTimes& sum = sums_[id][osd];
      sum.ops += requests[osd];
      sum.bytes += requests[osd] * 1000;
      book_.OsdSaid(OsdId(static_cast<uint32_t>(osd)), {{id, sum}}, now_ + osd * 100ms);
    }
    now_ += 1s;
  }
  SkewBook::Choice Choose(uint64_t bytes = 1, uint64_t iops = 0) {
    ClassSpec spec;
    spec.id = kGold;
    spec.reservation = Reservation{.bytes_per_s = bytes, .ends = {}, .iops = iops};
    return book_.Choose(spec, 4, now_);
  }

  SkewBook book_;
  std::map<ClassId, std::map<size_t, OsdClassTimes>> sums_;
  TimePoint now_{100'000'000'000};
};

TEST_F(SkewBookTest, TooLittleSeenIsTheDefault) {
  EXPECT_EQ(Choose().periods, 0u);
  for (int i = 0; i < 2 * 19; ++i) Second({100, 100, 100, 100});
  EXPECT_EQ(Choose().periods, 0u);
  EXPECT_EQ(Choose().leeway, kLeeway);
}

TEST_F(SkewBookTest, EvenUseNeedsLittleAndOneOsdTheWhole) {
  for (int i = 0; i < 60; ++i) Second({100, 100, 100, 100});
  EXPECT_DOUBLE_EQ(Choose().leeway, 1.1);
  EXPECT_GE(Choose().periods, 26u);
  for (int i = 0; i < 60; ++i) Second({0, 400, 0, 0});
  EXPECT_DOUBLE_EQ(Choose().leeway, 4);
}

// More than 5 % of the periods have nearly twice the even part on one OSD, or fewer do.
TEST_F(SkewBookTest, SkewThatIsRareEnoughIsLeftOut) {
  const auto run = [this](int every) {
    for (int i = 0; i < 100; ++i) {
      for (int k = 0; k < 4; ++k) {
        Second(i % every == 0 ? std::vector<uint64_t>{190, 70, 70, 70}
                              : std::vector<uint64_t>{100, 100, 100, 100});
      }
    }
  };
  run(50);
  EXPECT_DOUBLE_EQ(Choose().leeway, 1.1);
  run(5);
  EXPECT_DOUBLE_EQ(Choose().leeway, 2);
}

TEST_F(SkewBookTest, IdleTimesAndOtherClassesDoNotCount) {
  for (int i = 0; i < 60; ++i) Second({0, 400, 0, 0});
  const size_t before = Choose().periods;
  for (int i = 0; i < 60; ++i) Second({5, 0, 0, 0});
  for (int i = 0; i < 60; ++i) Second({100, 100, 100, 100}, kOther);
  EXPECT_LE(Choose().periods, before + 2) << "those that were still open";
  EXPECT_DOUBLE_EQ(Choose().leeway, 4);
}

TEST_F(SkewBookTest, ForgetsAfterHalfAnHour) {
  for (int i = 0; i < 60; ++i) Second({0, 400, 0, 0});
  now_ += 1s * 2 * static_cast<int64_t>(SkewBook::kPeriodsKept);
  EXPECT_EQ(Choose().periods, 0u);
  for (int i = 0; i < 60; ++i) Second({100, 100, 100, 100});
  EXPECT_DOUBLE_EQ(Choose().leeway, 1.1);
}

TEST_F(SkewBookTest, AnOsdThatStartsAnewOrWasSilentAddsNothing) {
  for (int i = 0; i < 60; ++i) Second({100, 100, 100, 100});
  sums_[kGold][2] = {};
  Second({100, 100, 0, 100});
  now_ += 5s;
  Second({100, 100, 100'000, 100});
  for (int i = 0; i < 10; ++i) Second({100, 100, 100, 100});
  EXPECT_DOUBLE_EQ(Choose().leeway, 1.1);
}

TEST_F(SkewBookTest, CountsInWhatIsPromised) {
  for (int i = 0; i < 60; ++i) {
    sums_[kGold][0].ops += 900;  // small ones
    Second({100, 100, 100, 100});
  }
  EXPECT_DOUBLE_EQ(Choose(1, 0).leeway, 1.1);
  EXPECT_DOUBLE_EQ(Choose(0, 1).leeway, 4);
  EXPECT_DOUBLE_EQ(Choose(1, 1).leeway, 4);
}

}  // namespace
}  // namespace weir::mds
