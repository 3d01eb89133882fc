// Goal: OSDs hear of a file when its creation is durable and not before, whatever order answers are
// read in and however often the MDS begins anew; who waits for names waits for the right ones.
#include "client/remote/ordered_names.h"

#include <gtest/gtest.h>

namespace weir::client {
namespace {

constexpr InodeId kFile{11};
constexpr InodeId kOther{12};

class OrderedNamesTest : public ::testing::Test {
 protected:
  static wire::Ordered Said(uint64_t order, uint64_t durable) {
    wire::Ordered said;
    said.set_order(order);
    said.set_durable(durable);
    return said;
  }
  OrderedNames names_;
};

TEST_F(OrderedNamesTest, AFileIsNewUntilItsCreationIsDurable) {
  EXPECT_TRUE(names_.IsDurable(names_.last()));
  const uint64_t made = names_.Heard(Said(3, 1), kFile);
  EXPECT_EQ(names_.last(), made);
  EXPECT_FALSE(names_.IsDurable(made));
  EXPECT_TRUE(names_.IsNew(kFile));
  EXPECT_FALSE(names_.IsNew(kOther));
  names_.Heard(Said(0, 2));
  EXPECT_TRUE(names_.IsNew(kFile));
  names_.Heard(Said(0, 3));
  EXPECT_TRUE(names_.IsDurable(made));
  EXPECT_FALSE(names_.IsNew(kFile));
}

TEST_F(OrderedNamesTest, AnAnswerThatWaitedMakesNothingNew) {
  EXPECT_EQ(names_.Heard(Said(0, 4), kFile), 0u);
  EXPECT_FALSE(names_.IsNew(kFile));
  EXPECT_EQ(names_.last(), 0u);
  EXPECT_EQ(names_.durable(), 4u);
}

// The accident: the answer to a creation is read behind one that says that it is durable.
TEST_F(OrderedNamesTest, ReadInAnotherOrderTheyMeanTheSame) {
  names_.Heard(Said(6, 5), kOther);
  EXPECT_EQ(names_.Heard(Said(4, 2), kFile), 4u);
  EXPECT_FALSE(names_.IsNew(kFile)) << "5 is durable";
  EXPECT_EQ(names_.durable(), 5u) << "it does not go back";
  EXPECT_EQ(names_.last(), 6u);
  EXPECT_TRUE(names_.IsNew(kOther));
}

TEST_F(OrderedNamesTest, AFileThatIsMadeTwiceIsNewUntilTheLaterIsDurable) {
  names_.Heard(Said(1, 0), kFile);
  names_.Heard(Said(2, 0), kFile);  // its number, again
  names_.Heard(Said(0, 1));
  EXPECT_TRUE(names_.IsNew(kFile));
  names_.Heard(Said(0, 2));
  EXPECT_FALSE(names_.IsNew(kFile));
}

TEST_F(OrderedNamesTest, WithAnotherLifeNothingIsDurableBeforeItHasBeenRepeated) {
  const uint64_t kept = names_.Heard(Said(50, 49), kFile);
  names_.BeginLife();
  names_.Heard(Said(0, 7));  // of orders of other mounts, there
  EXPECT_FALSE(names_.IsDurable(kept));
  const uint64_t again = names_.Heard(Said(8, 7), kFile);
  EXPECT_GT(again, kept) << "its orders follow those of the life before";
  EXPECT_FALSE(names_.IsDurable(kept)) << "there may be more to repeat";
  names_.EndRepeating();
  names_.Heard(Said(0, 7));
  EXPECT_FALSE(names_.IsDurable(kept));
  EXPECT_TRUE(names_.IsNew(kFile));
  names_.Heard(Said(0, 8));
  EXPECT_TRUE(names_.IsDurable(kept) && names_.IsDurable(again));
  EXPECT_FALSE(names_.IsNew(kFile));
}

TEST_F(OrderedNamesTest, WithNothingToRepeatAllOfTheLifeBeforeIsDurable) {
  const uint64_t order = names_.Heard(Said(5, 3), kFile);
  names_.BeginLife();
  EXPECT_FALSE(names_.IsDurable(order));
  names_.EndRepeating();  // it was durable, the MDS has found
  EXPECT_TRUE(names_.IsDurable(order));
  EXPECT_FALSE(names_.IsNew(kFile));
}

TEST_F(OrderedNamesTest, ALifeThatEndsWhileThatIsRepeatedBeginsItAnew) {
  const uint64_t kept = names_.Heard(Said(5, 0), kFile);
  names_.BeginLife();
  const uint64_t once = names_.Heard(Said(1, 0), kFile);
  names_.BeginLife();
  const uint64_t twice = names_.Heard(Said(1, 0), kFile);
  EXPECT_GT(twice, once);
  names_.EndRepeating();
  EXPECT_FALSE(names_.IsDurable(kept));
  names_.Heard(Said(0, 1));
  EXPECT_TRUE(names_.IsDurable(twice));
  EXPECT_FALSE(names_.IsNew(kFile));
}

TEST_F(OrderedNamesTest, WhatIsLostIsWaitedForByNobodyAndToldOnce) {
  const uint64_t order = names_.Heard(Said(5, 0), kFile);
  EXPECT_FALSE(names_.TakeLoss(kFile));
  names_.Lost();
  EXPECT_TRUE(names_.lost());
  EXPECT_TRUE(names_.IsDurable(order));
  EXPECT_FALSE(names_.IsNew(kFile));
  EXPECT_TRUE(names_.TakeLoss(kFile));
  EXPECT_FALSE(names_.TakeLoss(kFile));
  EXPECT_TRUE(names_.lost()) << "for good";
}

// The accident: one fsync of the mount heard of the loss, and the next one said that a file is
// there which is not.
TEST_F(OrderedNamesTest, WhoStoresWhatIsLostHearsOfItWhoeverHasHeardBefore) {
  constexpr InodeId kDirectory{1}, kOther{2};
  names_.Lost({{kFile}, {kDirectory}});
  EXPECT_TRUE(names_.TakeLoss(kOther)) << "the first, whatever he wants";
  EXPECT_FALSE(names_.TakeLoss(kOther));
  EXPECT_TRUE(names_.TakeLoss(kDirectory));
  EXPECT_FALSE(names_.TakeLoss(kDirectory)) << "twice";
  EXPECT_TRUE(names_.TakeLoss(kFile));
  EXPECT_TRUE(names_.TakeLoss(kFile)) << "it will never be there";
  EXPECT_TRUE(names_.IsLost(kFile));
  EXPECT_FALSE(names_.IsLost(kDirectory));
}

// The accident: what was still written to it became objects that nobody removes.
TEST_F(OrderedNamesTest, OsdsHearNothingOfAFileThatIsLostUnlessItIsShown) {
  names_.Heard(Said(5, 0), kFile);
  names_.Heard(Said(6, 0), kOther);
  names_.Lost({{kFile}, {}});
  EXPECT_TRUE(names_.IsNew(kFile));
  EXPECT_FALSE(names_.IsNew(kOther));
  names_.Heard(Said(0, 6));
  EXPECT_TRUE(names_.IsNew(kFile));
  names_.Shown(kFile);
  EXPECT_FALSE(names_.IsNew(kFile));
}

}  // namespace
}  // namespace weir::client
