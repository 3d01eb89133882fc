// Goal: a write beyond what the MDS allowed waits for it, others do not; a refusal fails that write
// alone; killed processes stop waiting.
#include "client/data/growth.h"

#include <gtest/gtest.h>

namespace weir::client {
namespace {

constexpr ClassId kGold{18};

class GrowthTest : public ::testing::Test {
 protected:
  void Await(uint64_t end, Abandoned abandoned = nullptr) {
    growth_.Await(
        inode_, kGold, end, [this, end](const Status& status) { ended_[end] = status.code(); },
        std::move(abandoned));
  }
  void Answer(const Result<uint64_t>& end) { std::exchange(answer_, nullptr)(end); }

  InodePtr inode_ = std::make_shared<Inode>(InodeId(5));
  std::vector<uint64_t> asked_;
  Growth::Answer answer_;
  std::map<uint64_t, ErrorCode> ended_;
  Growth growth_{[this](const Growth::Question& question, Growth::Answer answer) {
    EXPECT_EQ(question.class_id, kGold);
    asked_.push_back(question.end);
    answer_ = std::move(answer);
  }};
};

using Ends = std::map<uint64_t, ErrorCode>;

TEST_F(GrowthTest, OneQuestionServesAllThatItsAnswerCovers) {
  Await(10);
  Await(20);
  Await(30);
  EXPECT_EQ(asked_, std::vector<uint64_t>{10});
  Answer(25);
  EXPECT_EQ(ended_, (Ends{{10, ErrorCode::kOk}, {20, ErrorCode::kOk}}));
  EXPECT_EQ(inode_->allowed_end(), 25u);
  EXPECT_EQ(asked_, (std::vector<uint64_t>{10, 30}));
  Answer(30);
  EXPECT_EQ(ended_.size(), 3u);
  EXPECT_EQ(answer_, nullptr) << "asked for nobody";
}

TEST_F(GrowthTest, ARefusalIsForOneWrite) {
  Await(30);
  Await(10);
  Answer(Status(ErrorCode::kQuota, "full"));
  EXPECT_EQ(ended_, (Ends{{30, ErrorCode::kQuota}}));
  Answer(10);
  EXPECT_EQ(ended_, (Ends{{10, ErrorCode::kOk}, {30, ErrorCode::kQuota}}));
  Await(40);
  EXPECT_EQ(asked_, (std::vector<uint64_t>{30, 10, 40}));
  Answer(40);
}

TEST_F(GrowthTest, TheKilledStopWaiting) {
  auto killed = std::make_shared<std::atomic<bool>>(false);
  Await(10);
  Await(20, killed);
  Await(30);
  growth_.DropAbandoned();
  EXPECT_TRUE(ended_.empty());
  *killed = true;
  growth_.DropAbandoned();
  EXPECT_EQ(ended_, (Ends{{20, ErrorCode::kCancelled}}));
  Answer(10);
  Answer(30);
  EXPECT_EQ(ended_.size(), 3u);
}

}  // namespace
}  // namespace weir::client
