// Operations that name themselves, over restarts; conditions; appends; versions and the index.
#include <gtest/gtest.h>

#include "common/disk/faulty_device.h"
#include "common/kv/rocks_kv_store.h"
#include "osd/format/onode_format.h"
#include "osd/store/object_store.h"
#include "osd/store/op_table.h"
#include "osd/store/store_check.h"
#include "osd/store/superblock.h"
#include "tests/crash/store_harness.h"

namespace weir::osd {
namespace {

using namespace weir::osd::testing;
using Kind = ObjectChange::Kind;
using Version = replication::Version;

constexpr ObjectId kOne{InodeId(5), 0}, kTwo{InodeId(6), 0};
constexpr SlotId kSlot{1, 7};

class OnceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(MakeStore(device_, {.identity = {.cluster_uuid = "c"}}).ok());
    Open();
  }
  void Open() {
    Result<std::unique_ptr<ObjectStore>> store = OpenStore(device_, {});
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = std::move(*store);
  }
  void Close() {
    EXPECT_TRUE(store_->Close().ok());
    store_.reset();
    const Result<CheckReport> report = CheckStore(device_, {.deep = true});
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->findings.clean()) << ToText(*report);
  }
  void Reopen() {
    Close();
    Open();
  }
  Result<ObjectInfo> Change(ObjectChange change) {
    Waiter<Result<ObjectInfo>> waiter;
    store_->Change(std::move(change), waiter.Callback());
    return waiter.future.get();
  }
  static ChangeTerms Terms(uint64_t number, uint64_t floor = 0) {
    return {.slot = kSlot,
            .chain_version = 3,
            .op = {.session = 9, .number = number, .session_floor = floor}};
  }
  static ObjectChange WriteOf(const std::string& bytes, const ChangeTerms& terms,
                              ObjectId id = kOne, uint64_t offset = 0) {
    return {.kind = Kind::kWrite,
            .id = id,
            .offset = offset,
            .data = Buffer::CopyOf(bytes),
            .terms = terms};
  }
  static ObjectChange AppendOf(const std::string& bytes, ChangeTerms terms) {
    terms.append = true;
    return WriteOf(bytes, terms, kOne, 12345);
  }
  static ObjectChange PunchOf(ObjectId id, const ChangeTerms& terms) {
    return {.kind = Kind::kPunch, .id = id, .length = 4096, .terms = terms};
  }
  std::string Bytes(ObjectId id = kOne) { return std::string(ReadAll(*store_, id)->view()); }
  // Of the closed store.
  Result<std::string> Stored(const std::string& key) {
    const Superblock super = *LoadSuperblock(device_);
    auto kv = *OpenRawKvStore(device_, {super.kv_offset, super.kv_bytes}, {});
    return kv->Get(key);
  }

  FaultyDevice device_{std::make_unique<MemDevice>(64 << 20)};
  std::unique_ptr<ObjectStore> store_;
};

TEST_F(OnceTest, ARepeatedWriteIsNotMadeAgain) {
  const Result<ObjectInfo> first = Change(WriteOf("first", Terms(10)));
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(Change(WriteOf("SECOND", Terms(11))).ok());
  for (int life = 0; life < 2; ++life) {
    const Result<ObjectInfo> again = Change(WriteOf("first", Terms(10)));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->version, first->version);
    EXPECT_EQ(Bytes(), "SECOND");
    Reopen();
  }
  EXPECT_EQ(Change(WriteOf("first", Terms(112, 112))).status(), Status());
  EXPECT_EQ(Change(WriteOf("SECOND", Terms(11))).code(), ErrorCode::kStale);
  EXPECT_EQ(Bytes(), "firstD");
}

// Large aligned writes put their data at places before they know.
TEST_F(OnceTest, ARepeatedLargeWriteGivesBackThePlacesItTook) {
  Prng prng(1);
  const Buffer data = RandomBytes(prng, 1 << 20);
  ObjectChange change = WriteOf("", Terms(10));
  change.data = data;
  ASSERT_TRUE(Change(change).ok());
  const uint64_t used = store_->Stats().used_bytes;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Change(change).ok());
  EXPECT_EQ(store_->Stats().used_bytes, used);
  EXPECT_EQ(Bytes(), data.view());
}

TEST_F(OnceTest, AnObjectThatIsGoneIsNotMadeAgainByALateCopy) {
  ASSERT_TRUE(Change(WriteOf("x", Terms(10))).ok());
  ASSERT_TRUE(DeleteInodeSync(*store_, kOne.inode, 0).ok());
  for (int life = 0; life < 2; ++life) {
    EXPECT_TRUE(Change(WriteOf("x", Terms(10))).ok());
    EXPECT_EQ(StatSync(*store_, kOne)->version, Version());
    EXPECT_EQ(store_->Stats().objects, 0u);
    EXPECT_FALSE(store_->NextObject(kOne)->has_value());
    EXPECT_EQ(DeleteSomeSync(*store_, kOne.inode, 0, 1)->next_index, 0u);
    Reopen();
  }
  // The next request of the session to the slot takes the tombstone away.
  ASSERT_TRUE(Change(WriteOf("y", Terms(112, 112), kTwo)).ok());
  Close();
  EXPECT_EQ(Stored(HeadKey(kOne)).code(), ErrorCode::kNotFound);
  EXPECT_EQ(Stored(IndexKey(kSlot, kOne)).code(), ErrorCode::kNotFound);
  Open();
}

// DELETE_INODE has no id. Goal: its late copy takes nothing but what it names, and what is known of
// the objects' ids holds after it as well.
TEST_F(OnceTest, ARepeatedDeletionOfAnInodeDoesNoHarm) {
  ASSERT_TRUE(Change(WriteOf("x", Terms(10))).ok());
  ASSERT_TRUE(Change(WriteOf("another", Terms(11), kTwo)).ok());
  for (int life = 0; life < 2; ++life) {
    for (int copy = 0; copy < 2; ++copy) {
      ASSERT_TRUE(DeleteInodeSync(*store_, kOne.inode, 0).ok());
      EXPECT_TRUE(Change(WriteOf("x", Terms(10))).ok());
      EXPECT_EQ(Bytes(), "");
      EXPECT_EQ(Bytes(kTwo), "another");
      EXPECT_EQ(store_->Stats().objects, 1u);
    }
    Reopen();
  }
}

TEST_F(OnceTest, AnObjectMayBeMadeOverItsTombstone) {
  ASSERT_TRUE(Change(WriteOf("first", Terms(10))).ok());
  ASSERT_TRUE(DeleteInodeSync(*store_, kOne.inode, 0).ok());
  Reopen();
  ASSERT_TRUE(WriteSync(*store_, kOne, 0, Buffer::CopyOf("2nd")).ok());
  ASSERT_TRUE(Change(WriteOf("z", Terms(112, 112), kTwo)).ok());
  EXPECT_EQ(Bytes(), "2nd");
  Reopen();
  EXPECT_EQ(Bytes(), "2nd");
}

TEST_F(OnceTest, AnAppendGoesToTheEndAndItsRetryToTheSame) {
  const Result<ObjectInfo> first = Change(AppendOf("one", Terms(10)));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->append_offset, 0u);
  EXPECT_EQ(Change(AppendOf("two!", Terms(11)))->append_offset, 3u);
  for (int life = 0; life < 2; ++life) {
    EXPECT_EQ(Change(AppendOf("two!", Terms(11)))->append_offset, 3u);
    EXPECT_EQ(Bytes(), "onetwo!");
    Reopen();
  }
  ASSERT_TRUE(TruncateSync(*store_, kOne, kMaxObjectSize - 2).ok());
  EXPECT_EQ(Change(AppendOf("three", Terms(12))).code(), ErrorCode::kInvalid);
  EXPECT_EQ(Change(AppendOf("42", Terms(13)))->append_offset, kMaxObjectSize - 2);
}

// Goal: what was refused stays refused for who asks again, also when it would be right now.
TEST_F(OnceTest, AnotherVersionThanExpectedIsRefusedForGood) {
  ChangeTerms none = Terms(10);
  none.expected = Version{};
  const Result<ObjectInfo> made = Change(WriteOf("first", none));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->version.chain, 3u);
  EXPECT_EQ(StatSync(*store_, kOne)->version, made->version);
  none.op.number = 11;
  EXPECT_EQ(Change(WriteOf("other", none)).code(), ErrorCode::kAgain);
  EXPECT_EQ(StatSync(*store_, kOne)->version, made->version) << "a refusal counts for nothing";
  ChangeTerms exact = Terms(12);
  exact.expected = made->version;
  const Result<ObjectInfo> second = Change(WriteOf("2", exact));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_GT(second->version, made->version);
  Reopen();
  ASSERT_TRUE(DeleteInodeSync(*store_, kOne.inode, 0).ok());
  EXPECT_EQ(Change(WriteOf("other", none)).code(), ErrorCode::kAgain);
  exact.op = {};
  EXPECT_EQ(Change(WriteOf("other", exact)).code(), ErrorCode::kAgain) << "without an id";
  none.op.number = 13;
  EXPECT_TRUE(Change(WriteOf("third", none)).ok());
  EXPECT_EQ(Bytes(), "third");
}

// A refusal of what is not there leaves ids and no object.
TEST_F(OnceTest, ARefusalMakesNoObject) {
  ChangeTerms terms = Terms(10);
  terms.expected = Version{1, 1};
  EXPECT_EQ(Change(WriteOf("x", terms)).code(), ErrorCode::kAgain);
  EXPECT_EQ(store_->Stats().objects, 0u);
  Reopen();
  EXPECT_EQ(store_->Stats().objects, 0u);
  EXPECT_EQ(StatSync(*store_, kOne)->size, 0u);
}

// Of a session with too many ids the lowest go first, and that may be the one just made.
TEST_F(OnceTest, AnIdThatGoesAtOnceLeavesNoTombstone) {
  for (uint64_t i = 0; i < OpTable::Options().ids_max; ++i) {
    ASSERT_TRUE(Change(WriteOf("x", Terms(100 + i))).ok());
  }
  ASSERT_TRUE(Change(PunchOf(kTwo, Terms(10))).ok());
  ChangeTerms terms = Terms(11);
  terms.expected = Version{1, 1};
  constexpr ObjectId kThree{InodeId(7), 0};
  EXPECT_EQ(Change(WriteOf("x", terms, kThree)).code(), ErrorCode::kAgain);
  Close();
  for (const ObjectId id : {kTwo, kThree}) {
    EXPECT_EQ(Stored(HeadKey(id)).code(), ErrorCode::kNotFound);
    EXPECT_EQ(Stored(IndexKey(kSlot, id)).code(), ErrorCode::kNotFound);
  }
  Open();
}

TEST_F(OnceTest, ARepeatedPunchOfNothingIsAnsweredAsTheFirstTime) {
  const Result<ObjectInfo> first = Change(PunchOf(kOne, Terms(10)));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->version, Version());
  for (int life = 0; life < 2; ++life) {
    const Result<ObjectInfo> again = Change(PunchOf(kOne, Terms(10)));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->version, first->version);
    Reopen();
  }
}

// Goal: whoever gives back what an allocation kept, as another object had no room, gives back all
// of it and nothing more, also when the first answer was lost.
TEST_F(OnceTest, ARepeatedHoleOrCutSaysWhatTheFirstOneFreed) {
  ASSERT_TRUE(Change(WriteOf(std::string(4 * kBlockSize, 'x'), Terms(1))).ok());
  const ObjectChange hole = PunchOf(kOne, Terms(2));
  const ObjectChange cut{
      .kind = Kind::kTruncate, .id = kOne, .offset = 2 * kBlockSize, .terms = Terms(3)};
  const auto freed = [this](const ObjectChange& change) {
    const Result<ObjectInfo> info = Change(change);
    EXPECT_TRUE(info.ok()) << info.status();
    return info.ok() ? info->freed_bytes : 0;
  };
  EXPECT_EQ(freed(hole), kBlockSize);
  EXPECT_EQ(freed(cut), 2 * kBlockSize);
  for (int life = 0; life < 2; ++life) {
    EXPECT_EQ(freed(hole), kBlockSize);
    EXPECT_EQ(freed(cut), 2 * kBlockSize);
    Reopen();
  }
}

TEST_F(OnceTest, ARepeatedAllocationSaysWhatTheFirstOneKept) {
  ASSERT_TRUE(AllocateSync(*store_, kOne, 2 * kBlockSize, kBlockSize).ok());
  const ObjectChange allocation{
      .kind = Kind::kAllocate, .id = kOne, .length = 5 * kBlockSize, .terms = Terms(10)};
  const std::vector<ByteRange> kept = {{0, 2 * kBlockSize}, {3 * kBlockSize, 2 * kBlockSize}};
  for (int life = 0; life < 3; ++life) {
    const Result<ObjectInfo> info = Change(allocation);
    ASSERT_TRUE(info.ok()) << info.status();
    EXPECT_EQ(info->kept, kept) << life;
    Reopen();
  }
}

TEST_F(OnceTest, NoSpaceIsKeptAlsoWhenThereIsRoomAgain) {
  Prng prng(1);
  const Buffer ballast = RandomBytes(prng, kMaxObjectSize);
  uint64_t index = 0;
  while (WriteSync(*store_, {InodeId(77), index}, 0, ballast).ok()) ++index;
  ObjectChange large = WriteOf("", Terms(10));
  large.data = ballast;
  ASSERT_EQ(Change(large).code(), ErrorCode::kNoSpace);
  ASSERT_TRUE(DeleteInodeSync(*store_, InodeId(77), 0).ok());
  EXPECT_EQ(Change(large).code(), ErrorCode::kNoSpace);
  Reopen();
  EXPECT_EQ(Change(large).code(), ErrorCode::kNoSpace);
  EXPECT_EQ(Bytes(), "");
  large.terms.op.number = 11;
  EXPECT_TRUE(Change(large).ok());
}

// Goal: a retry of what was made on a disk that is full now gets its answer.
TEST_F(OnceTest, WhatWasMadeBeforeTheDiskWasFullIsAnswered) {
  Prng prng(1);
  const Buffer ballast = RandomBytes(prng, kMaxObjectSize);
  ObjectChange large = WriteOf("", Terms(10));
  large.data = ballast;
  ASSERT_TRUE(Change(large).ok());
  ASSERT_TRUE(PunchSync(*store_, kOne, 0, kMaxObjectSize).ok());
  uint64_t index = 0;
  while (WriteSync(*store_, {InodeId(77), index}, 0, ballast).ok()) ++index;
  EXPECT_TRUE(Change(large).ok());
}

TEST_F(OnceTest, TheIndexOfTheSlotHasTheVersionOfEachObject) {
  const Result<ObjectInfo> made = Change(WriteOf("x", Terms(10)));
  const Result<ObjectInfo> other = WriteSync(*store_, kTwo, 0, Buffer::CopyOf("no slot"));
  ASSERT_TRUE(made.ok() && other.ok());
  const Result<ObjectInfo> cut = TruncateSync(*store_, kOne, 0);  // names no slot
  Close();
  EXPECT_EQ(*DecodeVersion(*Stored(IndexKey(kSlot, kOne))), cut->version);
  EXPECT_EQ(DecodeHead(*Stored(HeadKey(kTwo)))->version, other->version);
  EXPECT_FALSE(DecodeHead(*Stored(HeadKey(kTwo)))->slot.has_value());
  Open();
  ASSERT_TRUE(Change(WriteOf("y", Terms(112, 112))).ok());
  ASSERT_TRUE(Change(WriteOf("y", Terms(213, 213), kTwo)).ok());
  ASSERT_TRUE(DeleteInodeSync(*store_, kOne.inode, 0).ok());
  ASSERT_TRUE(Change(WriteOf("y", Terms(314, 314), kTwo)).ok());
  Close();
  EXPECT_EQ(Stored(IndexKey(kSlot, kOne)).code(), ErrorCode::kNotFound);
  Open();
}

TEST_F(OnceTest, ANumberBelowItsOwnFloorIsInvalid) {
  EXPECT_EQ(Change(WriteOf("x", Terms(10, 11))).code(), ErrorCode::kInvalid);
}

// Goal: an answer to a retry is as durable as the first one. Method: the power fails while both are
// under way; whatever was answered is there afterwards.
TEST_F(OnceTest, ARetryIsNotAnsweredBeforeTheFirstIsDurable) {
  Waiter<Result<ObjectInfo>> first, again;
  device_.PowerLossAt(0);
  store_->Change(WriteOf("x", Terms(10)), first.Callback());
  store_->Change(WriteOf("x", Terms(10)), again.Callback());
  EXPECT_FALSE(first.future.get().ok());
  EXPECT_FALSE(again.future.get().ok());
  store_.reset();
  device_.PowerOn(1);
  Open();
}

TEST_F(OnceTest, EveryOpeningIsALifeMore) {
  const uint64_t life = ReadIdentity(device_)->life;
  EXPECT_GE(life, 1u);
  Reopen();
  EXPECT_EQ(ReadIdentity(device_)->life, life + 1);
  OsdIdentity identity = *ReadIdentity(device_);
  identity.token_rate = 5;
  Close();
  ASSERT_TRUE(UpdateIdentity(device_, identity).ok());
  EXPECT_EQ(ReadIdentity(device_)->life, life + 1);
  Open();
}

}  // namespace
}  // namespace weir::osd
