// Which ids are kept, when they go, and that the records say the same as the memory.
#include "osd/store/op_table.h"

#include <gtest/gtest.h>

#include "common/kv/mem_kv_store.h"

namespace weir::osd {
namespace {

constexpr SlotId kSlot{1, 7};
constexpr ObjectId kOne{InodeId(5), 0}, kTwo{InodeId(6), 0};

class OpTableTest : public ::testing::Test {
 protected:
  OpTerms Op(uint64_t number, uint64_t floor = 0, uint64_t object_floor = 0, uint64_t session = 9) {
    return {session, number, floor, object_floor};
  }
  // As the store does with one that is carried out.
  void Do(ObjectId object, const OpTerms& op, uint64_t sequence = 1) {
    const auto lock = table_.Lock();
    WriteBatch batch;
    table_.RaiseFloors(kSlot, op, &batch);
    table_.Record(object, kSlot, op, {.number = op.number, .version = {1, sequence}}, &batch);
    PutHead(object, false, &batch);
    ASSERT_TRUE(kv_.Apply(batch, Durability::kDurable).ok());
  }
  void Raise(uint64_t floor, uint64_t session = 9) {
    const auto lock = table_.Lock();
    WriteBatch batch;
    table_.RaiseFloors(kSlot, Op(floor, floor, 0, session), &batch);
    ASSERT_TRUE(kv_.Apply(batch, Durability::kDurable).ok());
  }
  void Bury(ObjectId object) {
    const auto lock = table_.Lock();
    WriteBatch batch;
    ASSERT_TRUE(table_.Bury(object, kSlot));
    PutHead(object, true, &batch);
    ASSERT_TRUE(kv_.Apply(batch, Durability::kDurable).ok());
  }
  static void PutHead(ObjectId object, bool tombstone, WriteBatch* batch) {
    batch->Put(HeadKey(object), EncodeHead({.tombstone = tombstone, .slot = kSlot}));
    batch->Put(IndexKey(kSlot, object), EncodeVersion({1, 1}));
  }
  bool Has(const std::string& key) { return kv_.Get(key).ok(); }
  bool Knows(ObjectId object, const OpTerms& op) {
    const auto lock = table_.Lock();
    return table_.Find(object, op) != nullptr;
  }
  bool Refuses(ObjectId object, const OpTerms& op) {
    const auto lock = table_.Lock();
    return table_.IsBelowFloor(object, kSlot, op);
  }
  std::vector<uint64_t> Numbers(ObjectId object, uint64_t session = 9) {
    std::vector<uint64_t> numbers;
    const Result<std::string> value = kv_.Get(OpIdsKey(object, session));
    if (!value.ok()) return numbers;
    const OpIdsValue ids = *DecodeOpIds(*value);
    for (const OpIdRecord& id : ids.ids) numbers.push_back(id.number);
    return numbers;
  }

  MemKvStore kv_;
  OpTable table_{{.ids_max = 4, .sessions_max = 2, .floor_step = 1}};
};

TEST_F(OpTableTest, AnIdIsKnownUntilTheFloorOfItsSessionHasPassedIt) {
  Do(kOne, Op(10));
  Do(kTwo, Op(11));
  EXPECT_TRUE(Knows(kOne, Op(10)));
  EXPECT_FALSE(Knows(kTwo, Op(10)));
  EXPECT_FALSE(Knows(kOne, Op(10, 0, 0, 8))) << "another session's";
  Do(kTwo, Op(12, 11));  // of another object
  EXPECT_FALSE(Knows(kOne, Op(10)));
  EXPECT_TRUE(Refuses(kOne, Op(10)));
  EXPECT_FALSE(Has(OpIdsKey(kOne, 9)));
  EXPECT_EQ(Numbers(kTwo), (std::vector<uint64_t>{11, 12}));
  EXPECT_EQ(*DecodeFloor(*kv_.Get(SessionFloorKey(kSlot, 9))), 11u);
}

TEST_F(OpTableTest, TheFloorOfAnObjectKeepsItsListShortWhileSomethingElseHangs) {
  for (uint64_t number = 20; number < 40; ++number) Do(kOne, Op(number, 3, number));
  EXPECT_EQ(Numbers(kOne), (std::vector<uint64_t>{39}));
  EXPECT_TRUE(Refuses(kOne, Op(38)));
  EXPECT_FALSE(Refuses(kTwo, Op(38))) << "another object's floor";
}

TEST_F(OpTableTest, ATombstoneGoesWithItsLastId) {
  Do(kOne, Op(10));
  Do(kOne, Op(20, 0, 0, 8));
  Bury(kOne);
  Raise(11);
  EXPECT_TRUE(Has(HeadKey(kOne)));
  Raise(21, 8);
  EXPECT_FALSE(Has(HeadKey(kOne)));
  EXPECT_FALSE(Has(IndexKey(kSlot, kOne)));
}

TEST_F(OpTableTest, AnObjectThatIsThereAgainStaysWhenItsIdsGo) {
  Do(kOne, Op(10));
  Bury(kOne);
  {
    const auto lock = table_.Lock();
    table_.Revive(kOne);
  }
  Raise(11);
  EXPECT_FALSE(Has(OpIdsKey(kOne, 9)));
  EXPECT_TRUE(Has(HeadKey(kOne)));
}

// Goal: a start knows what the life before knew, tombstones among it.
TEST_F(OpTableTest, AStartReadsWhatIsOnTheDisk) {
  Do(kOne, Op(10, 5, 9), 33);
  Do(kTwo, Op(11));
  Bury(kTwo);
  OpTable next({.floor_step = 1});
  WriteBatch batch;
  ASSERT_TRUE(next.Load(kv_, &batch).ok());
  const auto lock = next.Lock();
  ASSERT_NE(next.Find(kOne, Op(10)), nullptr);
  EXPECT_EQ(next.Find(kOne, Op(10))->version, (replication::Version{1, 33}));
  EXPECT_TRUE(next.IsBelowFloor(kOne, kSlot, Op(8)));
  EXPECT_TRUE(next.IsBelowFloor(kTwo, kSlot, Op(4)));
  EXPECT_FALSE(next.IsBelowFloor(kTwo, kSlot, Op(5)));
  next.RaiseFloors(kSlot, Op(12, 12), &batch);
  ASSERT_TRUE(kv_.Apply(batch, Durability::kDurable).ok());
  EXPECT_TRUE(Has(HeadKey(kOne)));
  EXPECT_FALSE(Has(HeadKey(kTwo)));
  EXPECT_FALSE(Has(OpIdsKey(kTwo, 9)));
}

TEST_F(OpTableTest, TheLowestNumbersOfASessionWithTooManyIdsCountAsBelowItsFloor) {
  for (uint64_t number = 1; number <= 6; ++number) Do({InodeId(number), 0}, Op(number));
  EXPECT_TRUE(Refuses({InodeId(1), 0}, Op(1)));
  EXPECT_TRUE(Refuses({InodeId(2), 0}, Op(2)));
  EXPECT_TRUE(Knows({InodeId(3), 0}, Op(3)));
  EXPECT_EQ(*DecodeFloor(*kv_.Get(SessionFloorKey(kSlot, 9))), 3u);
}

TEST_F(OpTableTest, OfTooManySessionsTheOneThatWasSilentLongestGoes) {
  Do(kOne, Op(10, 2, 0, 1));
  Do(kOne, Op(10, 2, 0, 2));
  Do(kOne, Op(11, 2, 0, 1));
  Do(kTwo, Op(10, 2, 0, 3));  // the third
  EXPECT_EQ(table_.sessions(), 2u);
  EXPECT_EQ(Numbers(kOne, 1), (std::vector<uint64_t>{10, 11}));
  EXPECT_TRUE(Numbers(kOne, 2).empty());
  EXPECT_FALSE(Has(SessionFloorKey(kSlot, 2)));
  EXPECT_TRUE(Has(SessionFloorKey(kSlot, 1)));
}

// Goal: not each change writes the floor, and none is taken again for all that: in this life the
// newest floor holds, in the next one each late copy is below the kept one or finds its id.
TEST(OpTableStepsTest, TheFloorOnTheDiskFollowsInStepsAndIdsGoWithIt) {
  MemKvStore kv;
  const OpTable::Options options{.floor_step = 10};
  OpTable table(options);
  const auto change = [&](uint64_t number) {
    const OpTerms op{9, number, number, 0};
    WriteBatch batch;
    const auto lock = table.Lock();
    table.RaiseFloors(kSlot, op, &batch);
    const ObjectId object{InodeId(number), 0};
    table.Record(object, kSlot, op, {.number = number, .version = {1, number}}, &batch);
    batch.Put(HeadKey(object), EncodeHead({.slot = kSlot}));
    const bool wrote_floor = kv.Get(SessionFloorKey(kSlot, 9)).ok();
    EXPECT_TRUE(kv.Apply(batch, Durability::kDurable).ok());
    return wrote_floor;
  };
  for (uint64_t number = 1; number <= 10; ++number) EXPECT_FALSE(change(number));
  for (uint64_t number = 11; number <= 15; ++number) EXPECT_TRUE(change(number));
  EXPECT_EQ(*DecodeFloor(*kv.Get(SessionFloorKey(kSlot, 9))), 10u);
  {
    const auto lock = table.Lock();
    EXPECT_TRUE(table.IsBelowFloor({InodeId(14), 0}, kSlot, {9, 14, 14, 0}));
  }
  OpTable next(options);
  WriteBatch tidied;
  ASSERT_TRUE(next.Load(kv, &tidied).ok());
  const auto lock = next.Lock();
  for (uint64_t number = 1; number <= 15; ++number) {
    const ObjectId object{InodeId(number), 0};
    const OpTerms late{9, number, 0, 0};
    EXPECT_TRUE(next.IsBelowFloor(object, kSlot, late) || next.Find(object, late) != nullptr)
        << number;
    EXPECT_EQ(kv.Get(OpIdsKey(object, 9)).ok(), number >= 10) << number;
  }
}

}  // namespace
}  // namespace weir::osd
