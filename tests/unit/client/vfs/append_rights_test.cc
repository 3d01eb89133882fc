// Who may append when, and what happens before a right goes back. The MDS is the test.
#include "client/vfs/append_rights.h"

#include <gtest/gtest.h>

namespace weir::client {
namespace {

const InodeId kFile(5);

class AppendRightsTest : public ::testing::Test {
 protected:
  void Use() {
    rights_.Use(kFile, [this](const Status& status) { story_ += status.ok() ? "use " : "error "; });
  }
  void Grant(uint64_t grant) { std::exchange(asked_, nullptr)(grant); }
  void Settle() { std::exchange(settling_, nullptr)(); }

  std::string story_;
  bool use_while_giving_back_ = false;
  std::function<void(Result<uint64_t>)> asked_;
  std::function<void()> settling_;
  AppendRights rights_{{
      [this](InodeId, auto done) {
        story_ += "ask ";
        asked_ = done;
      },
      [this](InodeId, auto done) {
        story_ += "settle ";
        settling_ = done;
      },
      [this](InodeId, uint64_t grant) {
        if (use_while_giving_back_) Use();
        story_ += "back" + std::to_string(grant) + " ";
      },
  }};
};

TEST_F(AppendRightsTest, AsksOnceWhileNobodyWantsItBack) {
  Use();
  Grant(1);
  rights_.Done(kFile);
  Use();
  rights_.Done(kFile);
  EXPECT_EQ(story_, "ask use use ");
}

TEST_F(AppendRightsTest, GoesBackOnlyAfterItsUsersAndWhatTheyWrote) {
  Use();
  Grant(1);
  rights_.Recall({kFile});
  EXPECT_EQ(story_, "ask use ");
  rights_.Done(kFile);
  EXPECT_EQ(story_, "ask use settle ");
  Use();  // waits for a new one
  Settle();
  EXPECT_EQ(story_, "ask use settle back1 ask ");
  Grant(2);
  EXPECT_EQ(story_, "ask use settle back1 ask use ");
}

// Goal: the MDS hears of what goes back before it hears of the next wish, whichever thread has it.
TEST_F(AppendRightsTest, AsksForTheNextBehindWhatGoesBack) {
  use_while_giving_back_ = true;
  Use();
  Grant(1);
  rights_.Recall({kFile});
  rights_.Done(kFile);
  Settle();
  EXPECT_EQ(story_, "ask use settle back1 ask ");
}

TEST_F(AppendRightsTest, ARecallThatOvertakesItsGrantIsObeyed) {
  Use();
  rights_.Recall({kFile});
  Grant(7);
  rights_.Done(kFile);
  Settle();
  EXPECT_EQ(story_, "ask use settle back7 ");
  rights_.Recall({kFile});  // told once more
  EXPECT_EQ(story_, "ask use settle back7 ");
}

TEST_F(AppendRightsTest, WithoutARightEachAppendAsksAndSettles) {
  for (int i = 0; i < 2; ++i) {
    Use();
    Grant(0);
    rights_.Done(kFile);
    Settle();
  }
  EXPECT_EQ(story_, "ask use settle ask use settle ");
}

TEST_F(AppendRightsTest, AnErrorIsForThoseWhoWaitAndTheNextAsksAgain) {
  Use();
  std::exchange(asked_, nullptr)(Status(ErrorCode::kTimedOut, "no MDS"));
  EXPECT_EQ(story_, "ask error ");
  Use();
  EXPECT_EQ(story_, "ask error ask ");
}

TEST_F(AppendRightsTest, AllGoWhenTheSessionIsLost) {
  Use();
  Grant(1);
  rights_.Done(kFile);
  rights_.Lost();
  EXPECT_EQ(story_, "ask use settle ");
}

}  // namespace
}  // namespace weir::client
