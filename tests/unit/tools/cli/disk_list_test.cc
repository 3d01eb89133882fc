#include "tools/cli/disk_list.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

class DiskListTest : public ::testing::Test {
 protected:
  DiskListTest() {
    std::string pattern = ::testing::TempDir() + "/weir_disks.XXXXXX";
    dir_ = fs::canonical(mkdtemp(pattern.data())).string();
  }
  ~DiskListTest() override { fs::remove_all(dir_); }
  void MakeImages(const DiskList& list) const {
    for (const auto& image : list.images) {
      std::ofstream(dir_ + "/" + image.name).flush();
      fs::resize_file(dir_ + "/" + image.name, image.size);
    }
  }
  std::string dir_;
};

TEST_F(DiskListTest, IsTheSameForTheSameWordsOnly) {
  const DisksWanted wanted{.osds = 1,
                           .osd_size = 1 << 20,
                           .disks = {"/dev/sdb", "hdd:2MiB,rate=9MB/s", "hdd:" + dir_ + "/own.img"},
                           .tiers = {"a=ssd:3MiB,b=/dev/sdc"}};
  const auto planned = PlanDisks(dir_, wanted);
  ASSERT_TRUE(planned.ok()) << planned.status();
  ASSERT_TRUE(SaveDiskList(dir_, *planned).ok());
  MakeImages(*planned);
  const auto known = LoadDiskList(dir_);
  ASSERT_TRUE(known.ok()) << known.status();
  ASSERT_EQ(known->disks.size(), 5u);
  EXPECT_EQ(known->disks[3].path, "hdd:own.img");  // so that the directory can be moved
  EXPECT_EQ(PartsOf(dir_, known->disks[3])->front().disk, "hdd:" + dir_ + "/own.img");
  EXPECT_EQ(PartsOf("/x", known->disks[4])->front().disk, "ssd:/x/osd.4.a.img");

  EXPECT_TRUE(CheckSameDisks(dir_, *known, {}).ok());
  EXPECT_TRUE(CheckSameDisks(dir_, *known, wanted).ok());
  DisksWanted other = wanted;
  other.osd_size = 2 << 20;
  EXPECT_EQ(CheckSameDisks(dir_, *known, other).code(), ErrorCode::kInvalid);
  EXPECT_EQ(CheckSameDisks(dir_, *known, {.osd_size = 2 << 20}).code(), ErrorCode::kInvalid);
  EXPECT_TRUE(CheckSameDisks(dir_, *known, {.osd_size = 1 << 20}).ok());
  for (const auto& [index, text] :
       {std::pair(0, "/dev/sdd"), std::pair(1, "hdd:2MiB,rate=8MB/s"),
        std::pair(1, "hdd:3MiB,rate=9MB/s"), std::pair(1, "/dev/sdd")}) {
    other = wanted;
    other.disks[static_cast<size_t>(index)] = text;
    EXPECT_EQ(CheckSameDisks(dir_, *known, other).code(), ErrorCode::kInvalid) << text;
  }
  for (const char* tiers :
       {"a=ssd:4MiB,b=/dev/sdc", "a=ssd:3MiB,b=/dev/sdd", "c=ssd:3MiB,b=/dev/sdc"}) {
    other = wanted;
    other.tiers = {tiers};
    EXPECT_EQ(CheckSameDisks(dir_, *known, other).code(), ErrorCode::kInvalid) << tiers;
  }
  other = wanted;
  other.osds = 2;
  EXPECT_EQ(CheckSameDisks(dir_, *known, other).code(), ErrorCode::kInvalid);
}

TEST_F(DiskListTest, ReadsVersion1AndNothingThatIsWrong) {
  const auto load = [&](const std::string& text) {
    std::ofstream(DiskListPath(dir_)) << text;
    return LoadDiskList(dir_);
  };
  EXPECT_EQ(LoadDiskList(dir_).code(), ErrorCode::kNotFound);
  const auto old = load(
      R"({"version":1,"disks":[{"path":"osd.0.img","is_image":true},)"
      R"({"path":"","is_image":false,"tiers":[{"name":"a","disk":"ssd:osd.1.a.img,iops=9"}]}]})");
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_EQ(PartsOf("/w", old->disks[1])->front().disk, "ssd:/w/osd.1.a.img,iops=9");
  for (const char* text :
       {"", "[]", "{}", "7", R"({"version":1})", R"({"version":1,"disks":[]})",
        R"({"disks":[{"path":"a","is_image":true}]})",
        R"({"version":3,"disks":[{"path":"a","is_image":true}],"images":[]})",
        R"({"version":-1,"disks":[{"path":"a","is_image":true}]})",
        R"({"version":2,"disks":[{"path":"a","is_image":true}]})",
        R"({"version":2,"disks":[{"path":"a","is_image":true}],"images":[{"name":"a","size":-1}]})",
        R"({"version":1,"disks":[{"path":"/a","is_image":true}]})",
        R"({"version":1,"disks":[{"path":"a\u0000b","is_image":true}]})",
        R"({"version":1,"disks":[{"path":"","is_image":false}]})",
        R"({"version":1,"disks":[{"path":"a","is_image":1}]})"}) {
    EXPECT_EQ(load(text).code(), ErrorCode::kCorrupt) << text;
  }
}

TEST_F(DiskListTest, RefusesImagesOfOddSizesAndWithoutRoom) {
  EXPECT_EQ(PlanDisks(dir_, {.osds = 1, .osd_size = 300'000'001}).code(), ErrorCode::kInvalid);
  EXPECT_EQ(PlanDisks(dir_, {.disks = {"hdd:300000001"}}).code(), ErrorCode::kInvalid);
  DiskList list = *PlanDisks(dir_, {.osds = 2, .osd_size = 4096});
  EXPECT_TRUE(CheckRoom(dir_ + "/not/yet/there", list, 0).ok());
  EXPECT_EQ(CheckRoom(dir_, list, UINT64_MAX - 4096).code(), ErrorCode::kNoSpace);
  list.images[0].size = uint64_t{1} << 60;
  EXPECT_EQ(CheckRoom(dir_, list, 0).code(), ErrorCode::kNoSpace);
}

}  // namespace
}  // namespace weir::cli
