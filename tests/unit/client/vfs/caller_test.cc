#include "client/vfs/caller.h"

#include <gtest/gtest.h>

#include "common/testing/manual_clock.h"
#include "common/wire/mds.pb.h"

namespace weir::client {
namespace {

using namespace std::chrono_literals;

class CallersTest : public ::testing::Test {
 protected:
  testing::ManualClock clock_;
  int looks_ = 0;
  CallerRights now_{.groups = {5}};
  Callers callers_{clock_, [this](const CallerId&) {
                     ++looks_;
                     return now_;
                   }};
};

TEST_F(CallersTest, AProcessIsRememberedForASecond) {
  EXPECT_EQ(callers_.Of({10, 10, 77}).groups, (std::vector<gid_t>{5}));
  now_.groups = {6};
  EXPECT_EQ(callers_.Of({10, 10, 77}).groups, (std::vector<gid_t>{5}));
  EXPECT_EQ(callers_.Of({10, 11, 77}).groups, (std::vector<gid_t>{6})) << "it acts as another";
  clock_.Advance(1s);
  (void)callers_.Of({10, 11, 77});
  EXPECT_EQ(looks_, 3);
}

TEST_F(CallersTest, ALookAnewIsRemembered) {
  (void)callers_.Of({10, 10, 77});
  now_.capabilities = 2;
  EXPECT_EQ(callers_.Anew({10, 10, 77}).capabilities, 2U);
  EXPECT_EQ(callers_.Of({10, 10, 77}).capabilities, 2U);
  EXPECT_EQ(looks_, 2);
}

TEST_F(CallersTest, RootNeedsNoLook) {
  EXPECT_EQ(callers_.Of({0, 0, 77}), CallerRights());
  EXPECT_EQ(looks_, 0);
}

TEST_F(CallersTest, TheThreadGroupIsRememberedForASecond) {
  pid_t group = 70;
  int asked = 0;
  Callers callers(
      clock_, [](const CallerId&) { return CallerRights(); },
      [&](pid_t) {
        ++asked;
        return group;
      });
  EXPECT_EQ(callers.ThreadGroupOf(77), 70u);
  group = 71;
  EXPECT_EQ(callers.ThreadGroupOf(77), 70u);
  EXPECT_EQ(callers.ThreadGroupOf(78), 71u);
  clock_.Advance(1s);
  EXPECT_EQ(callers.ThreadGroupOf(77), 71u);
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(callers.ThreadGroupOf(0), 0u) << "of nobody whom the kernel names";
  EXPECT_EQ(callers_.ThreadGroupOf(77), 0u);
}

TEST_F(CallersTest, WhatIsSentReplacesWhatWasThere) {
  wire::Caller caller;
  caller.add_groups(9);
  caller.add_uids()->set_count(1);
  CallerRights rights{.groups = {5}, .capabilities = 3, .uids = {{7, 8}}};
  ToWire(rights, &caller);
  ASSERT_EQ(caller.groups_size(), 1);
  EXPECT_EQ(caller.groups(0), 5U);
  ASSERT_EQ(caller.uids_size(), 1);
  EXPECT_EQ(caller.uids(0).first(), 7U);
  EXPECT_FALSE(caller.unknown());
  rights.known = false;
  ToWire(rights, &caller);
  EXPECT_TRUE(caller.unknown());
}

}  // namespace
}  // namespace weir::client
