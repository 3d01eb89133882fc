// Goal: a lease that somebody waits for goes at once, a thousand that the MDS has no room for go
// together.
#include "client/vfs/yield_batches.h"

#include <gtest/gtest.h>

namespace weir::client {
namespace {

class YieldBatchesTest : public ::testing::Test {
 protected:
  struct Sent {
    uint64_t seq;
    std::vector<InodeId> inodes;
    YieldBatches::Done answered;
  };
  void Yield(uint64_t seq, uint64_t inode) {
    batches.Yield(7, seq, {InodeId(inode)}, [this] { ++done; });
  }
  void AnswerFirst() {
    const Sent first = std::move(sent.front());
    sent.erase(sent.begin());
    first.answered();
  }

  std::vector<Sent> sent;
  size_t done = 0;
  YieldBatches batches{[this](uint64_t epoch, uint64_t seq, const std::vector<InodeId>& inodes,
                              YieldBatches::Done answered) {
    EXPECT_EQ(epoch, 7u);
    sent.push_back({seq, inodes, std::move(answered)});
  }};
};

TEST_F(YieldBatchesTest, AFewGoAtOnceAndTheRestTogether) {
  for (uint64_t inode = 1; inode <= 100; ++inode) Yield(3, inode);
  ASSERT_EQ(sent.size(), YieldBatches::kAtOnce);
  EXPECT_EQ(sent[0].inodes, std::vector<InodeId>{InodeId(1)});
  AnswerFirst();
  EXPECT_EQ(done, 1u);
  ASSERT_EQ(sent.size(), YieldBatches::kAtOnce);
  EXPECT_EQ(sent.back().inodes.size(), 100 - YieldBatches::kAtOnce);
  while (!sent.empty()) AnswerFirst();
  EXPECT_EQ(done, 100u);
  Yield(4, 1);
  EXPECT_EQ(sent.size(), 1u) << "nothing is on its way";
}

TEST_F(YieldBatchesTest, AMessageIsOfOneRecallAndOfSoManyAtMost) {
  for (uint64_t inode = 1; inode <= YieldBatches::kAtOnce; ++inode) Yield(1, inode);
  for (uint64_t inode = 1; inode <= YieldBatches::kInodesMost + 1; ++inode) Yield(2, inode);
  Yield(3, 1);
  std::vector<std::pair<uint64_t, size_t>> rest;
  while (!sent.empty()) {
    AnswerFirst();
    if (!sent.empty()) rest.emplace_back(sent.back().seq, sent.back().inodes.size());
    if (rest.size() == 3) break;
  }
  EXPECT_EQ(rest, (std::vector<std::pair<uint64_t, size_t>>{
                      {2, YieldBatches::kInodesMost}, {2, 1}, {3, 1}}));
}

}  // namespace
}  // namespace weir::client
