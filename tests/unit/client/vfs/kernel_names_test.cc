#include "client/vfs/kernel_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/vfs/dir_cache.h"
#include "common/testing/manual_clock.h"
#include "common/wire/mds.pb.h"

namespace weir::client {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr InodeId kDir{9};

class KernelNamesTest : public ::testing::Test {
 protected:
  KernelNamesTest() {
    leases.BeginSession(1, clock.Now());
    names.Enable();
    Learn();
  }
  void Learn() {
    wire::EntryReply reply;
    reply.mutable_attr()->set_inode(kDir.value);
    reply.mutable_attr()->set_mode(S_IFDIR | 0755);
    reply.mutable_attr()->set_version(++version);
    reply.mutable_file_lease()->set_epoch(1);
    dir->Update(FromWire(reply.attr()));
    leases.Learn(dir, reply, leases.Asked());
  }

  testing::ManualClock clock;
  FileLeases leases{clock, false};
  KernelNames names{clock, leases};
  InodePtr dir = std::make_shared<Inode>(kDir);
  uint64_t version = 0;
};

TEST_F(KernelNamesTest, GivesAsLongAsTheLeaseIsBelieved) {
  EXPECT_EQ(names.Give(*dir, "a", names.Asked(*dir)), kLeaseTrust);
  clock.Advance(1s);
  EXPECT_EQ(names.Give(*dir, "b", names.Asked(*dir)), 500ms);
  clock.Advance(500ms);
  EXPECT_EQ(names.Give(*dir, "c", names.Asked(*dir)), 0ns);
  EXPECT_THAT(names.Take(kDir), UnorderedElementsAre("a", "b"));
  EXPECT_THAT(names.Take(kDir), IsEmpty());
}

TEST_F(KernelNamesTest, AnAnswerFromBeforeARecallIsNotKept) {
  const uint64_t asked = names.Asked(*dir);
  leases.Revoke(dir);
  EXPECT_EQ(names.Asked(*dir), 0u);
  EXPECT_EQ(names.Give(*dir, "a", asked), 0ns);
  Learn();
  EXPECT_EQ(names.Give(*dir, "a", asked), 0ns) << "of the lease before";
  EXPECT_GT(names.Give(*dir, "a", names.Asked(*dir)), 0ns);
}

TEST_F(KernelNamesTest, WhatIsOnItsWayToTheKernelIsWaitedFor) {
  EXPECT_EQ(names.ArrivesIn(kDir), 0ns);
  names.Give(*dir, "a", names.Asked(*dir));
  clock.Advance(KernelNames::kArrival / 4);
  EXPECT_EQ(names.ArrivesIn(kDir), KernelNames::kArrival * 3 / 4);
  clock.Advance(1s);
  EXPECT_EQ(names.ArrivesIn(kDir), 0ns);
}

TEST_F(KernelNamesTest, RemembersNoMoreThanTheKernelMay) {
  for (int i = 0; i < 10; ++i) {
    names.Give(*dir, std::to_string(i), names.Asked(*dir));
    clock.Advance(1s);
    leases.Renew(1, 0, clock.Now());
  }
  const auto given = names.Take(kDir);
  EXPECT_LE(given.size(), 5u);
  EXPECT_THAT(given, ::testing::IsSupersetOf({"8", "9"}));
  names.Give(*dir, "a", names.Asked(*dir));
  clock.Advance(2s);
  names.Tick();
  EXPECT_THAT(names.Take(kDir), IsEmpty());
}

TEST_F(KernelNamesTest, WhatMovesIsFollowed) {
  const Inode other(InodeId(10));
  EXPECT_FALSE(names.Moves(kDir, "a", other, "b")) << "the kernel knows nothing of it";
  names.Give(*dir, "a", names.Asked(*dir));
  EXPECT_TRUE(names.Moves(kDir, "a", other, "b")) << "there is no lease there";
  EXPECT_THAT(names.Take(other.id()), ElementsAre("b"));
  EXPECT_FALSE(names.Moves(kDir, "a", *dir, "c"));
  EXPECT_THAT(names.Take(kDir), UnorderedElementsAre("a", "c"));
  // Before the kernel has been told of what was taken.
  EXPECT_FALSE(names.Moves(kDir, "c", *dir, "d"));
  EXPECT_THAT(names.Take(kDir), ElementsAre("d"));
  EXPECT_THAT(names.Take(kDir), IsEmpty());
  EXPECT_FALSE(names.Moves(kDir, "d", *dir, "e"));
}

}  // namespace
}  // namespace weir::client
