// Goal: a close stores what its own process wrote, and what those wrote who are gone; whoever has
// written nothing neither waits nor hears of errors.
#include "client/vfs/handle_table.h"

#include <gtest/gtest.h>

#include <set>

namespace weir::client {
namespace {

constexpr pid_t kParent = 100, kItsThread = 101, kChild = 200;

class HandleTest : public ::testing::Test {
 protected:
  Handle::AtClose AtClose(const Handle& handle, pid_t closer) {
    return handle.CloseBy(closer, [this](pid_t thread, pid_t than) {
      const auto process = [](pid_t pid) { return pid / 100; };
      return alive_.contains(thread) && process(thread) != process(than);
    });
  }
  bool Flushes(const Handle& handle, pid_t closer) {
    return AtClose(handle, closer) == Handle::AtClose::kStore;
  }
  std::set<pid_t> alive_{kParent, kItsThread, kChild};
  InodePtr inode_ = std::make_shared<Inode>(InodeId(5));
  Handle handle_{inode_, nullptr, O_RDWR};
};

TEST_F(HandleTest, NothingWrittenNothingToWaitFor) {
  EXPECT_FALSE(Flushes(handle_, kParent));
  EXPECT_FALSE(handle_.HearsAtClose());
}

TEST_F(HandleTest, TheWriterWaitsUntilItHasBeenFlushedAndAgainWhenItHasWrittenMore) {
  handle_.Changing(kParent);
  EXPECT_TRUE(Flushes(handle_, kParent));
  EXPECT_TRUE(Flushes(handle_, kItsThread));
  const Handle::Changes first = handle_.changes();
  handle_.Changing(kParent);  // while the flush is under way
  handle_.Flushed(first);
  EXPECT_TRUE(Flushes(handle_, kParent));
  handle_.Flushed(handle_.changes());
  EXPECT_FALSE(Flushes(handle_, kParent));
  handle_.Flushed(first);  // one that ends late takes nothing back
  EXPECT_FALSE(Flushes(handle_, kParent));
  EXPECT_TRUE(handle_.HearsAtClose());
  handle_.Changing(kChild);
  EXPECT_TRUE(Flushes(handle_, kChild));
}

TEST_F(HandleTest, AChildDoesNotWaitForWhatAParentWroteThatLives) {
  handle_.Changing(kParent);
  EXPECT_EQ(AtClose(handle_, kChild), Handle::AtClose::kNothing) << "nor hears of its errors";
  EXPECT_TRUE(Flushes(handle_, kParent));
  alive_.erase(kParent);
  EXPECT_TRUE(Flushes(handle_, kChild)) << "nobody else will close it";
  handle_.Flushed(handle_.changes());
  EXPECT_EQ(AtClose(handle_, kChild), Handle::AtClose::kTell);
}

TEST_F(HandleTest, WhoeverCannotBeKnownIsWaitedFor) {
  handle_.Changing(0);
  EXPECT_TRUE(Flushes(handle_, kChild));
  handle_.Flushed(handle_.changes());
  handle_.Changing(kParent);
  EXPECT_TRUE(Flushes(handle_, 0));
  handle_.Changing(kItsThread);
  EXPECT_TRUE(Flushes(handle_, kChild)) << "of several it is not remembered who";
}

TEST_F(HandleTest, PagesMayBeAnybodysWhoCanStoreThem) {
  Handle reader{inode_, nullptr, O_RDONLY};
  inode_->WrotePages();
  EXPECT_TRUE(Flushes(handle_, kChild));
  EXPECT_TRUE(handle_.HearsAtClose());
  EXPECT_FALSE(Flushes(reader, kChild));
  EXPECT_FALSE(reader.HearsAtClose());
  const Handle later{inode_, nullptr, O_RDWR};
  EXPECT_FALSE(Flushes(later, kChild));
}

TEST_F(HandleTest, WhoeverLockedHearsAtClose) {
  handle_.locked = true;
  EXPECT_TRUE(handle_.HearsAtClose());
}

}  // namespace
}  // namespace weir::client
