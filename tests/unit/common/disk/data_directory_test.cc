#include "common/disk/data_directory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/base/files.h"
#include "common/disk/disk_contents.h"

namespace weir {
namespace {

namespace fs = std::filesystem;

class DataDirectoryTest : public ::testing::Test {
 protected:
  DataDirectoryTest() {
    std::string pattern = ::testing::TempDir() + "/weir_data.XXXXXX";
    dir_ = fs::canonical(mkdtemp(pattern.data())).string();
  }
  ~DataDirectoryTest() override { fs::remove_all(dir_); }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ + "/" + name) << text;
  }
  [[nodiscard]] Result<DataRecord> Look(DataOwner asker) const {
    return LookAtDirectory(dir_, asker);
  }
  std::string dir_;
};

TEST_F(DataDirectoryTest, IsNewMadeAndWhole) {
  EXPECT_EQ(LookAtDirectory(dir_ + "/none", DataOwner::kWeirMds)->state, DataState::kNew);
  EXPECT_EQ(Look(DataOwner::kWeirMds)->state, DataState::kNew);
  ASSERT_TRUE(WriteRecord(dir_, {.owner = DataOwner::kWeirMds, .state = DataState::kMaking}).ok());
  EXPECT_EQ(Look(DataOwner::kWeirMds)->state, DataState::kMaking);
  ASSERT_TRUE(
      WriteRecord(dir_, {.owner = DataOwner::kWeirMds, .state = DataState::kWhole, .cluster = "c"})
          .ok());
  EXPECT_EQ(Look(DataOwner::kWeirMds)->state, DataState::kWhole);
  EXPECT_EQ(Look(DataOwner::kWeirMds)->cluster, "c");
  for (const DataOwner other : {DataOwner::kWeirfs, DataOwner::kWeirDev}) {
    EXPECT_EQ(Look(other).code(), ErrorCode::kExists);
  }
  Write("owner.json", "{}");
  EXPECT_EQ(Look(DataOwner::kWeirMds).code(), ErrorCode::kCorrupt);
}

TEST_F(DataDirectoryTest, OfAnEarlierVersionIsKnownByItsFiles) {
  Write("mds.img", "x");
  EXPECT_EQ(Look(DataOwner::kWeirMds)->state, DataState::kWhole);
  EXPECT_EQ(Look(DataOwner::kWeirfs).code(), ErrorCode::kExists);
  Write("osd.0.img", "x");  // and what says which disks there are is gone
  for (const DataOwner asker : {DataOwner::kWeirMds, DataOwner::kWeirfs, DataOwner::kWeirDev}) {
    EXPECT_EQ(Look(asker).code(), ErrorCode::kCorrupt);
  }
  Write("disks.json", "x");
  EXPECT_EQ(Look(DataOwner::kWeirfs)->state, DataState::kWhole);
  EXPECT_EQ(Look(DataOwner::kWeirDev).code(), ErrorCode::kExists);
  fs::rename(dir_ + "/disks.json", dir_ + "/weir-dev.json");
  EXPECT_EQ(Look(DataOwner::kWeirDev)->state, DataState::kWhole);
}

TEST_F(DataDirectoryTest, WithSomebodysFilesIsNotNew) {
  Write("lock", "123 /mnt\n");
  Write("endpoint", "ipc:///x\n");
  fs::create_directories(dir_ + "/lost+found");
  fs::create_directories(dir_ + "/log");
  EXPECT_EQ(Look(DataOwner::kWeirfs)->state, DataState::kNew);
  Write("letter", "dear");
  EXPECT_EQ(Look(DataOwner::kWeirfs).code(), ErrorCode::kExists);
  EXPECT_TRUE(LookAtDirectory(dir_, DataOwner::kWeirfs, {dir_ + "/letter"}).ok());
  fs::remove(dir_ + "/letter");
  Write("log/book", "a ship's");
  EXPECT_EQ(Look(DataOwner::kWeirfs).code(), ErrorCode::kExists);
  fs::remove_all(dir_ + "/log");
  Write("lock", "combination: 1234");
  EXPECT_EQ(Look(DataOwner::kWeirfs).code(), ErrorCode::kExists);
}

TEST_F(DataDirectoryTest, AVersionIsAWholeNumber) {
  for (const std::string version : {"1.9", "true", "4294967297", "-1", "\"1\"", "null"}) {
    Write("owner.json",
          R"({"program":"weir-mds","state":"whole","cluster":"c","version":)" + version + "}");
    EXPECT_EQ(Look(DataOwner::kWeirMds).code(), ErrorCode::kCorrupt) << version;
  }
}

// They are replaced, appended to or unlinked as soon as something serves.
TEST_F(DataDirectoryTest, ADiskIsNoneOfItsOtherFiles) {
  fs::create_directory_symlink(dir_, dir_ + ".link");
  for (const std::string name : {"owner.json", "endpoint", "lock", "weirfs.log", "mds.img",
                                 "mds.sock", "mds/mds.img", "log/osd.0.log", "./x.new"}) {
    for (const std::string& top : {dir_, dir_ + "/.", dir_ + ".link"}) {
      const std::string disk = top + "/" + name;
      EXPECT_EQ(LookAtDirectory(dir_, DataOwner::kWeirfs, {disk}).code(), ErrorCode::kInvalid);
    }
  }
  fs::remove(dir_ + ".link");
  for (const std::string& disk : {dir_ + "/disk.img", dir_ + "/osd.0.img", dir_ + ".lock/lock"}) {
    EXPECT_TRUE(LookAtDirectory(dir_, DataOwner::kWeirfs, {disk}).ok()) << disk;
  }
}

TEST_F(DataDirectoryTest, AMountpointMustNotHideIt) {
  fs::create_directories(dir_ + "/a/data");
  fs::create_directories(dir_ + "/b");
  fs::create_directory_symlink(dir_ + "/a/data", dir_ + "/link");
  const std::string data = dir_ + "/a/data";
  for (const std::string mount :
       {"/a/data", "/a", "/a/data/none", "/link", "/link/none", "/b/../a"}) {
    EXPECT_NE(OverlapOf(data, dir_ + mount), "") << mount;
  }
  for (const std::string mount : {"/b", "/none", "/a/data2"}) {
    EXPECT_EQ(OverlapOf(data, dir_ + mount), "") << mount;
  }
}

TEST_F(DataDirectoryTest, WhatADiskHoldsIsFoundWhereverItLies) {
  const std::string path = dir_ + "/disk";
  Write("disk", "");
  fs::resize_file(path, uint64_t{3} << 30);
  EXPECT_EQ(*FindData(path), UINT64_MAX);
  for (const uint64_t at : {uint64_t{0}, (uint64_t{2} << 30) + 77, (uint64_t{3} << 30) - 1}) {
    fs::resize_file(path, 0);
    fs::resize_file(path, uint64_t{3} << 30);
    std::fstream file(path, std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(at));
    file << 'x';
    file.close();
    EXPECT_EQ(*FindData(path), at);
  }
  EXPECT_EQ(FindData(dir_ + "/none").code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace weir
