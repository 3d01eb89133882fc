#include "tools/cli/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/base/note_file.h"
#include "tools/cli/cluster_link.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/mounts.h"

namespace weir::cli {
namespace {

class FilesTest : public ::testing::Test {
 protected:
  FilesTest() {
    std::string pattern = ::testing::TempDir() + "/weir_files.XXXXXX";
    dir_ = std::filesystem::canonical(mkdtemp(pattern.data())).string();
  }
  ~FilesTest() override { std::filesystem::remove_all(dir_); }
  std::string dir_;
};

TEST_F(FilesTest, ALockNamesItsHolderUntilItIsLetGo) {
  const std::string path = dir_ + "/lock";
  {
    const auto first = LockFile::Take(path);
    ASSERT_TRUE(first.ok());
    const auto second = LockFile::Take(path);
    EXPECT_EQ(second.code(), ErrorCode::kBusy);
    EXPECT_NE(second.status().message().find(std::to_string(getpid())), std::string::npos);
  }
  EXPECT_TRUE(LockFile::Take(path).ok());
}

TEST_F(FilesTest, ACopyIsReplacedAsAWhole) {
  const std::string path = dir_ + "/endpoint";
  ASSERT_TRUE(WriteFileAtomically(path, "one\n").ok());
  ASSERT_TRUE(WriteFileAtomically(path, "2\n").ok());
  EXPECT_EQ(*ReadFile(path), "2\n");
  EXPECT_EQ(ReadFile(dir_ + "/none").code(), ErrorCode::kNotFound);
}

// A look at a directory must not wait for ever, nor fill the memory.
TEST_F(FilesTest, OnlyRegularFilesOfASensibleSizeAreRead) {
  ASSERT_EQ(mkfifo((dir_ + "/fifo").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/zero", dir_ + "/zeros");
  std::filesystem::create_symlink(dir_ + "/none", dir_ + "/dangling");
  std::ofstream(dir_ + "/large") << "x";
  std::filesystem::resize_file(dir_ + "/large", uint64_t{1} << 40);
  for (const std::string name : {"/fifo", "/zeros", "/dangling", "/large", ""}) {
    EXPECT_EQ(ReadFile(dir_ + name).code(), ErrorCode::kCorrupt) << name;
  }
}

TEST_F(FilesTest, AWriteLeavesWhatALinkOfItsDraftLeadsTo) {
  std::ofstream(dir_ + "/diary") << "dear";
  std::filesystem::create_symlink(dir_ + "/diary", dir_ + "/file.new");
  ASSERT_TRUE(WriteFileAtomically(dir_ + "/file", "one\n").ok());
  EXPECT_EQ(*ReadFile(dir_ + "/diary"), "dear");
  EXPECT_EQ(*ReadFile(dir_ + "/file"), "one\n");
}

TEST_F(FilesTest, ANoteReplacesNotesOnlyAndGoes) {
  const std::string path = dir_ + "/note";
  for (const std::string text : {"", "77\n", "77", "tcp://127.0.0.1:7370\n"}) {
    std::ofstream(path, std::ios::trunc) << text;
    {
      NoteFile note;
      ASSERT_TRUE(note.Write(path, "78").ok()) << text;
      EXPECT_EQ(*ReadFile(path), "78\n");
    }
    EXPECT_FALSE(std::filesystem::exists(path));
  }
  for (const std::string text : {"my thesis", "77\n78\n", "7 dwarfs\n"}) {
    std::ofstream(path, std::ios::trunc) << text;
    EXPECT_EQ(NoteFile().Write(path, "78").code(), ErrorCode::kExists);
    EXPECT_EQ(*ReadFile(path), text);
  }
  EXPECT_EQ(NoteFile().Write(dir_, "78").code(), ErrorCode::kExists);
  std::filesystem::remove(path);
  {
    NoteFile first, second;
    ASSERT_TRUE(first.Write(path, "1").ok());
    ASSERT_TRUE(second.Write(path, "2").ok());
    first.Expect(path, "1");
    second.Expect("", "");  // leaves it
  }
  EXPECT_EQ(*ReadFile(path), "2\n");
}

TEST_F(FilesTest, AClusterIsADirectoryOrAnEndpoint) {
  EXPECT_EQ(*ResolveEndpoint("tcp://10.0.0.1:7000"), "tcp://10.0.0.1:7000");
  EXPECT_EQ(*ResolveEndpoint("weir-host"), "tcp://weir-host:7370");
  EXPECT_EQ(ExitCodeOf(ResolveEndpoint("").status()), ExitCode::kBadUsage);
  // A directory that no daemon served yet, and one that does not exist: nobody to talk to.
  EXPECT_EQ(ExitCodeOf(ResolveEndpoint(dir_).status()), ExitCode::kNoContact);
  EXPECT_EQ(ExitCodeOf(ResolveEndpoint(dir_ + "/none").status()), ExitCode::kNoContact);
  ASSERT_TRUE(WriteFileAtomically(dir_ + "/endpoint", "ipc:///run/weir/mds.sock\n").ok());
  EXPECT_EQ(*ResolveEndpoint(dir_), "ipc:///run/weir/mds.sock");
}

TEST_F(FilesTest, AnEmbeddedOsdIsReachedBesideItsMds) {
  EXPECT_EQ(ReachableEndpoint("inproc://osd.3", "ipc:///w/mds.sock"), "ipc:///w/osd.3.sock");
  EXPECT_EQ(ReachableEndpoint("tcp://1.2.3.4:5", "ipc:///w/mds.sock"), "tcp://1.2.3.4:5");
}

TEST_F(FilesTest, AbsolutePathsResolveWhatExists) {
  std::filesystem::create_directory(dir_ + "/real");
  std::filesystem::create_directory_symlink(dir_ + "/real", dir_ + "/link");
  EXPECT_EQ(AbsolutePath(dir_ + "/link/"), dir_ + "/real");
  EXPECT_EQ(AbsolutePath(dir_ + "/link/../real/./none"), dir_ + "/real/none");
  EXPECT_EQ(AbsolutePath(dir_ + "/link/none"), dir_ + "/real/none");
  EXPECT_EQ(StateOfMount(dir_), MountState::kNone);
  EXPECT_EQ(StateOfMount("/proc"), MountState::kAlive);
}

}  // namespace
}  // namespace weir::cli
