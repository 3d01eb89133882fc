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
  [[nodiscard]] NamePrefix HeDied() const { return {told_, under_way_, At(30)}; }
  [[nodiscard]] NamePrefix Died() const {  // and the MDS with him
    NamePrefix prefix = HeDied();
    prefix.MdsDied(At(30));
    return prefix;
  }

  Register<uint64_t> one_{0}, two_{0};
  std::vector<EarlyName> told_, under_way_;
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

TEST_F(NamePrefixTest, AllThatHeWasToldIsThereWhileTheMdsLives) {
  const uint64_t left[][2] = {{0, 0}, {7, 0}, {0, 7}};
  for (const auto& [one, two] : left) {
    NamePrefix prefix = HeDied();
    EXPECT_NE(prefix.Saw(two_, two, At(40)) + prefix.Saw(one_, one, At(50)), "") << one << two;
  }
  NamePrefix all = HeDied();
  EXPECT_EQ(all.Saw(two_, 7, At(40)), "");
  EXPECT_EQ(all.Saw(one_, 8, At(50)), "");
  NamePrefix unseen = HeDied();
  unseen.MdsDied(At(60));
  EXPECT_EQ(unseen.Saw(one_, 7, At(70)), "") << "it went with the MDS";
  NamePrefix beside = HeDied();  // of what was seen: the rename
  EXPECT_EQ(beside.Saw(two_, 7, At(40)), "");
  beside.MdsDied(At(60));
  EXPECT_EQ(beside.Saw(one_, 0, At(70)), "") << "what came behind it went with the MDS";
  EXPECT_NE(beside.Saw(two_, 0, At(80)), "") << "it was seen";
}

TEST_F(NamePrefixTest, WhatWasThereForLongIsThereAfterTheMdsDied) {
  NamePrefix prefix = HeDied();
  prefix.MdsDied(At(1'205));  // 1,200 ms after the first one
  EXPECT_NE(prefix.Saw(one_, 0, At(1'300)) + prefix.Saw(two_, 0, At(1'310)), "");
  NamePrefix early = HeDied();
  early.MdsDied(At(1'000));
  early.MdsDied(At(5'000));  // with the first one all of it may have gone
  EXPECT_EQ(early.Saw(one_, 0, At(6'000)) + early.Saw(two_, 0, At(6'010)), "");
}

TEST_F(NamePrefixTest, WhatWasThereForLongWhenHeDiedIsThere) {
  NamePrefix prefix(told_, {}, At(1'205));
  prefix.MdsDied(At(1'206));
  EXPECT_NE(prefix.Saw(one_, 0, At(1'300)) + prefix.Saw(two_, 0, At(1'310)), "");
}

class UnderWayTest : public NamePrefixTest {
 protected:
  UnderWayTest() {
    Begins(one_, 0);
    Begins(three_, 8);  // he renames it once more, and hears nothing
  }
  void Begins(Register<uint64_t>& name, uint64_t inode) {
    EarlyName change;
    change.inode = &name;
    change.before = name.floor();
    change.place = name.Begin(inode);
    under_way_.push_back(change);
  }
  Register<uint64_t> three_{0};
};

TEST_F(UnderWayTest, ItIsDoneAfterAllOthersOrNotAtAll) {
  NamePrefix all = Died();
  EXPECT_EQ(all.Saw(three_, 8, At(40)), "");
  EXPECT_EQ(all.Saw(two_, 7, At(50)), "");
  EXPECT_EQ(all.Saw(one_, 0, At(60)), "");
  NamePrefix none = Died();
  EXPECT_EQ(none.Saw(two_, 0, At(40)), "");
  EXPECT_EQ(none.Saw(one_, 0, At(50)), "") << "as before the first change";
  EXPECT_EQ(none.Saw(three_, 0, At(60)), "");
}

TEST_F(UnderWayTest, ItIsOneChange) {
  NamePrefix half = Died();
  EXPECT_EQ(half.Saw(three_, 8, At(40)), "");
  EXPECT_NE(half.Saw(one_, 8, At(50)), "") << "both names are there";
  NamePrefix without_others = Died();
  EXPECT_EQ(without_others.Saw(two_, 0, At(40)), "");
  EXPECT_NE(without_others.Saw(three_, 8, At(50)), "");
}

TEST_F(UnderWayTest, ItMayComeAfterItWasSeenToBeMissing) {
  NamePrefix late = Died();
  EXPECT_EQ(late.Saw(one_, 8, At(40)), "");
  EXPECT_EQ(late.Saw(three_, 0, At(50)), "");
  late.MdsDied(At(60));
  EXPECT_EQ(late.Saw(three_, 8, At(70)), "");
  EXPECT_EQ(late.Saw(one_, 0, At(80)), "");
  EXPECT_NE(late.Saw(three_, 0, At(90)), "") << "what was seen stays";
}

TEST_F(NamePrefixTest, WhatHeAsksForAgainSaysNothing) {
  NamePrefix prefix = Died();
  one_.Begin(9);  // of one who is alive, and whom the MDS has given up
  EXPECT_EQ(prefix.Saw(one_, 9, At(40)), "");
}

TEST_F(NamePrefixTest, CountsWhatItHasLearned) {
  NamePrefix prefix = Died();
  EXPECT_EQ(prefix.Saw(one_, 0, At(40)), "");  // none, or two
  EXPECT_EQ(prefix.informed(), 1u);
  EXPECT_EQ(prefix.Saw(one_, 0, At(50)), "");
  EXPECT_EQ(prefix.informed(), 1u) << "that was known";
  EXPECT_EQ(prefix.Saw(two_, 7, At(60)), "");
  EXPECT_EQ(prefix.informed(), 2u);
  EXPECT_NE(prefix.Saw(one_, 8, At(70)), "");
  EXPECT_EQ(prefix.informed(), 3u);
}

TEST_F(NamePrefixTest, LooksFromBeforeAndNamesThatOthersChangeSayNothing) {
  NamePrefix prefix = Died();
  EXPECT_EQ(prefix.Saw(one_, 9, At(20)), "");
  one_.Certain(9);
  EXPECT_EQ(prefix.Saw(one_, 9, At(40)), "");
}

}  // namespace
}  // namespace weir::crash
