// Goal: a release says nothing too early: writes under the lease have ended, and the MDS knows of
// what was held. Method: the test is the MDS and whoever tells it of attributes.
#include "client/vfs/file_releases.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "common/testing/manual_clock.h"
#include "common/wire/mds.pb.h"

namespace weir::client {
namespace {

constexpr InodeId kFile{5};

class FileReleasesTest : public ::testing::Test {
 protected:
  FileReleasesTest() {
    leases_.BeginSession(1, clock_.Now());
    Lease();
  }
  void Lease() {
    wire::EntryReply reply;
    reply.mutable_file_lease()->set_epoch(1);
    reply.mutable_file_lease()->set_write(true);
    leases_.Learn(inode_, reply, leases_.Asked());
  }
  void Release() {
    releases_.Release({kFile}, [this] { story_ += "done "; });
  }

  testing::ManualClock clock_;
  std::string story_;
  std::function<void()> told_, ended_;
  InodeTable inodes_;
  InodePtr inode_ = inodes_.Lookup(kFile);
  FileLeases leases_{clock_, false};
  AppendRights appends_{{[](InodeId, auto done) { done(uint64_t{1}); },
                         [this](InodeId, auto) { story_ += "settle "; }, [](InodeId, uint64_t) {}}};
  FileReleases releases_{inodes_,
                         leases_,
                         appends_,
                         nullptr,
                         {.tell_held =
                              [this](const InodePtr& inode, auto told) {
                                story_ += "tell" + std::to_string(inode->id().value) + " ";
                                told_ = told;
                              },
                          .send =
                              [this](const wire::ReleaseRequest& request, auto ended) {
                                for (const uint64_t id : request.inodes()) {
                                  story_ += "release" + std::to_string(id) + " ";
                                }
                                for (const uint64_t id : request.kept()) {
                                  story_ += "kept" + std::to_string(id) + " ";
                                }
                                for (const uint64_t id : request.blank()) {
                                  story_ += "blank" + std::to_string(id) + " ";
                                }
                                ended_ = ended;
                              }}};
};

TEST_F(FileReleasesTest, WritesEndThenAttributesAreToldThenTheMdsHears) {
  ASSERT_TRUE(leases_.BeginWrite(kFile));
  Release();
  EXPECT_EQ(story_, "");
  EXPECT_EQ(releases_.under_way(), 1u);
  EXPECT_FALSE(leases_.BeginWrite(kFile)) << "no other begins";
  leases_.EndWrite(kFile);
  EXPECT_EQ(story_, "tell5 ");
  told_();
  EXPECT_EQ(story_, "tell5 release5 ");
  Lease();
  EXPECT_FALSE(leases_.BeginWrite(kFile)) << "the MDS said that before it heard of the close";
  EXPECT_EQ(releases_.under_way(), 1u);
  ended_();
  EXPECT_EQ(story_, "tell5 release5 done ");
  EXPECT_EQ(releases_.under_way(), 0u);
  Lease();
  EXPECT_TRUE(leases_.BeginWrite(kFile));
}

TEST_F(FileReleasesTest, SeveralGoInOneMessageWhenTheLastIsTold) {
  inodes_.Lookup(InodeId(6));
  releases_.Release({kFile, InodeId(6), InodeId(7)}, [] {});
  EXPECT_EQ(story_, "tell5 tell6 ") << "of the third nothing is known here";
  told_();
  EXPECT_EQ(story_, "tell5 tell6 ");
}

TEST_F(FileReleasesTest, WhatNobodyKnowsHereIsReleasedAtOnce) {
  releases_.Release({InodeId(9)}, [] {});
  EXPECT_EQ(story_, "release9 ");
}

TEST_F(FileReleasesTest, WithTheFileGoesWhatThisMountWasAllowedOfIt) {
  inode_->Allow(1000);
  ASSERT_EQ(inode_->allowed_end(), 1000u);
  appends_.Use(kFile, [](const Status&) {});
  appends_.Done(kFile);
  Release();
  EXPECT_EQ(inode_->allowed_end(), 0u);
  EXPECT_EQ(story_, "settle tell5 ");
}

TEST_F(FileReleasesTest, WhatIsKeptIsReleasedByItself) {
  releases_.ReleaseKept({kFile, InodeId(6)}, {InodeId(6)});
  EXPECT_EQ(story_, "kept5 kept6 blank6 ");
  EXPECT_EQ(releases_.under_way(), 1u);
  EXPECT_TRUE(leases_.BeginWrite(kFile)) << "it says nothing of opens";
  ended_();
  EXPECT_EQ(releases_.under_way(), 0u);
}

}  // namespace
}  // namespace weir::client
