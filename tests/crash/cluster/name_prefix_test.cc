// Goal: the check of prefixes passes what a crash may leave of the names of a dead user, and
// nothing else. Method: three changes of two names, looked at in both orders.
#include "tests/crash/cluster/name_prefix.h"

#include <gtest/gtest.h>

namespace weir::crash {
namespace {

class NamePrefixTest : public ::testing::Test {
 protected:
  NamePrefixTest() {
    const auto tell = [this](Register<uint64_t>& name, uint64_t inode, uint64_t order, int ms) {
      EarlyName change;
      change.inode = &name;
      change.before = name.last();
      change.place = name.Begin(inode);
      change.order = order;
      change.when = At(ms);
      told_.push_back(change);
    };
    tell(one_, 7, 1, 0);   // creates it
    tell(one_, 0, 2, 10);  // renames it to two, or
    tell(two_, 7, 2, 10);
    tell(one_, 8, 3, 20);  // and makes another one
  }
  static TimePoint At(int ms) { return TimePoint{int64_t{1'000'000} * ms}; }
  [[nodiscard]] NamePrefix Died() const { return {told_, At(30)}; }

  Register<uint64_t> one_{0}, two_{0};
  std::vector<EarlyName> told_;
};

TEST_F(NamePrefixTest, EveryPrefixIsFine) {
  const uint64_t left[][2] = {{0, 0}, {7, 0}, {0, 7}, {8, 7}};
  for (const auto& [one, two] : left) {
    for (const bool one_first : {true, false}) {
      NamePrefix prefix = Died();
      EXPECT_EQ(one_first ? prefix.Saw(one_, one, At(40)) : prefix.Saw(two_, two, At(40)), "");
      EXPECT_EQ(one_first ? prefix.Saw(two_, two, At(50)) : prefix.Saw(one_, one, At(50)), "");
    }
  }
}

TEST_F(NamePrefixTest, NothingElseIs) {
  const uint64_t left[][2] = {{7, 7}, {8, 0}, {9, 0}};  // half a rename; the last one alone; other
  for (const auto& [one, two] : left) {
    NamePrefix prefix = Died();
    const std::string first = prefix.Saw(two_, two, At(40));
    EXPECT_NE(first + prefix.Saw(one_, one, At(50)), "") << one << " " << two;
  }
}

TEST_F(NamePrefixTest, WhatWasSeenStaysAndWhatWasGoneStaysAway) {
  NamePrefix seen = Died();
  EXPECT_EQ(seen.Saw(one_, 8, At(40)), "");
  EXPECT_NE(seen.Saw(one_, 7, At(50)), "");
  NamePrefix gone = Died();
  EXPECT_EQ(gone.Saw(two_, 0, At(40)), "");
  EXPECT_NE(gone.Saw(two_, 7, At(50)), "");
}

TEST_F(NamePrefixTest, WhatWasThereForLongIsThereAfterTheMdsDied) {
  NamePrefix prefix = Died();
  prefix.MdsDied(At(1'205));  // 1,200 ms after the first one
  EXPECT_NE(prefix.Saw(one_, 0, At(1'300)) + prefix.Saw(two_, 0, At(1'310)), "");
  NamePrefix early = Died();
  early.MdsDied(At(1'000));
  early.MdsDied(At(5'000));  // with the first one all of it may have gone
  EXPECT_EQ(early.Saw(one_, 0, At(6'000)) + early.Saw(two_, 0, At(6'010)), "");
}

TEST_F(NamePrefixTest, WhatWasOnItsWayComesAfterAllOthers) {
  one_.Begin(0);  // removes it, and hears nothing
  NamePrefix all = Died();
  EXPECT_EQ(all.Saw(one_, 0, At(40)), "");
  EXPECT_EQ(all.Saw(two_, 7, At(50)), "");
  NamePrefix none = Died();
  EXPECT_EQ(none.Saw(two_, 0, At(40)), "");
  EXPECT_EQ(none.Saw(one_, 0, At(50)), "") << "as before the first change";
}

TEST_F(NamePrefixTest, LooksFromBeforeAndNamesThatOthersChangeSayNothing) {
  NamePrefix prefix = Died();
  EXPECT_EQ(prefix.Saw(one_, 9, At(20)), "");
  one_.Certain(9);
  EXPECT_EQ(prefix.Saw(one_, 9, At(40)), "");
}

}  // namespace
}  // namespace weir::crash
