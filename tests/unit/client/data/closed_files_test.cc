#include "client/data/closed_files.h"

#include <gtest/gtest.h>

namespace weir::client {
namespace {

constexpr InodeId kFolder{1}, kOneFile{10}, kOtherFile{11};
using Ids = std::vector<InodeId>;

TEST(ClosedFilesTest, AFileThatWasMadeHereIsKnownByItsName) {
  Inode a(kOneFile), b(kOtherFile);
  a.Made({kFolder, "a"});
  b.Made({kFolder, "b"});
  ClosedFiles closed;
  closed.Add(a);
  closed.Add(b);
  EXPECT_EQ(closed.MayHave({kFolder, "a"}), Ids{kOneFile});
  EXPECT_EQ(closed.MayHave({kFolder, "b"}), Ids{kOtherFile});
  EXPECT_EQ(closed.MayHave({kFolder, "c"}), Ids{});
  EXPECT_TRUE(closed.AnyMayHave({kFolder, "a"}));
  EXPECT_FALSE(closed.AnyMayHave({kFolder, "c"}));
  EXPECT_EQ(closed.MayHave({InodeId(2), "a"}), Ids{});
}

TEST(ClosedFilesTest, OneOfWhichNoNameIsKnownMayHaveAny) {
  Inode a(kOneFile), b(kOtherFile);
  a.Made({kFolder, "a"});
  ClosedFiles closed;
  closed.Add(a);
  closed.Add(b);
  EXPECT_EQ(closed.MayHave({kFolder, "a"}), (Ids{kOtherFile, kOneFile}));
  EXPECT_EQ(closed.MayHave({kFolder, "c"}), Ids{kOtherFile});
  EXPECT_TRUE(closed.AnyMayHave({kFolder, "c"}));
}

TEST(ClosedFilesTest, AMovedFileHasItsNewNameOnly) {
  Inode a(kOneFile);
  a.Made({kFolder, "a"});
  ClosedFiles closed;
  closed.Add(a);
  a.Made({kFolder, "b"});
  closed.Add(a);
  EXPECT_EQ(closed.MayHave({kFolder, "a"}), Ids{});
  EXPECT_EQ(closed.MayHave({kFolder, "b"}), Ids{kOneFile});
  EXPECT_EQ(closed.size(), 1u);
}

TEST(ClosedFilesTest, ANameThatIsGivenAgainIsOfTheLast) {
  Inode a(kOneFile), b(kOtherFile);
  a.Made({kFolder, "a"});
  b.Made({kFolder, "a"});
  ClosedFiles closed;
  closed.Add(a);
  closed.Add(b);
  EXPECT_EQ(closed.MayHave({kFolder, "a"}), Ids{kOtherFile});
  closed.Take(kOneFile);
  EXPECT_EQ(closed.MayHave({kFolder, "a"}), Ids{kOtherFile});
  closed.Take(kOtherFile);
  EXPECT_EQ(closed.MayHave({kFolder, "a"}), Ids{});
}

TEST(ClosedFilesTest, WhoWaitsIsGivenBackOnce) {
  Inode a(kOneFile);
  ClosedFiles closed;
  int ran = 0;
  std::function<void()> then = [&] { ++ran; };
  EXPECT_FALSE(closed.Wait(kOneFile, &then));
  EXPECT_TRUE(then) << "it is his still";
  closed.Add(a);
  EXPECT_TRUE(closed.Wait(kOneFile, &then));
  for (const auto& run : closed.Take(kOneFile)) run();
  EXPECT_EQ(ran, 1);
  EXPECT_TRUE(closed.Take(kOneFile).empty());
  closed.Add(a);
  EXPECT_EQ(closed.TakeAll().size(), 1u);
  EXPECT_FALSE(closed.Has(kOneFile));
}

}  // namespace
}  // namespace weir::client
