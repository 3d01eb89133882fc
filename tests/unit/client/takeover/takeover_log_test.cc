#include "client/takeover/takeover_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace weir::client {
namespace {

constexpr uint64_t kSession = 77;
constexpr uint64_t kResent = uint64_t{1} << 63;

class TakeoverLogTest : public ::testing::Test {
 protected:
  TakeoverLogTest() : fd_(*RecordFile::Create(kArea)) { Next(); }
  ~TakeoverLogTest() override { close(fd_); }

  // The process dies, and another one goes on.
  const MountState& Next() {
    log_ = std::move(*TakeoverLog::Open(fd_, kSession));
    return log_->left();
  }
  void Open(uint64_t number, InodeId inode, int flags) {
    OpenedFile file;
    file.number = number;
    file.inode = inode;
    file.flags = flags;
    file.uid = 1001;
    file.groups = {5, 6};
    file.exe = "/bin/tar";
    if (number == 1) file.cgroup = "/a.slice";
    log_->Opened(file);
  }
  LockAsk Lock(LockAsk::Type type, uint64_t first, uint64_t last) {
    LockAsk ask;
    ask.inode = InodeId(9);
    ask.handle = 4;
    ask.type = type;
    ask.first = first;
    ask.last = last;
    ask.owner = 31;
    ask.pid = 12;
    return ask;
  }

  static constexpr uint64_t kArea = 64 << 10;
  const int fd_;
  std::unique_ptr<TakeoverLog> log_;
};

TEST_F(TakeoverLogTest, ASuccessorKeepsTheSessionAndCountsRequestsAnew) {
  EXPECT_FALSE(log_->is_successor());
  EXPECT_EQ(log_->session(), kSession);
  const uint64_t first = log_->ids_above();
  log_ = std::move(*TakeoverLog::Open(fd_, 5));
  EXPECT_TRUE(log_->is_successor());
  EXPECT_EQ(log_->session(), kSession);
  EXPECT_GT(log_->ids_above(), first + (uint64_t{1} << 39));
}

TEST_F(TakeoverLogTest, OpenFilesGoOnAsTheyWereOpened) {
  log_->Init("hello");
  Open(1, InodeId(9), O_RDWR | O_APPEND);
  Open(2, InodeId(10), O_RDONLY);
  log_->Closed(2, InodeId(10));
  const MountState& left = Next();
  EXPECT_EQ(left.init, "hello");
  ASSERT_EQ(left.handles.size(), 1u);
  const OpenedFile& file = left.handles.at(1);
  EXPECT_EQ(file.inode, InodeId(9));
  EXPECT_EQ(file.flags, O_RDWR | O_APPEND);
  EXPECT_EQ(file.uid, 1001u);
  EXPECT_EQ(file.groups, (std::vector<uint32_t>{5, 6}));
  EXPECT_EQ(file.exe, "/bin/tar");
  EXPECT_EQ(file.cgroup, "/a.slice");
  EXPECT_EQ(left.last_handle, 2u);
  EXPECT_EQ(left.unreleased, std::set<uint64_t>{10});
  log_->Released({InodeId(10)});
  EXPECT_TRUE(Next().unreleased.empty());
}

TEST_F(TakeoverLogTest, WritersOfADirtyFileLoseUntilTheyAreTold) {
  Open(1, InodeId(9), O_RDWR);
  Open(2, InodeId(9), O_WRONLY);
  Open(3, InodeId(9), O_RDONLY);
  Open(4, InodeId(10), O_RDWR);
  log_->Dirty(InodeId(9));
  log_->Dirty(InodeId(10));
  log_->Clean(InodeId(10));
  EXPECT_TRUE(Next().handles.at(1).lost);
  EXPECT_TRUE(log_->left().handles.at(2).lost);
  EXPECT_FALSE(log_->left().handles.at(3).lost);
  EXPECT_FALSE(log_->left().handles.at(4).lost);
  log_->Told(1);
  Open(5, InodeId(9), O_RDWR);  // what is lost is nothing of his
  const MountState& later = Next();
  EXPECT_FALSE(later.handles.at(1).lost);
  EXPECT_TRUE(later.handles.at(2).lost);
  EXPECT_FALSE(later.handles.at(5).lost);
}

TEST_F(TakeoverLogTest, ARequestThatComesAgainHasItsFirstId) {
  log_->ChangeBegins(100, 7);
  log_->ChangeBegins(102, 8);
  log_->ChangeEnds(102);
  Next();
  EXPECT_EQ(log_->LeftIds(), std::vector<uint64_t>{7});
  EXPECT_EQ(log_->IdOf(100 | kResent), 7u);
  EXPECT_EQ(log_->IdOf(102 | kResent), 0u);
  EXPECT_EQ(log_->IdOf(100), 0u) << "the kernel had not asked that before";
  // That one dies too before it has answered.
  Next();
  EXPECT_EQ(log_->IdOf(100 | kResent), 7u);
  log_->ChangeEnds(100 | kResent);
  EXPECT_TRUE(Next().changes.empty());
}

TEST_F(TakeoverLogTest, AHandleThatTheKernelWasNotToldOfIsFound) {
  OpenedFile file;
  file.number = 5;
  file.inode = InodeId(9);
  file.request = 100;
  log_->Opened(file);
  Next();
  EXPECT_EQ(log_->HandleOf(100 | kResent), 5u);
  EXPECT_EQ(log_->HandleOf(102 | kResent), 0u);
  EXPECT_EQ(log_->HandleOf(100), 0u);
}

TEST_F(TakeoverLogTest, AnAppendThatComesAgainKnowsWhereItWent) {
  log_->AppendBegins(100, 4096);
  log_->AppendBegins(102, 8192);
  log_->ChangeEnds(102);
  Next();
  EXPECT_EQ(log_->AppendOf(100 | kResent), 4096u);
  EXPECT_EQ(log_->AppendOf(102 | kResent), std::nullopt);
  EXPECT_EQ(log_->AppendOf(100), std::nullopt);
  EXPECT_TRUE(log_->LeftIds().empty());
}

TEST_F(TakeoverLogTest, LocksAreThoseOfTheLastMoment) {
  log_->Locked(Lock(LockAsk::Type::kWrite, 0, 99));
  log_->Locked(Lock(LockAsk::Type::kNone, 10, 19));
  log_->Locked(Lock(LockAsk::Type::kRead, 90, 99));
  const std::vector<LockAsk> held = Next().HeldLocks();
  ASSERT_EQ(held.size(), 3u);
  EXPECT_EQ(held[0].first, 0u);
  EXPECT_EQ(held[0].last, 9u);
  EXPECT_EQ(held[0].handle, 4u);
  EXPECT_EQ(held[0].owner, 31u);
  EXPECT_EQ(held[1].first, 20u);
  EXPECT_EQ(held[1].type, LockAsk::Type::kWrite);
  EXPECT_EQ(held[2].first, 90u);
  EXPECT_EQ(held[2].type, LockAsk::Type::kRead);
  log_->Locked(Lock(LockAsk::Type::kNone, 0, 99));
  EXPECT_TRUE(Next().HeldLocks().empty());
}

TEST_F(TakeoverLogTest, AFenceConcernsWhatWasOpen) {
  Open(1, InodeId(9), O_RDWR);
  log_->Fenced(12);
  Open(2, InodeId(9), O_RDWR);
  const MountState& left = Next();
  EXPECT_EQ(left.fenced, 12u);
  EXPECT_TRUE(left.handles.at(1).fenced);
  EXPECT_FALSE(left.handles.at(2).fenced);
}

// More events than the file has room for: it is written anew, and says the same.
TEST_F(TakeoverLogTest, ManyEventsFit) {
  for (uint64_t i = 1; i <= 5000; ++i) {
    Open(i, InodeId(i), O_RDWR);
    if (i > 3) log_->Closed(i - 3, InodeId(i - 3));
    if (i > 4) log_->Released({InodeId(i - 4)});
  }
  const MountState& left = Next();
  EXPECT_EQ(left.handles.size(), 3u);
  EXPECT_EQ(left.handles.begin()->first, 4998u);
  EXPECT_EQ(left.unreleased, std::set<uint64_t>{4997});
}

TEST_F(TakeoverLogTest, TooManyOpenFilesAreHandedOnToNobody) {
  for (uint64_t i = 1; i <= 5000; ++i) Open(i, InodeId(i), O_RDWR);
  EXPECT_EQ(TakeoverLog::Open(fd_, kSession).code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace weir::client
