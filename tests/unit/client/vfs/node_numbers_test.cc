// Goal: the kernel never meets a directory under one number in two places, and numbers that it
// knows keep their inode.
#include "client/vfs/node_numbers.h"

#include <gtest/gtest.h>

namespace weir::client {
namespace {

using Place = NodeNumbers::Place;
constexpr InodeId kJob{1000};
const Place kNew{2, "job"};
const Place kWork{3, "job"};
const Place kDone{4, "job"};

TEST(NodeNumbersTest, OneThatStaysHasItsInodesNumber) {
  NodeNumbers numbers;
  EXPECT_EQ(numbers.Give(kJob, kNew).number, kJob.value);
  const NodeNumbers::Given again = numbers.Give(kJob, kNew);
  EXPECT_EQ(again.number, kJob.value);
  EXPECT_TRUE(again.others.empty());
  EXPECT_FALSE(numbers.Several(kJob));
  EXPECT_EQ(numbers.Of(InodeId(77)), (std::vector<uint64_t>{77})) << "of a file";
}

TEST(NodeNumbersTest, MovedByAnotherMountItHasAnotherNumberInTheNewPlace) {
  NodeNumbers numbers;
  const uint64_t before = numbers.Give(kJob, kNew).number;
  const NodeNumbers::Given given = numbers.Give(kJob, kWork);
  EXPECT_NE(given.number, before);
  EXPECT_EQ(NodeNumbers::InodeOf(given.number), kJob);
  EXPECT_EQ(given.others, std::vector<uint64_t>{before});
  ASSERT_EQ(given.elsewhere.size(), 1U);
  EXPECT_EQ(given.elsewhere[0], kNew);
  EXPECT_EQ(numbers.Give(kJob, kWork).number, given.number) << "and keeps it";
  EXPECT_EQ(numbers.Give(kJob, kNew).number, before) << "moved back, the kernel has it there";
  EXPECT_TRUE(numbers.Several(kJob));
}

TEST(NodeNumbersTest, ARenameOfThisMountTakesTheNumberAlong) {
  NodeNumbers numbers;
  numbers.Give(kJob, kNew);
  const uint64_t moved = numbers.Give(kJob, kWork).number;
  numbers.Moved(kJob, kWork, kDone);
  EXPECT_EQ(numbers.Give(kJob, kDone).number, moved);
  numbers.Moved(InodeId(5), kWork, kDone);  // is not known
}

TEST(NodeNumbersTest, ForgottenNumbersAreGivenAgain) {
  NodeNumbers numbers;
  const uint64_t first = numbers.Give(kJob, kNew).number;
  numbers.Give(kJob, kNew);
  const uint64_t second = numbers.Give(kJob, kWork).number;
  numbers.Forget(first, 1);
  EXPECT_TRUE(numbers.Several(kJob)) << "it was told of twice";
  numbers.Forget(first, 1);
  EXPECT_FALSE(numbers.Several(kJob));
  EXPECT_EQ(numbers.Of(kJob), std::vector<uint64_t>{second});
  numbers.Forget(second, 1);
  EXPECT_EQ(numbers.Give(kJob, kDone).number, kJob.value);
}

TEST(NodeNumbersTest, AFileHandleLeadsToTheNumberThatItWasMadeOf) {
  NodeNumbers numbers;
  const uint64_t marked = kJob.value + (uint64_t{3} << 48);
  EXPECT_EQ(numbers.Give(kJob, {marked, "."}).number, marked);
  EXPECT_EQ(numbers.Give(kJob, {77, ".."}).number, marked);
  const NodeNumbers::Given placed = numbers.Give(kJob, kNew);
  EXPECT_EQ(placed.number, marked) << "it had no place yet";
  EXPECT_NE(numbers.Give(kJob, kWork).number, marked);
}

}  // namespace
}  // namespace weir::client
