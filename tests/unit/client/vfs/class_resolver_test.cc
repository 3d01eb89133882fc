// Goal: after tags moved, every open file gets its new class, also when the answer fails or tags
// move again meanwhile.
#include "client/vfs/class_resolver.h"

#include <gtest/gtest.h>

#include <utility>

namespace weir::client {
namespace {

class ClassResolverTest : public ::testing::Test {
 protected:
  using Done = std::function<void(Result<ClassResolver::Answer>)>;
  void Open(uint64_t inode) {
    open_.emplace_back(InodeId(inode));
    inodes_.Lookup(InodeId(inode));
  }
  void AnswerNext(uint32_t class_id) {
    auto [asked, done] = std::move(questions_.front());
    questions_.erase(questions_.begin());
    ClassResolver::Answer answer;
    answer.classes.assign(asked.size(), std::optional(ClassId(class_id)));
    done(std::move(answer));
  }

  InodeTable inodes_;
  std::vector<InodeId> open_;
  std::vector<std::pair<std::vector<InodeId>, Done>> questions_;
  ClassResolver resolver_{inodes_, [this] { return open_; },
                          [this](const std::vector<InodeId>& asked, Done done) {
                            questions_.emplace_back(asked, std::move(done));
                          }};
};

TEST_F(ClassResolverTest, OpenFilesGetTheirNewClassInBatches) {
  for (uint64_t i = 1; i <= ClassResolver::kBatch + 10; ++i) Open(i);
  resolver_.TagsMoved(1);
  ASSERT_EQ(questions_.size(), 1u);
  EXPECT_EQ(questions_[0].first.size(), ClassResolver::kBatch);
  AnswerNext(17);
  ASSERT_EQ(questions_.size(), 1u);
  EXPECT_EQ(questions_[0].first.size(), 10u);
  EXPECT_EQ(resolver_.resolved_epoch(), 0u);
  AnswerNext(17);
  EXPECT_EQ(resolver_.resolved_epoch(), 1u);
  for (InodeId inode : open_) ASSERT_EQ(inodes_.Find(inode)->tag_class(), ClassId(17));
}

// Goal: no old tag stays that came late, by another connection than the news that tags moved.
// Method: replies asked for before and after it, of an open inode and of one that is not, during
// the round and behind it.
TEST_F(ClassResolverTest, AReplyThatWasAskedForBeforeTagsMovedIsAskedForAgain) {
  Open(1);
  const InodePtr other = inodes_.Lookup(InodeId(2));
  const InodePtr open = inodes_.Find(InodeId(1));
  resolver_.Heard(*open, ClassId(16), 4);
  EXPECT_TRUE(questions_.empty());
  resolver_.TagsMoved(1, 5);
  AnswerNext(17);
  resolver_.Heard(*open, ClassId(16), 4);
  ASSERT_EQ(questions_.size(), 1u);
  resolver_.Heard(*other, ClassId(16), 4);
  AnswerNext(17);
  EXPECT_EQ(open->tag_class(), ClassId(17));
  ASSERT_EQ(questions_.size(), 1u);
  EXPECT_EQ(questions_[0].first, std::vector{InodeId(2)});
  auto lost = std::move(questions_[0].second);
  questions_.clear();
  lost(Status(ErrorCode::kUnreachable, "lost"));
  resolver_.Tick();
  ASSERT_EQ(questions_.size(), 1u);
  AnswerNext(17);
  EXPECT_EQ(other->tag_class(), ClassId(17));
  resolver_.Heard(*other, ClassId(18), 5);
  EXPECT_TRUE(questions_.empty()) << "asked for since";
  EXPECT_EQ(other->tag_class(), ClassId(18));
  EXPECT_EQ(resolver_.resolved_epoch(), 1u);
}

TEST_F(ClassResolverTest, TagsThatMoveDuringARoundStartAnother) {
  Open(1);
  resolver_.TagsMoved(1);
  resolver_.TagsMoved(2);
  AnswerNext(17);
  ASSERT_EQ(questions_.size(), 1u);
  AnswerNext(18);
  EXPECT_EQ(inodes_.Find(InodeId(1))->tag_class(), ClassId(18));
  EXPECT_EQ(resolver_.resolved_epoch(), 2u);
  EXPECT_TRUE(questions_.empty());
}

TEST_F(ClassResolverTest, ARoundThatFailsIsTriedAgain) {
  Open(1);
  resolver_.TagsMoved(1);
  auto done = std::move(questions_.front().second);
  questions_.clear();
  done(Status(ErrorCode::kTimedOut));
  EXPECT_TRUE(questions_.empty());
  resolver_.Tick();
  ASSERT_EQ(questions_.size(), 1u);
  AnswerNext(17);
  EXPECT_EQ(resolver_.resolved_epoch(), 1u);
  resolver_.Tick();
  EXPECT_TRUE(questions_.empty());
}

}  // namespace
}  // namespace weir::client
