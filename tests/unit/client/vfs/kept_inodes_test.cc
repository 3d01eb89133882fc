// Goal: what lost its last name is kept exactly as long as the kernel refers to it.
#include "client/vfs/kept_inodes.h"

#include <gtest/gtest.h>

#include <memory>

namespace weir::client {
namespace {

class KeptInodesTest : public ::testing::Test {
 protected:
  std::vector<InodeId> Released() {
    kept.Tick();
    return std::exchange(released, {});
  }
  std::vector<InodeId> released;
  std::vector<InodeId> blank;
  InodeTable table{[this](const InodePtr& inode) { kept.Forgotten(inode); }};
  KeptInodes kept{
      table, [this](const std::vector<InodeId>& inodes, const std::vector<InodeId>& without_data) {
        released = inodes;
        blank = without_data;
      }};
};

constexpr InodeId kFile{7};

TEST_F(KeptInodesTest, IsReleasedWhenTheKernelHasForgottenIt) {
  table.Lookup(kFile);
  table.Lookup(kFile);
  kept.Keep(kFile);
  table.Forget(kFile, 1);
  EXPECT_TRUE(Released().empty());
  EXPECT_EQ(kept.All(), std::vector<InodeId>{kFile}) << "for an MDS that restarts";
  EXPECT_TRUE(kept.Has(kFile));
  table.Forget(kFile, 1);
  EXPECT_FALSE(kept.Has(kFile));
  EXPECT_TRUE(kept.All().empty());
  EXPECT_EQ(Released(), std::vector<InodeId>{kFile});
  EXPECT_TRUE(Released().empty());
}

TEST_F(KeptInodesTest, IsReleasedAtOnceWhenTheKernelDoesNotKnowIt) {
  kept.Keep(kFile);
  EXPECT_EQ(Released(), std::vector<InodeId>{kFile});
  table.Pin(kFile);  // ours alone
  kept.Keep(kFile);
  EXPECT_EQ(Released(), std::vector<InodeId>{kFile});
  table.Unpin(kFile);
}

TEST_F(KeptInodesTest, IsReleasedAgainWhenTheMdsWasToldOfItBehindTheRelease) {
  table.Lookup(kFile);
  kept.Keep(kFile);
  const std::vector<InodeId> told = kept.All();
  kept.Told(told);
  EXPECT_TRUE(Released().empty());
  table.Forget(kFile, 1);
  EXPECT_EQ(Released(), told);
  kept.Told(told);
  EXPECT_EQ(Released(), told);
}

// Data that OSDs have and the MDS does not know of would be nobody's for ever.
TEST_F(KeptInodesTest, IsBlankOnlyIfItWasMadeHereAndNothingWentOrMayGoToOsds) {
  const auto blank_after = [this](auto happens) {
    const InodePtr inode = table.Lookup(kFile);
    happens(*inode);
    kept.Keep(kFile);
    table.Forget(kFile, 1);
    EXPECT_EQ(Released(), std::vector<InodeId>{kFile});
    return !blank.empty();
  };
  EXPECT_FALSE(blank_after([](Inode&) {})) << "others made it, or somebody before us";
  EXPECT_TRUE(blank_after([](Inode& inode) { inode.SetBlank(); }));
  EXPECT_FALSE(blank_after([](Inode& inode) {
    inode.SetBlank();
    inode.Touch();
  }));
  EXPECT_FALSE(blank_after([](Inode& inode) {
    inode.Touch();  // the answer to its creation comes late
    inode.SetBlank();
  }));
  EXPECT_FALSE(blank_after([this](Inode& inode) {
    inode.SetBlank();
    table.Pin(kFile);
  }));
  table.Unpin(kFile);
}

TEST_F(KeptInodesTest, OthersAreForgottenWithoutAWord) {
  table.Lookup(kFile);
  table.Forget(kFile, 1);
  EXPECT_TRUE(Released().empty());
}

// The kernel forgets an inode between the look that finds it known and the count: a look that
// counts first either finds it whole or not at all. A new one would have no type, and be EIO.
TEST(InodeTableTest, CountsOnlyWhatIsKnown) {
  InodeTable table;
  EXPECT_EQ(table.LookupKnown(kFile), nullptr);
  FileAttr attr;
  attr.inode = kFile;
  attr.mode = S_IFREG | 0644;
  attr.version = 1;
  table.Lookup(kFile)->Update(attr);
  const InodePtr known = table.LookupKnown(kFile);
  ASSERT_NE(known, nullptr);
  table.Forget(kFile, 1);
  EXPECT_EQ(table.Find(kFile), known) << "counted twice";
  EXPECT_EQ(known->attr().mode, attr.mode);
  table.Forget(kFile, 1);
  EXPECT_EQ(table.LookupKnown(kFile), nullptr);
}

}  // namespace
}  // namespace weir::client
