// Names: create, mkdir, unlink, rmdir, link, symlink, readdir: answers, errors, counts and times.
#include <algorithm>

#include "tests/unit/mds/mds_fixture.h"

namespace weir::mds {
namespace {

using TreeTest = MdsFixture;
using namespace std::chrono_literals;

TEST_F(TreeTest, MakesAndFindsAFileAndStampsTheParent) {
  clock.Advance(5s);
  const uint64_t file = CreateOpen(kRoot, "a", 0640);
  const auto found = Ask<wire::EntryReply>(wire::MDS_LOOKUP, Name(kRoot, "a"));
  EXPECT_EQ(found.attr().inode(), file);
  EXPECT_EQ(found.attr().mode(), S_IFREG | 0640u);
  EXPECT_EQ(found.attr().nlink(), 1u);
  const int64_t now = clock.WallNow().ns;
  EXPECT_EQ(found.attr().btime_ns(), now);
  EXPECT_EQ(Stat(kRoot).attr().mtime_ns(), now);
  EXPECT_EQ(Stat(kRoot).attr().ctime_ns(), now);
  EXPECT_EQ(found.effective_class().class_id(), kBestEffort.value);
}

// So that the mount which made the change need not ask.
TEST_F(TreeTest, AnswersTellHowTheDirectoriesAreAfterAChangeOfNames) {
  const uint64_t a = Mkdir(kRoot, "a");
  const uint64_t b = Mkdir(kRoot, "b");
  const auto is = [this](const wire::Attr& told, uint64_t directory) {
    EXPECT_EQ(told.SerializeAsString(), Stat(directory).attr().SerializeAsString());
  };
  const auto make = [&](uint32_t method, const std::string& name, uint32_t mode) {
    clock.Advance(1s);
    const auto made = Ask<wire::EntryReply>(method, New(a, name, mode));
    is(made.directory(), a);
    return made.attr().inode();
  };
  const auto touch = [&](uint32_t method, const google::protobuf::Message& request) {
    clock.Advance(1s);
    return Ask<wire::TouchedReply>(method, request);
  };
  const uint64_t file = make(wire::MDS_CREATE, "f", 0644);
  make(wire::MDS_MKNOD, "d", S_IFDIR | 0755);
  wire::LinkRequest link;
  link.set_inode(file);
  link.set_new_parent(b);
  link.set_new_name("l");
  clock.Advance(1s);
  is(Ask<wire::EntryReply>(wire::MDS_LINK, link).directory(), b);
  is(touch(wire::MDS_UNLINK, Name(b, "l")).directories(0), b);
  const auto moved = touch(wire::MDS_RENAME, Move(a, "d", b, "e"));
  ASSERT_EQ(moved.directories_size(), 2);
  is(moved.directories(0), a);
  is(moved.directories(1), b);
  EXPECT_EQ(touch(wire::MDS_RENAME, Move(a, "f", a, "g")).directories_size(), 1);
  is(touch(wire::MDS_RMDIR, Name(b, "e")).directories(0), b);
}

TEST_F(TreeTest, RefusesNamesAndTypesThatPosixRefuses) {
  EXPECT_EQ(Code(wire::MDS_LOOKUP, Name(kRoot, "x")), ErrorCode::kNotFound);
  EXPECT_EQ(Code(wire::MDS_LOOKUP, Name(99, "x")), ErrorCode::kStale);
  const uint64_t file = Touch(kRoot, "f");
  EXPECT_EQ(Code(wire::MDS_LOOKUP, Name(file, "x")), ErrorCode::kNotDirectory);
  EXPECT_EQ(Code(wire::MDS_MKNOD, New(kRoot, "f", S_IFREG)), ErrorCode::kExists);
  EXPECT_EQ(Code(wire::MDS_MKNOD, New(kRoot, std::string(256, 'n'), S_IFREG)),
            ErrorCode::kNameTooLong);
  EXPECT_EQ(Code(wire::MDS_MKNOD, New(kRoot, std::string(255, 'n'), S_IFREG)), ErrorCode::kOk);
  EXPECT_EQ(Code(wire::MDS_MKNOD, New(kRoot, "a/b", S_IFREG)), ErrorCode::kInvalid);
  EXPECT_EQ(Code(wire::MDS_MKNOD, New(kRoot, "", S_IFREG)), ErrorCode::kNotFound);
  EXPECT_EQ(Code(wire::MDS_MKNOD, New(kRoot, "..", S_IFDIR)), ErrorCode::kExists);
  EXPECT_EQ(Code(wire::MDS_UNLINK, Name(kRoot, "nope")), ErrorCode::kNotFound);
  EXPECT_EQ(Code(wire::MDS_RMDIR, Name(kRoot, "f")), ErrorCode::kNotDirectory);
  wire::CreateRequest exclusive = New(kRoot, "f", 0644);
  exclusive.set_exclusive(true);
  EXPECT_EQ(Code(wire::MDS_CREATE, exclusive), ErrorCode::kExists);
  exclusive.set_exclusive(false);
  EXPECT_EQ(Ask<wire::EntryReply>(wire::MDS_CREATE, exclusive).attr().inode(), file);
}

// The mount truncates what was found, and its kernel looks again at what is no file.
TEST_F(TreeTest, CreateSaysWhetherItFoundAFile) {
  const auto made = Ask<wire::EntryReply>(wire::MDS_CREATE, New(kRoot, "f", 0644));
  EXPECT_TRUE(made.made());
  const auto found = Ask<wire::EntryReply>(wire::MDS_CREATE, New(kRoot, "f", 0644));
  EXPECT_EQ(found.attr().inode(), made.attr().inode());
  EXPECT_FALSE(found.made());
  wire::CreateRequest link = New(kRoot, "link", S_IFLNK | 0777);
  link.set_symlink_target("f");
  ASSERT_EQ(Code(wire::MDS_MKNOD, link), ErrorCode::kOk);
  ASSERT_EQ(Code(wire::MDS_MKNOD, New(kRoot, "fifo", S_IFIFO | 0644)), ErrorCode::kOk);
  ASSERT_EQ(Code(wire::MDS_MKNOD, New(kRoot, "socket", S_IFSOCK | 0644)), ErrorCode::kOk);
  Mkdir(kRoot, "dir");
  for (const char* other : {"link", "fifo", "socket"}) {
    EXPECT_EQ(Code(wire::MDS_CREATE, New(kRoot, other, 0644)), ErrorCode::kStale) << other;
  }
  EXPECT_EQ(Code(wire::MDS_CREATE, New(kRoot, "dir", 0644)), ErrorCode::kIsDirectory);
}

TEST_F(TreeTest, DirectoriesCountTheirLinksAndMustBeEmptyToGo) {
  const uint64_t a = Mkdir(kRoot, "a");
  EXPECT_EQ(Stat(a).attr().nlink(), 2u);
  Mkdir(a, "b");
  EXPECT_EQ(Stat(a).attr().nlink(), 3u);
  EXPECT_EQ(Stat(kRoot).attr().nlink(), 3u);
  EXPECT_EQ(Code(wire::MDS_RMDIR, Name(kRoot, "a")), ErrorCode::kNotEmpty);
  EXPECT_EQ(Code(wire::MDS_UNLINK, Name(kRoot, "a")), ErrorCode::kIsDirectory);
  EXPECT_EQ(Code(wire::MDS_RMDIR, Name(a, "b")), ErrorCode::kOk);
  EXPECT_EQ(Code(wire::MDS_RMDIR, Name(kRoot, "a")), ErrorCode::kOk);
  EXPECT_EQ(Stat(kRoot).attr().nlink(), 2u);
  EXPECT_EQ(Code(wire::MDS_GETATTR, At(a)), ErrorCode::kStale);
}

TEST_F(TreeTest, HardLinksShareTheInodeAndAnotherBecomesPrimary) {
  const uint64_t a = Mkdir(kRoot, "a");
  const uint64_t file = Touch(kRoot, "f");
  EXPECT_EQ(Ask<wire::EntryReply>(wire::MDS_LINK, NewLink(file, a, "g")).attr().nlink(), 2u);
  EXPECT_EQ(Code(wire::MDS_LINK, NewLink(file, a, "g")), ErrorCode::kExists);
  EXPECT_EQ(Code(wire::MDS_LINK, NewLink(a, kRoot, "d")), ErrorCode::kPermission);
  MakeClass("gold");
  EXPECT_EQ(Tag(a, "gold"), ErrorCode::kOk);
  EXPECT_EQ(Get(file, "qos.effective_class"), "best-effort (default)");
  EXPECT_EQ(Code(wire::MDS_UNLINK, Name(kRoot, "f")), ErrorCode::kOk);
  EXPECT_EQ(Stat(file).attr().nlink(), 1u);
  EXPECT_EQ(Get(file, "qos.effective_class"), "gold (from /a)");
  EXPECT_EQ(Code(wire::MDS_UNLINK, Name(a, "g")), ErrorCode::kOk);
  EXPECT_EQ(Code(wire::MDS_GETATTR, At(file)), ErrorCode::kStale);
}

TEST_F(TreeTest, SymlinksKeepTheirTarget) {
  wire::CreateRequest request = New(kRoot, "l", S_IFLNK | 0777);
  request.set_symlink_target("some/where");
  const auto made = Ask<wire::EntryReply>(wire::MDS_MKNOD, request);
  EXPECT_EQ(made.attr().size(), 10u);
  EXPECT_EQ(Ask<wire::ReadlinkReply>(wire::MDS_READLINK, At(made.attr().inode())).target(),
            "some/where");
  EXPECT_EQ(Code(wire::MDS_READLINK, At(kRoot)), ErrorCode::kInvalid);
}

TEST_F(TreeTest, ListsInPiecesAndACookieStaysValidWhileNamesComeAndGo) {
  std::vector<std::string> names;
  for (int i = 0; i < 10; ++i) {
    names.push_back("n" + std::to_string(i));
    Touch(kRoot, names.back());
  }
  EXPECT_EQ(List(kRoot), names);
  wire::ReaddirRequest request;
  request.set_inode(kRoot);
  request.set_max_entries(4);
  request.set_plus(true);
  const auto first = Ask<wire::ReaddirReply>(wire::MDS_READDIR, request);
  EXPECT_FALSE(first.end());
  EXPECT_EQ(first.entries(3).entry().attr().inode(), first.entries(3).inode());
  EXPECT_EQ(Code(wire::MDS_UNLINK, Name(kRoot, "n3")), ErrorCode::kOk);
  EXPECT_EQ(Code(wire::MDS_UNLINK, Name(kRoot, "n5")), ErrorCode::kOk);
  Touch(kRoot, "late");
  request.set_after_cookie(first.entries(3).cookie());
  request.set_max_entries(100);
  const auto rest = Ask<wire::ReaddirReply>(wire::MDS_READDIR, request);
  std::vector<std::string> seen;
  for (const auto& entry : rest.entries()) seen.push_back(entry.name());
  EXPECT_EQ(seen, (std::vector<std::string>{"n4", "n6", "n7", "n8", "n9", "late"}));
  EXPECT_TRUE(rest.end());
}

TEST_F(TreeTest, AListingEndsBeforeWhatIsMadeOrRenamedAfterItBegan) {
  for (const char* name : {"a", "b", "c", "d"}) Touch(kRoot, name);
  wire::ReaddirRequest request;
  request.set_inode(kRoot);
  request.set_max_entries(2);
  const auto first = Ask<wire::ReaddirReply>(wire::MDS_READDIR, request);
  ASSERT_EQ(first.entries_size(), 2);
  EXPECT_FALSE(first.end());
  EXPECT_EQ(Code(wire::MDS_RENAME, Move(kRoot, "a", kRoot, "e")), ErrorCode::kOk);
  EXPECT_EQ(Code(wire::MDS_RENAME, Move(kRoot, "b", kRoot, "d")), ErrorCode::kOk);  // over it
  Touch(kRoot, "f");
  request.set_after_cookie(first.entries(1).cookie());
  request.set_before_cookie(first.before_cookie());
  request.set_max_entries(100);
  const auto rest = Ask<wire::ReaddirReply>(wire::MDS_READDIR, request);
  EXPECT_TRUE(rest.end());
  EXPECT_EQ(rest.before_cookie(), first.before_cookie());
  std::vector<std::string> seen;
  for (const auto& entry : rest.entries()) seen.push_back(entry.name());
  EXPECT_EQ(seen, (std::vector<std::string>{"c", "d"}));
  request.set_after_cookie(first.before_cookie());
  const auto behind = Ask<wire::ReaddirReply>(wire::MDS_READDIR, request);
  EXPECT_TRUE(behind.end());
  EXPECT_EQ(behind.entries_size(), 0);
  EXPECT_EQ(List(kRoot), (std::vector<std::string>{"c", "d", "e", "f"}));
}

TEST_F(TreeTest, NoFileWithoutAnOsdAndThePoolIsInUseAfterTheFirst) {
  EXPECT_FALSE(core->keeper().map()->FindPool("default")->in_use);
  Touch(kRoot, "f");
  EXPECT_TRUE(core->keeper().map()->FindPool("default")->in_use);
  core.reset();
  MemKvStore empty;
  auto fresh =
      MdsCore::Open(empty, clock, osds, {.ns = {.commit_thread = false}, .background = false});
  ASSERT_TRUE(fresh.ok());
  core = *std::move(fresh);
  const Answer refused = Try(wire::MDS_MKNOD, New(kRoot, "f", S_IFREG | 0644));
  EXPECT_EQ(refused.status.code(), ErrorCode::kNoSpace);
  EXPECT_EQ(refused.status.message(), "pool 'default' has no OSD yet (start a weir-osd)");
  core.reset();
}

}  // namespace
}  // namespace weir::mds
