// Goal: "the last ten seconds" are that, whatever sources do: restart, fall silent, leave rows out.
#include "mds/cluster/time_book.h"

#include <gtest/gtest.h>

namespace weir::mds {
namespace {

using namespace std::chrono_literals;
constexpr ClassId kGold{16}, kHog{17};
constexpr OsdId kOsd{0};

class TimeBookTest : public ::testing::Test {
 protected:
  using Sums = std::map<ClassId, OsdClassTimes>;
  static OsdClassTimes Sum(uint64_t bytes) { return {.active_ns = bytes, .bytes = bytes}; }
  void Said(const Sums& sums) { book_.OsdSaid(kOsd, sums, now_); }
  uint64_t BytesOf(ClassId id) {
    const Lately lately = book_.Of(id, now_);
    return lately.osds.empty() ? 0 : lately.osds[0].classes.at(id).bytes;
  }

  TimeBook book_;
  TimePoint now_{1};
};

TEST_F(TimeBookTest, KeepsTenSeconds) {
  for (uint64_t second = 0; second <= 30; ++second) {
    Said({{kGold, Sum(100 * (second + 1))}});
    now_ += 1s;
  }
  now_ = now_ - 1s;
  EXPECT_EQ(BytesOf(kGold), 1000u);
  EXPECT_NEAR(book_.Of(kGold, now_).osds[0].seconds, 10, 1e-9);
}

TEST_F(TimeBookTest, TheFirstWordSaysOnlyWhereTheSumsStand) {
  Said({{kGold, Sum(5000)}});
  EXPECT_TRUE(book_.Of(kGold, now_).osds.empty());
  now_ += 1s;
  Said({{kGold, Sum(5001)}, {kHog, Sum(70)}});
  EXPECT_EQ(BytesOf(kGold), 1u);
  EXPECT_TRUE(book_.Of(kHog, now_).osds.empty());
  now_ += 1s;
  Said({{kHog, Sum(71)}});
  EXPECT_EQ(BytesOf(kHog), 1u);
  EXPECT_EQ(BytesOf(kGold), 1u) << "left out: as it was";
}

TEST_F(TimeBookTest, ARestartedSourceBeginsAnew) {
  Said({{kGold, Sum(5000)}});
  now_ += 1s;
  Said({{kGold, Sum(5010)}});
  now_ += 1s;
  Said({{kGold, Sum(3)}});
  now_ += 1s;
  Said({{kGold, Sum(7)}});
  EXPECT_EQ(BytesOf(kGold), 14u);
}

TEST_F(TimeBookTest, WhoIsSilentIsNoPartOfIt) {
  Said({{kGold, Sum(1)}});
  now_ += 1s;
  Said({{kGold, Sum(2)}});
  now_ += TimeBook::kSilence;
  EXPECT_TRUE(book_.Of(kGold, now_).osds.empty());
  Said({{kGold, Sum(1000)}});
  EXPECT_TRUE(book_.Of(kGold, now_).osds.empty()) << "it may have come at any time";
  now_ += 1s;
  Said({{kGold, Sum(1001)}});
  EXPECT_EQ(BytesOf(kGold), 1u);
}

TEST_F(TimeBookTest, ManyReportsASecondAreJoined) {
  for (uint64_t i = 0; i <= 2000; ++i) {
    Said({{kGold, Sum(i + 1)}});
    now_ += 10ms;
  }
  now_ = now_ - 10ms;
  EXPECT_NEAR(static_cast<double>(BytesOf(kGold)), 1000, 50);
  EXPECT_NEAR(book_.Of(kGold, now_).osds[0].seconds, 10, 0.5);
}

TEST_F(TimeBookTest, MountsCountByTheirName) {
  const MountClassTimes before{.ops = 1, .active_ns = 1};
  const MountClassTimes after{.ops = 4, .active_ns = 2};
  book_.MountSaid(7, "host:web", KernelPath::kUring, {{kGold, before}}, now_);
  now_ += 1s;
  book_.MountSaid(7, "host:web", KernelPath::kUring, {{kGold, after}}, now_);
  const Lately lately = book_.Of(kGold, now_);
  ASSERT_EQ(lately.mounts.size(), 1u);
  EXPECT_EQ(lately.mounts[0].client, "host:web");
  EXPECT_EQ(lately.mounts[0].times.ops, 3u);
  EXPECT_TRUE(book_.Of(kHog, now_).mounts.empty());
  book_.MountGone(7);
  EXPECT_TRUE(book_.Of(kGold, now_).mounts.empty());
}

}  // namespace
}  // namespace weir::mds
