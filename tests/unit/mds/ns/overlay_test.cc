// Goal: what a batch brings is written once per key, and what a younger batch took over stays
// pending when the older one is durable.
#include "mds/ns/overlay.h"

#include <gtest/gtest.h>

#include "common/kv/mem_kv_store.h"

namespace weir::mds {
namespace {

const std::string kState = "mstate";
constexpr uint64_t kSession = 7;

class OverlayTest : public ::testing::Test {
 protected:
  void Commit(uint64_t batch) {
    WriteBatch writes;
    overlay_.CopyBatch(batch, &writes);
    EXPECT_TRUE(store_.Apply(writes, Durability::kDurable).ok());
    overlay_.Committed(batch);
  }
  std::string Get(const std::string& key, uint64_t* seen) {
    Overlay::Seen read;
    std::string value = overlay_.Get(key, &read)->value_or("none");
    *seen = read.any;
    return value;
  }
  MemKvStore store_;
  Overlay overlay_{store_, 8};
  uint64_t batch_ = 0;
};

TEST_F(OverlayTest, TheLastOfSeveralValuesIsWrittenOnce) {
  overlay_.Put(kState, "1", 1, kSession);
  overlay_.Put(kState, "2", 1, kSession);
  overlay_.Put("iother", std::nullopt, 1, kSession);
  WriteBatch writes;
  overlay_.CopyBatch(1, &writes);
  ASSERT_EQ(writes.ops().size(), 2u);
  EXPECT_EQ(writes.ops()[0].value, "2");
  EXPECT_EQ(writes.ops()[1].kind, WriteBatch::Op::Kind::kDelete);
}

TEST_F(OverlayTest, WhatAYoungerBatchTookOverStaysPending) {
  overlay_.Put(kState, "1", 1, kSession);
  WriteBatch writes;
  overlay_.CopyBatch(1, &writes);  // as the commit of 1 begins
  overlay_.Put(kState, "2", 2, kSession);
  ASSERT_TRUE(store_.Apply(writes, Durability::kDurable).ok());
  overlay_.Committed(1);
  uint64_t seen = 0;
  EXPECT_EQ(Get(kState, &seen), "2");
  EXPECT_EQ(seen, 2u);
  EXPECT_EQ(*store_.Get(kState), "1");
  Commit(2);
  EXPECT_EQ(Get(kState, &seen), "2");
  EXPECT_EQ(seen, 0u);
  EXPECT_EQ(*store_.Get(kState), "2");
}

TEST_F(OverlayTest, OfAQuietChangeAReadTellsApart) {
  overlay_.Put("iours", "1", 1, kSession);
  overlay_.PutQuietly("iours", "2", 2);
  overlay_.PutQuietly("iother", "3", 2);
  Overlay::Seen own{.reader = kSession};
  EXPECT_EQ(*overlay_.Get("iours", &own), "2");
  EXPECT_EQ(own.any, 1u);
  EXPECT_EQ(own.others, 0u) << "it is still the session's";
  EXPECT_EQ(own.counts, 2u);
  Overlay::Seen other;
  EXPECT_EQ(*overlay_.Get("iother", &other), "3");
  EXPECT_EQ(other.any, 0u);
  EXPECT_EQ(other.others, 0u);
  EXPECT_EQ(other.counts, 2u);
}

// Goal: a change of contents keeps nobody waiting who does not read them, and whoever reads them
// sees all that others have moved, whoever came last.
TEST_F(OverlayTest, OfAChangeOfContentsAReadTellsApart) {
  constexpr uint64_t kOther = kSession + 1;
  const auto steady = [this](uint64_t reader, Overlay::Seen* contents) {
    Overlay::Seen seen{.reader = reader};
    contents->reader = reader;
    EXPECT_TRUE(overlay_.Get("idir", &seen, nullptr, contents).ok());
    return seen;
  };
  const auto all = [this](uint64_t reader) {
    Overlay::Seen seen{.reader = reader};
    EXPECT_TRUE(overlay_.Get("idir", &seen).ok());
    return seen;
  };
  overlay_.Put("idir", "1", 1, kSession);
  overlay_.Put("idir", "2", 2, kOther, Overlay::Change::kContents);
  overlay_.Put("idir", "3", 3, kSession, Overlay::Change::kContents);
  Overlay::Seen contents;
  EXPECT_EQ(steady(kSession, &contents).others, 0u);
  EXPECT_EQ(contents.others, 2u);
  contents = {};
  const Overlay::Seen other = steady(kOther, &contents);
  EXPECT_EQ(other.others, 1u);
  EXPECT_EQ(other.any, 1u);
  EXPECT_EQ(contents.others, 3u);
  EXPECT_EQ(all(kSession).others, 2u);
  EXPECT_EQ(all(kSession).any, 3u);
  EXPECT_EQ(all(kOther).others, 3u);
  EXPECT_EQ(all(kSession + 2).others, 3u);
  overlay_.Put("idir", "4", 3, kSession);
  contents = {};
  EXPECT_EQ(steady(kOther, &contents).others, 3u);
  Commit(2);
  EXPECT_EQ(all(kSession).others, 0u) << "it is durable, though the key is pending still";
  EXPECT_EQ(all(kSession).any, 3u);
}

TEST_F(OverlayTest, AQuietChangeIsWrittenWithItsBatchAndStaysPendingUntilThen) {
  overlay_.Put("iinode", "1", 1, kSession);
  WriteBatch first;
  overlay_.CopyBatch(1, &first);
  overlay_.PutQuietly("iinode", "2", 2);
  ASSERT_TRUE(store_.Apply(first, Durability::kDurable).ok());
  overlay_.Committed(1);
  uint64_t seen = 0;
  EXPECT_EQ(Get("iinode", &seen), "2");
  Commit(2);
  EXPECT_EQ(*store_.Get("iinode"), "2");
  Overlay::Seen read;
  EXPECT_EQ(*overlay_.Get("iinode", &read), "2");
  EXPECT_EQ(read.any + read.counts, 0u);
}

TEST_F(OverlayTest, WhatIsPutOverAQuietChangeOfItsBatchIsWrittenOnce) {
  overlay_.PutQuietly("iinode", "1", 1);
  overlay_.Put("iinode", "2", 1, kSession);
  WriteBatch writes;
  overlay_.CopyBatch(1, &writes);
  ASSERT_EQ(writes.ops().size(), 1u);
  Overlay::Seen read;
  EXPECT_EQ(*overlay_.Get("iinode", &read), "2");
  EXPECT_EQ(read.any, 1u);
  EXPECT_EQ(read.counts, 1u) << "what it counts builds on the quiet one";
}

TEST_F(OverlayTest, TwoBatchesAtOnceHoldAKeyOnce) {
  overlay_.Put(kState, "1", 1, kSession);
  overlay_.Put(kState, "2", 2, kSession);
  Commit(2);
  uint64_t seen = 0;
  EXPECT_EQ(Get(kState, &seen), "2");
  EXPECT_EQ(seen, 0u);
}

TEST_F(OverlayTest, WhatWasReadBeforeItWasWrittenIsNotRemembered) {
  uint64_t seen = 0;
  for (const std::string key : {"mstate", "aanswer"}) {
    EXPECT_EQ(Get(key, &seen), "none");
    overlay_.Put(key, "1", 1, kSession);
    EXPECT_EQ(Get(key, &seen), "1");
  }
  Commit(1);
  EXPECT_EQ(Get("mstate", &seen), "1");
  EXPECT_EQ(Get("aanswer", &seen), "1");
}

// The accident: what a load had read before the write was remembered behind it.
TEST_F(OverlayTest, WhatIsWrittenDuringALoadIsNotReplacedByWhatWasLoaded) {
  uint64_t seen = 0;
  for (const std::string key : {"iinode", "aanswer"}) {
    const uint64_t load = overlay_.BeginLoad(key);
    overlay_.Put(key, "new", ++batch_, kSession);
    Commit(batch_);
    overlay_.EndLoad(key, load, "old");
    EXPECT_EQ(Get(key, &seen), "new");
  }
}

TEST_F(OverlayTest, OfTwoLoadsOnlyTheLaterIsBelieved) {
  uint64_t seen = 0;
  const uint64_t early = overlay_.BeginLoad("aanswer");
  overlay_.Put("aanswer", "new", ++batch_, kSession);
  Commit(batch_);
  const uint64_t late = overlay_.BeginLoad("aanswer");
  overlay_.EndLoad("aanswer", early, "old");
  EXPECT_EQ(Get("aanswer", &seen), "new");
  overlay_.EndLoad("aanswer", late, "new");
  EXPECT_EQ(Get("aanswer", &seen), "new");
}

TEST_F(OverlayTest, WhatIsAskedForAgainStaysWhileManyArePassedBy) {
  Overlay overlay(store_, 16);
  const auto is_in_memory = [&](const std::string& key) {
    WriteBatch behind_its_back;
    behind_its_back.Put(key, "stored");
    EXPECT_TRUE(store_.Apply(behind_its_back, Durability::kDurable).ok());
    Overlay::Seen seen;
    return overlay.Get(key, &seen)->value_or("none") != "stored";
  };
  Overlay::Seen seen;
  ASSERT_TRUE(overlay.Get("ihot", &seen).ok());
  ASSERT_TRUE(overlay.Get("ihot", &seen).ok());
  for (int i = 0; i < 100; ++i) {
    const std::string file = "ifile" + std::to_string(i);
    overlay.Put(file, "made", 2 * i + 1, kSession);
    overlay.Committed(2 * i + 1);
    overlay.Put(file, "closed", 2 * i + 2, kSession);
    overlay.Committed(2 * i + 2);
    ASSERT_TRUE(overlay.Get("ilook" + std::to_string(i), &seen).ok());
  }
  EXPECT_TRUE(is_in_memory("ihot"));
  EXPECT_TRUE(is_in_memory("ilook99")) << "an eighth of the room is for what comes";
  EXPECT_FALSE(is_in_memory("ifile97"));
  for (int i = 0; i < 100; ++i) {
    for (int turn = 0; turn < 2; ++turn) {
      ASSERT_TRUE(overlay.Get("ioften" + std::to_string(i), &seen).ok());
    }
  }
  EXPECT_FALSE(is_in_memory("ihot")) << "others are asked for more often";
}

TEST_F(OverlayTest, NothingStaysOfALoadThatFailed) {
  const uint64_t early = overlay_.BeginLoad("iinode");
  const uint64_t late = overlay_.BeginLoad("iinode");
  overlay_.FailLoad("iinode", early);
  EXPECT_EQ(overlay_.loading(), 1u) << "the later one goes on";
  overlay_.FailLoad("iinode", late);
  EXPECT_EQ(overlay_.loading(), 0u);
}

}  // namespace
}  // namespace weir::mds
