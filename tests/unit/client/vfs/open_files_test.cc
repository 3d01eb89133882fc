// Goal: a RELEASE never takes away an open that came after it, or an open-but-unlinked file would
// be purged under its reader.
#include "client/vfs/open_files.h"

#include <gtest/gtest.h>

namespace weir::client {
namespace {

class OpenFilesTest : public ::testing::Test {
 protected:
  void Open(uint64_t inode) {
    open_files_.Open(InodeId(inode), [this] { ++asked_; });
  }
  InodeTable inodes_;
  std::vector<std::pair<std::vector<InodeId>, std::function<void()>>> releases_;
  OpenFiles open_files_{inodes_,
                        [this](const std::vector<InodeId>& gone, std::function<void()> done) {
                          releases_.emplace_back(gone, std::move(done));
                        }};
  int asked_ = 0;
};

TEST_F(OpenFilesTest, OnlyTheLastCloseReleases) {
  Open(5);
  Open(5);
  open_files_.Close(InodeId(5));
  open_files_.Tick();
  EXPECT_TRUE(releases_.empty());
  open_files_.Close(InodeId(5));
  open_files_.Tick();
  ASSERT_EQ(releases_.size(), 1u);
  EXPECT_EQ(releases_[0].first, std::vector<InodeId>{InodeId(5)});
  EXPECT_EQ(inodes_.size(), 0u);
}

TEST_F(OpenFilesTest, AnOpenBeforeTheReleaseCancelsIt) {
  Open(5);
  open_files_.Close(InodeId(5));
  Open(5);
  open_files_.Tick();
  EXPECT_TRUE(releases_.empty());
  EXPECT_EQ(open_files_.All(), std::vector<InodeId>{InodeId(5)});
}

TEST_F(OpenFilesTest, AnOpenDuringTheReleaseWaitsForIt) {
  Open(5);
  open_files_.Close(InodeId(5));
  open_files_.Tick();
  Open(5);
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(open_files_.All().size(), 1u) << "a reclaim must name it already";
  releases_[0].second();
  EXPECT_EQ(asked_, 2);
}

TEST_F(OpenFilesTest, AClosedFileIsReleasedAgainAfterAReleaseThatCameTooEarly) {
  Open(5);
  open_files_.Close(InodeId(5));
  open_files_.Tick();
  Open(5);
  open_files_.Close(InodeId(5));
  open_files_.Tick();
  EXPECT_EQ(releases_.size(), 1u);
  releases_[0].second();
  open_files_.Tick();
  EXPECT_EQ(releases_.size(), 2u);
}

// Goal: no inode stays open at the MDS that was closed while a session was being opened again.
// Method: its RELEASE leaves behind the list of what is open, and is answered before that is told.
TEST_F(OpenFilesTest, WhatWasClosedWhileASessionBeganIsReleasedAgain) {
  Open(5);
  Open(6);
  Open(7);
  const std::vector<InodeId> told = open_files_.All();
  open_files_.Close(InodeId(5));
  open_files_.Close(InodeId(7));
  open_files_.Tick();
  releases_.at(0).second();
  Open(7);
  open_files_.ToldOpen(told);
  open_files_.Tick();
  ASSERT_EQ(releases_.size(), 2u);
  EXPECT_EQ(releases_[1].first, std::vector<InodeId>{InodeId(5)}) << "the others are open";
  Open(5);
  EXPECT_EQ(asked_, 4) << "an open waits for this release, too";
  releases_[1].second();
  EXPECT_EQ(asked_, 5);
}

TEST_F(OpenFilesTest, ACreateKnowsWhetherAReleaseMayHaveOvertakenIt) {
  Open(5);
  open_files_.Close(InodeId(5));
  const uint64_t begun = open_files_.BeginCreate();
  open_files_.Tick();
  releases_[0].second();
  EXPECT_FALSE(open_files_.Opened(InodeId(5), begun));
  EXPECT_TRUE(open_files_.Opened(InodeId(6), open_files_.BeginCreate()));
  EXPECT_TRUE(open_files_.Opened(InodeId(0), open_files_.BeginCreate())) << "a create that failed";
  EXPECT_EQ(open_files_.All().size(), 2u);
}

}  // namespace
}  // namespace weir::client
