// Goal: a read moves the access time where Linux would, is seen here at once, and the MDS hears of
// many reads together, a second later at most.
#include "client/vfs/access_times.h"

#include <gtest/gtest.h>

#include <memory>

#include "common/testing/manual_clock.h"

namespace weir::client {
namespace {

using namespace std::chrono_literals;
using Rule = AccessTimes::Rule;
constexpr int64_t kSecond = 1'000'000'000;

class AccessTimesTest : public ::testing::Test {
 protected:
  std::unique_ptr<AccessTimes> Make(const AccessTimes::Rules& wanted = {}) {
    rules = wanted;
    return std::make_unique<AccessTimes>(
        clock, inodes, [this] { return rules; },
        [this](auto reads, bool strict, auto done) {
          sent.push_back(std::move(reads));
          sent_strict.push_back(strict);
          told.push_back(std::move(done));
        });
  }
  // Changed a second ago, and never read since.
  InodePtr File(uint64_t number) {
    InodePtr inode = inodes.Lookup(InodeId(number));
    FileAttr attr;
    attr.inode = inode->id();
    attr.mode = S_IFREG | 0644;
    attr.version = 1;
    attr.atime_ns = attr.mtime_ns = attr.ctime_ns = clock.WallNow().ns - kSecond;
    inode->Update(attr);
    return inode;
  }
  void AnswerAll() {
    for (const auto& done : std::exchange(told, {})) done();
  }

  testing::ManualClock clock;
  AccessTimes::Rules rules;
  InodeTable inodes;
  std::vector<std::vector<AccessTimes::Read>> sent;
  std::vector<bool> sent_strict;
  std::vector<std::function<void()>> told;
};

TEST_F(AccessTimesTest, TheFirstReadCountsAndIsToldOnceASecondLater) {
  const auto times = Make();
  const InodePtr file = File(5);
  const int64_t read_at = clock.WallNow().ns;
  times->FileRead(file);
  EXPECT_EQ(file->attr().atime_ns, read_at);
  clock.Advance(300ms);
  times->FileRead(file);
  times->Tick();
  EXPECT_EQ(file->attr().atime_ns, read_at) << "the second read moved it";
  EXPECT_TRUE(sent.empty()) << "told too early";
  clock.Advance(700ms);
  times->Tick();
  ASSERT_EQ(sent.size(), 1u);
  ASSERT_EQ(sent[0].size(), 1u);
  EXPECT_EQ(sent[0][0].inode, InodeId(5));
  EXPECT_EQ(sent[0][0].age_ns, static_cast<uint64_t>(kSecond));
  AnswerAll();
  EXPECT_EQ(file->attr().atime_ns, read_at) << "lost when the MDS had it";
  clock.Advance(2s);
  times->Tick();
  EXPECT_EQ(sent.size(), 1u) << "told twice";
}

// It is told how long ago that was, and hears of it a little later.
TEST_F(AccessTimesTest, WhatTheMdsMakesOfAReadIsNotAnother) {
  const auto times = Make();
  const InodePtr file = File(5);
  const int64_t read_at = clock.WallNow().ns;
  times->FileRead(file);
  times->SendAll();
  FileAttr heard = file->attr();
  heard.version = 2;
  heard.atime_ns = read_at + kSecond / 100;
  file->Update(heard);
  EXPECT_EQ(file->attr().atime_ns, read_at) << "before the answer has come";
  AnswerAll();
  EXPECT_EQ(file->attr().atime_ns, read_at);
  heard.version = 3;
  heard.ctime_ns = heard.atime_ns + 5;  // a chmod
  file->Update(heard);
  EXPECT_EQ(file->attr().atime_ns, read_at);
  heard.version = 4;
  heard.ctime_ns = heard.atime_ns;  // somebody has set it
  file->Update(heard);
  EXPECT_EQ(file->attr().atime_ns, heard.atime_ns);
}

TEST_F(AccessTimesTest, AForgottenInodeShowsItsReadUntilItWasTold) {
  const auto times = Make();
  const int64_t read_at = clock.WallNow().ns;
  times->FileRead(File(5));
  inodes.Forget(InodeId(5), 1);
  EXPECT_EQ(File(5)->attr().atime_ns, read_at);
  inodes.Forget(InodeId(5), 1);
  times->SendAll();
  AnswerAll();
  EXPECT_EQ(inodes.size(), 0u) << "it is held for ever";
}

TEST_F(AccessTimesTest, ATimeThatIsSetWinsOverAnEarlierRead) {
  const auto times = Make();
  const InodePtr file = File(5);
  times->FileRead(file);
  file->ForgetRead();
  FileAttr set = file->attr();
  set.version = 2;
  set.atime_ns = 77;
  file->Update(set);
  times->SendAll();
  for (const auto& reads : sent) EXPECT_TRUE(reads.empty());
  AnswerAll();
  EXPECT_EQ(file->attr().atime_ns, 77);
}

TEST_F(AccessTimesTest, AReadAfterTheReportBeganIsToldToo) {
  const auto times = Make({Rule::kStrict, Rule::kStrict});
  const InodePtr file = File(5);
  times->FileRead(file);
  times->SendAll();
  clock.Advance(1ms);
  times->FileRead(file);
  const int64_t last = clock.WallNow().ns;
  AnswerAll();
  EXPECT_EQ(file->attr().atime_ns, last);
  times->SendAll();
  EXPECT_EQ(sent.size(), 2u);
}

TEST_F(AccessTimesTest, TimesBefore1970AreShownAsTheyAre) {
  const InodePtr file = File(5);
  FileAttr old = file->attr();
  old.version = 2;
  old.atime_ns = -kSecond;
  EXPECT_EQ(file->Update(old).atime_ns, -kSecond);
}

TEST_F(AccessTimesTest, RulesAreKept) {
  const auto times = Make({Rule::kNever, Rule::kNever});
  const InodePtr file = File(5);
  const int64_t before = file->attr().atime_ns;
  times->FileRead(file);
  times->DirectoryRead(file);
  EXPECT_EQ(file->attr().atime_ns, before);
  rules = {Rule::kRelative, Rule::kNever};
  times->DirectoryRead(file);
  EXPECT_EQ(file->attr().atime_ns, before);
  times->FileRead(file);
  EXPECT_GT(file->attr().atime_ns, before);
  clock.Advance(23h);
  times->Tick();
  times->FileRead(file);
  const int64_t first = file->attr().atime_ns;
  clock.Advance(1h);
  times->Tick();
  times->FileRead(file);
  EXPECT_GT(file->attr().atime_ns, first) << "a day later any read counts";
}

// Goal: another rule, as by a remount, holds for the next read, and what was read under the old one
// is told as it was judged.
TEST_F(AccessTimesTest, ARuleMayChangeAtAnyTime) {
  const auto times = Make({Rule::kStrict, Rule::kStrict});
  const InodePtr file = File(5);
  times->FileRead(file);
  clock.Advance(1ms);
  EXPECT_TRUE(times->FileReadCounts(*file));
  EXPECT_TRUE(times->EachDirectoryReadCounts());
  rules = {};
  EXPECT_FALSE(times->EachDirectoryReadCounts());
  EXPECT_FALSE(times->FileReadCounts(*file)) << "read since its last change";
  EXPECT_FALSE(times->DirectoryReadCounts(*file));
  times->SendAll();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_TRUE(sent_strict[0]);
  AnswerAll();
  rules = {Rule::kNever, Rule::kNever};
  const InodePtr other = File(6);
  EXPECT_FALSE(times->FileReadCounts(*other));
  times->FileRead(other);
  rules = {};
  EXPECT_TRUE(times->FileReadCounts(*other));
  times->FileRead(other);
  times->SendAll();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_FALSE(sent_strict[1]) << "of an earlier rule";
}

TEST_F(AccessTimesTest, ManyAreToldInPieces) {
  const auto times = Make();
  for (uint64_t number = 1; number <= 2500; ++number) times->FileRead(File(number));
  times->SendAll();
  ASSERT_EQ(sent.size(), 3u);
  EXPECT_EQ(sent[0].size() + sent[1].size() + sent[2].size(), 2500u);
}

TEST_F(AccessTimesTest, AnInodeThatNothingIsKnownOfIsLeftAlone) {
  const auto times = Make();
  const InodePtr unknown = inodes.Lookup(InodeId(9));
  times->FileRead(unknown);
  times->SendAll();
  EXPECT_TRUE(sent.empty());
}

}  // namespace
}  // namespace weir::client
