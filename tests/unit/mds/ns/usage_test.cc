// What lies below directories, and quotas.
#include "mds/ns/usage.h"

#include "common/base/prng.h"
#include "common/testing/seed.h"
#include "tests/unit/mds/mds_fixture.h"

namespace weir::mds {
namespace {

class UsageTest : public MdsFixture {
 protected:
  std::string Usage(uint64_t directory) { return Get(directory, std::string(kTreeUsage)); }
  ErrorCode Limit(uint64_t directory, std::string_view name, const std::string& value) {
    return Code(wire::MDS_SETXATTR, Xattr(directory, std::string(name), value));
  }
  ErrorCode Resize(uint64_t file, uint64_t size) {
    wire::SetAttrRequest request = Change(file);
    request.set_size(size);
    return Code(wire::MDS_SETATTR, request);
  }
  ErrorCode TryTouch(uint64_t parent, const std::string& name) {
    return Code(wire::MDS_MKNOD, New(parent, name, S_IFREG | 0644));
  }
};

TEST_F(UsageTest, CountsFollowWhatIsMadeMovedResizedAndRemoved) {
  const uint64_t a = Mkdir(kRoot, "a");
  const uint64_t b = Mkdir(a, "b");
  const uint64_t f = Touch(b, "f");
  Grow(f, 1000);
  EXPECT_EQ(Usage(a), "bytes=1000 files=1 directories=1 entries=2");
  EXPECT_EQ(Usage(kRoot), "bytes=1000 files=1 directories=2 entries=3");
  EXPECT_EQ(Resize(f, 10), ErrorCode::kOk);
  EXPECT_EQ(Code(wire::MDS_LINK, NewLink(f, a, "second")), ErrorCode::kOk);
  EXPECT_EQ(Usage(a), "bytes=10 files=1 directories=1 entries=2") << "counted where it first lies";
  EXPECT_EQ(Code(wire::MDS_UNLINK, Name(b, "f")), ErrorCode::kOk);
  EXPECT_EQ(Usage(b), "bytes=0 files=0 directories=0 entries=0");
  EXPECT_EQ(Usage(a), "bytes=10 files=1 directories=1 entries=2");
  const uint64_t c = Mkdir(kRoot, "c");
  EXPECT_EQ(Code(wire::MDS_RENAME, Move(a, "second", b, "f")), ErrorCode::kOk);
  EXPECT_EQ(Code(wire::MDS_RENAME, Move(a, "b", c, "b")), ErrorCode::kOk);
  EXPECT_EQ(Usage(a), "bytes=0 files=0 directories=0 entries=0");
  EXPECT_EQ(Usage(c), "bytes=10 files=1 directories=1 entries=2");
  EXPECT_EQ(Code(wire::MDS_GETXATTR, Xattr(f, std::string(kTreeUsage))), ErrorCode::kNoData);
}

TEST_F(UsageTest, AQuotaOfEntriesRefusesTheNextOne) {
  const uint64_t d = Mkdir(kRoot, "d");
  const uint64_t sub = Mkdir(d, "sub");
  EXPECT_EQ(Limit(d, kQuotaFiles, "3"), ErrorCode::kOk);
  EXPECT_EQ(TryTouch(sub, "1"), ErrorCode::kOk);
  EXPECT_EQ(TryTouch(d, "2"), ErrorCode::kOk);
  EXPECT_EQ(TryTouch(sub, "3"), ErrorCode::kQuota);
  EXPECT_EQ(Code(wire::MDS_MKNOD, New(d, "dir", S_IFDIR | 0755)), ErrorCode::kQuota);
  Touch(kRoot, "outside");
  EXPECT_EQ(Code(wire::MDS_RENAME, Move(kRoot, "outside", sub, "in")), ErrorCode::kQuota);
  EXPECT_EQ(List(kRoot).size(), 2u) << "a refused rename changes nothing";
  EXPECT_EQ(Code(wire::MDS_UNLINK, Name(d, "2")), ErrorCode::kOk);
  EXPECT_EQ(Code(wire::MDS_RENAME, Move(kRoot, "outside", sub, "in")), ErrorCode::kOk);
  EXPECT_EQ(Code(wire::MDS_REMOVEXATTR, Xattr(d, std::string(kQuotaFiles))), ErrorCode::kOk);
  EXPECT_EQ(TryTouch(sub, "3"), ErrorCode::kOk);
}

TEST_F(UsageTest, AQuotaOfBytesRefusesGrowthAndTellsTheRoomLeft) {
  const uint64_t d = Mkdir(kRoot, "d");
  const uint64_t f = Touch(Mkdir(d, "sub"), "f");
  EXPECT_FALSE(Stat(f).attr().has_quota_room());
  EXPECT_EQ(Limit(d, kQuotaBytes, "1MiB"), ErrorCode::kOk);
  EXPECT_EQ(Get(d, std::string(kQuotaBytes)), "1048576");
  EXPECT_EQ(Resize(f, 1 << 19), ErrorCode::kOk);
  EXPECT_EQ(Stat(f).attr().quota_room(), 1u << 19);
  EXPECT_EQ(Resize(f, (1 << 20) + 1), ErrorCode::kQuota);
  EXPECT_EQ(Stat(f).attr().size(), 1u << 19);
  EXPECT_EQ(Grow(f, 3 << 20).attr().quota_room(), 0u) << "what is written is never denied";
  EXPECT_EQ(Resize(f, 1 << 21), ErrorCode::kOk) << "less is always fine";
  EXPECT_EQ(Limit(f, kQuotaBytes, "1"), ErrorCode::kInvalid);
  EXPECT_EQ(Limit(d, kQuotaBytes, "lots"), ErrorCode::kInvalid);
  uid = 10;
  EXPECT_EQ(Limit(d, kQuotaBytes, "1GiB"), ErrorCode::kPermission);
}

TEST_F(UsageTest, WhatWasThereBeforeTheQuotaCounts) {
  const uint64_t d = Mkdir(kRoot, "d");
  uint64_t deep = d;
  for (int level = 0; level < 5; ++level) deep = Mkdir(deep, "sub");
  EXPECT_EQ(Limit(d, kQuotaFiles, "5"), ErrorCode::kOk);
  EXPECT_EQ(TryTouch(deep, "f"), ErrorCode::kQuota);
}

// Goal: after random operations, and restarts between them, every count is what a walk finds.
TEST_F(UsageTest, AgreesWithAWalkAfterRandomOperationsAndRestarts) {
  Prng prng(weir::testing::TestSeed(3));
  std::vector<uint64_t> directories = {kRoot};
  for (int i = 0; i < 6; ++i) {
    directories.push_back(
        Mkdir(directories[prng.Uniform(0, directories.size() - 1)], "d" + std::to_string(i)));
  }
  EXPECT_EQ(Limit(directories[1], kQuotaBytes, "1GiB"), ErrorCode::kOk);
  std::vector<uint64_t> files;
  const auto any = [&] { return directories[prng.Uniform(0, directories.size() - 1)]; };
  const auto name = [&] { return "n" + std::to_string(prng.Uniform(0, 5)); };
  const auto dir_name = [&] { return "d" + std::to_string(prng.Uniform(0, 5)); };
  for (int step = 0; step < 600; ++step) {
    const bool dirs = prng.Chance(0.2);
    switch (prng.Uniform(0, 6)) {
      case 0: {
        const Answer made = Try(wire::MDS_MKNOD, New(any(), name(), S_IFREG | 0644));
        wire::EntryReply reply;
        if (made.status.ok() && reply.ParseFromString(made.body)) {
          files.push_back(reply.attr().inode());
        }
        break;
      }
      case 1:
        if (!files.empty()) Resize(files[prng.Uniform(0, files.size() - 1)], prng.Uniform(0, 5000));
        break;
      case 2:
        Code(wire::MDS_UNLINK, Name(any(), name()));
        break;
      case 3:
        if (!files.empty()) {
          Code(wire::MDS_LINK, NewLink(files[prng.Uniform(0, files.size() - 1)], any(), name()));
        }
        break;
      case 4:
        if (prng.Chance(0.1)) Restart();
        if (prng.Chance(0.3)) core->Tick();
        break;
      default:
        Code(wire::MDS_RENAME, Move(any(), dirs ? dir_name() : name(), any(),
                                    dirs ? dir_name() : name(), prng.Chance(0.2) ? 2 : 0));
    }
  }
  while (core->names().CommitPrepared()) {
  }
  std::map<uint64_t, InodeRecord> inodes;
  const auto it = mem.NewIterator();
  for (it->Seek("i"); it->Valid() && it->key()[0] == 'i'; it->Next()) {
    inodes[ReadBigEndian(it->key(), kFirstNumber)] = *DecodeValue<InodeRecord>(it->value());
  }
  std::map<uint64_t, TreeUsage> walked;
  for (const auto& [id, record] : inodes) {
    if (id == kRoot || record.nlink() == 0) continue;
    InodeRecord own = record;
    own.clear_told();
    for (uint64_t at = record.parent();; at = inodes[at].parent()) {
      AddUsage(ShareOf(own), 1, &walked[at]);
      if (at == kRoot) break;
    }
  }
  for (const uint64_t directory : directories) {
    if (inodes.count(directory) == 0) continue;
    const TreeUsage& want = walked[directory];
    EXPECT_EQ(Usage(directory), "bytes=" + std::to_string(want.bytes()) +
                                    " files=" + std::to_string(want.files()) +
                                    " directories=" + std::to_string(want.directories()) +
                                    " entries=" + std::to_string(EntriesOf(want)));
  }
}

TEST_F(UsageTest, WhatWasToldByACommitThatFailedIsToldAgain) {
  const uint64_t d = Mkdir(kRoot, "d");
  Grow(Touch(d, "f"), 77);
  mem.FailWith(Status(ErrorCode::kIo, "planted"));
  core->Tick();
  while (core->names().CommitPrepared()) {
  }
  mem.FailWith(Status::Ok());
  EXPECT_EQ(Usage(kRoot), "bytes=77 files=1 directories=1 entries=2");
}

TEST_F(UsageTest, AStoreOfBeforeIsCountedAtItsFirstStart) {
  const uint64_t d = Mkdir(kRoot, "d");
  Grow(Touch(d, "f"), 77);
  core.reset();
  WriteBatch old;
  const auto it = mem.NewIterator();
  for (it->Seek("i"); it->Valid() && it->key()[0] == 'i'; it->Next()) {
    InodeRecord record = *DecodeValue<InodeRecord>(it->value());
    record.clear_below();
    record.clear_told();
    old.Put(std::string(it->key()), EncodeValue(record));
  }
  StateRecord state = *DecodeValue<StateRecord>(*mem.Get(kStateKey));
  state.set_usage_known(false);
  old.Put(kStateKey, EncodeValue(state));
  ASSERT_TRUE(mem.Apply(old, Durability::kDurable).ok());
  Start();
  EXPECT_EQ(Usage(kRoot), "bytes=77 files=1 directories=1 entries=2");
  EXPECT_EQ(Code(wire::MDS_UNLINK, Name(d, "f")), ErrorCode::kOk);
  EXPECT_EQ(Usage(kRoot), "bytes=0 files=0 directories=1 entries=1");
}

}  // namespace
}  // namespace weir::mds
