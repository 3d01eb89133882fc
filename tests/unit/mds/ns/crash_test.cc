// Goal: a crash at any batch boundary leaves a namespace that holds together, and a client that
// repeats what was not answered ends where it would have without the crash. Method: a store that
// forgets everything after its Nth batch; random operations; a checker that reads the raw tables,
// and that of weir-mds --fsck.
#include <map>
#include <set>

#include "common/base/prng.h"
#include "common/testing/seed.h"
#include "mds/check/namespace_check.h"
#include "mds/ns/usage.h"
#include "tests/unit/mds/mds_fixture.h"

namespace weir::mds {
namespace {

class CrashTest : public MdsFixture {
 protected:
  KvStore& Store() override { return mem; }
  void DieAfter(uint64_t batches) {
    mem.FailWith(Status(ErrorCode::kIo, "the store is dead"), batches);
  }
  void Live() { mem.FailWith(Status::Ok()); }

  // Every table against every other.
  void CheckInvariants() {
    std::map<uint64_t, InodeRecord> inodes;
    std::map<uint64_t, uint32_t> links, subdirectories, entries;
    std::map<uint64_t, uint64_t> held, charged;  // by class
    std::map<std::string, uint64_t> cookies;
    std::set<uint64_t> orphans, purges, untold;
    std::map<uint64_t, TreeUsage> below;
    std::optional<StateRecord> state;
    const auto it = mem.NewIterator();
    for (it->Seek(""); it->Valid(); it->Next()) {
      const std::string_view key = it->key();
      const auto id = key.size() >= 9 ? ReadBigEndian(key, kFirstNumber) : 0;
      if (key == kStateKey) state = *DecodeValue<StateRecord>(it->value());
      if (key[0] == 'i') inodes[id] = *DecodeValue<InodeRecord>(it->value());
      if (key[0] == 'h') held[id] = DecodeValue<HeldRecord>(it->value())->bytes();
      if (key[0] == 'o') orphans.insert(id);
      if (key[0] == 'u') untold.insert(id);
      if (key[0] == 'p') purges.insert(id);
      if (key[0] == 'c') {
        const auto record = *DecodeValue<CookieRecord>(it->value());
        cookies[std::to_string(id) + "/" + record.name()] = ReadBigEndian(key, kSecondNumber);
      }
      if (key[0] != 'd') continue;
      const auto dentry = *DecodeValue<DentryRecord>(it->value());
      ++links[dentry.inode()];
      ++entries[id];
      if (S_ISDIR(dentry.mode())) ++subdirectories[id];
    }
    ASSERT_TRUE(state.has_value());
    EXPECT_EQ(state->inode_count(), inodes.size());
    for (it->Seek("d"); it->Valid() && it->key()[0] == 'd'; it->Next()) {
      const auto dentry = *DecodeValue<DentryRecord>(it->value());
      const uint64_t parent = ReadBigEndian(it->key(), kFirstNumber);
      const std::string name(it->key().substr(9));
      EXPECT_TRUE(inodes.contains(dentry.inode())) << "dangling " << name;
      EXPECT_TRUE(inodes.contains(parent));
      EXPECT_EQ(cookies[std::to_string(parent) + "/" + name], dentry.cookie());
    }
    for (const auto& [id, record] : inodes) {
      if (id != kRoot && record.nlink() > 0) AddUsage(ShareOf(record), 1, &below[record.parent()]);
    }
    for (const auto& [id, record] : inodes) {
      const bool directory = S_ISDIR(record.mode());
      EXPECT_EQ(record.entries(), entries[id]) << id;
      EXPECT_LT(id, state->next_inode());
      EXPECT_EQ(orphans.contains(id), record.nlink() == 0) << id;
      EXPECT_FALSE(purges.contains(id)) << id;
      EXPECT_EQ(record.charged_bytes(), record.size()) << id;
      if (record.size() > 0) charged[record.charged_class()] += record.size();
      if (directory && record.nlink() > 0) {
        EXPECT_EQ(record.below().SerializeAsString(), below[id].SerializeAsString()) << id;
        TreeUsage more = record.below();
        AddUsage(record.told(), -1, &more);
        EXPECT_TRUE(id == kRoot || IsZero(more) || untold.contains(id)) << id;
      }
      if (id == kRoot || record.nlink() == 0) continue;
      EXPECT_EQ(record.nlink(), directory ? 2 + subdirectories[id] : links[id]) << id;
    }
    EXPECT_EQ(held, charged);
    CheckReport report;
    ASSERT_TRUE(CheckNamespace(mem, {}, &report).ok());
    EXPECT_EQ(report.findings.found(), 0u) << ToText(report);
  }

  struct Step {
    uint32_t method;
    std::string body;
  };
  Step RandomStep(Prng& prng) {
    const auto name = [&] { return "n" + std::to_string(prng.Uniform(0, 4)); };
    const auto inode = [&] { return prng.Uniform(1, 12); };
    switch (prng.Uniform(0, 7)) {
      case 0:
        return {wire::MDS_MKNOD, New(inode(), name(), S_IFDIR | 0755).SerializeAsString()};
      case 1: {
        wire::CreateRequest create = New(inode(), name(), 0644);
        create.set_exclusive(true);
        create.set_open_flags(2);
        return {wire::MDS_CREATE, create.SerializeAsString()};
      }
      case 2:
        return {wire::MDS_UNLINK, Name(inode(), name()).SerializeAsString()};
      case 3:
        return {wire::MDS_RMDIR, Name(inode(), name()).SerializeAsString()};
      case 4:
        return {wire::MDS_LINK, NewLink(inode(), inode(), name()).SerializeAsString()};
      case 5: {
        wire::ReleaseRequest release;
        release.add_inodes(inode());
        return {wire::MDS_RELEASE, release.SerializeAsString()};
      }
      case 6: {
        wire::WroteRequest wrote;
        wrote.set_inode(inode());
        wrote.set_size_at_least(prng.Uniform(1, 1 << 20));
        wrote.set_class_id(static_cast<uint32_t>(prng.Uniform(16, 18)));
        return {wire::MDS_WROTE, wrote.SerializeAsString()};
      }
      default:
        return {
            wire::MDS_RENAME,
            Move(inode(), name(), inode(), name(), prng.Chance(0.2) ? 2 : 0).SerializeAsString()};
    }
  }
  std::shared_ptr<TestCall> SendStep(const Step& step, uint64_t id) {
    auto call = std::make_shared<TestCall>(step.method, session, id, step.body);
    core->Handle(call);
    return call;
  }
};

TEST_F(CrashTest, HoldsTogetherAfterACrashAtEveryBatchAndRetriesAreSafe) {
  const uint64_t seed = weir::testing::TestSeed(11);
  for (uint64_t round = 0; round < 60; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed) + " round " + std::to_string(round));
    Prng prng(seed + round);
    core.reset();
    WriteBatch everything;
    everything.DeleteRange("", "\xff");
    ASSERT_TRUE(mem.Apply(everything, Durability::kDurable).ok());
    Start();
    AddOsd("disk-a", 1);
    Touch(kRoot, "n0");  // the pool is in use from here on
    DieAfter(prng.Uniform(0, 40));
    uint64_t id = 1000;
    std::vector<std::pair<Step, uint64_t>> unanswered;
    for (int step = 0; step < 120 && unanswered.empty(); ++step) {
      // Some at once, so that they share a batch.
      std::vector<std::pair<std::shared_ptr<TestCall>, std::pair<Step, uint64_t>>> together;
      for (uint64_t n = prng.Uniform(1, 4); n > 0; --n) {
        const Step next = RandomStep(prng);
        together.push_back({SendStep(next, ++id), {next, id}});
      }
      if (prng.Chance(0.3)) core->Tick();  // directories tell what lies below
      while (core->names().CommitPrepared()) {
      }
      for (const auto& [call, sent] : together) {
        ASSERT_TRUE(call->answer.has_value());
        if (call->answer->status.code() == ErrorCode::kIo) unanswered.push_back(sent);
      }
    }
    Live();
    Restart();
    CheckInvariants();
    for (const auto& [step, number] : unanswered) {
      const auto first = SendStep(step, number);
      const Answer answer = Finish(first);
      const Answer again = Finish(SendStep(step, number));
      if (answer.status.ok() && step.method != wire::MDS_RELEASE) {
        EXPECT_TRUE(again.status.ok()) << again.status;
        EXPECT_EQ(again.body, answer.body);
      }
    }
    clock.Advance(std::chrono::seconds(60));
    core->Tick();
    while (core->names().CommitPrepared()) {
    }
    CheckInvariants();
    for (const auto it = mem.NewIterator(); it->Valid(); it->Next()) {
      EXPECT_NE(it->key()[0], 'o') << "an orphan that nobody holds";
    }
  }
}

TEST_F(CrashTest, OneBatchCarriesManyOperationsAndLaterOnesSeeEarlierOnes) {
  const uint64_t before = core->names().commits();
  const uint64_t d = Mkdir(kRoot, "d");
  EXPECT_EQ(core->names().commits(), before + 1);
  Touch(d, "first");
  const uint64_t now = core->names().commits();
  std::vector<std::shared_ptr<TestCall>> calls;
  calls.reserve(50);
  for (int i = 0; i < 50; ++i) {
    calls.push_back(Send(wire::MDS_MKNOD, New(d, "f" + std::to_string(i), S_IFREG | 0644)));
  }
  const auto found = Send(wire::MDS_LOOKUP, Name(d, "f7"));
  const auto refused = Send(wire::MDS_MKNOD, New(d, "f7", S_IFREG | 0644));
  EXPECT_FALSE(found->answer.has_value()) << "not durable yet, so nobody may be told";
  EXPECT_FALSE(refused->answer.has_value());
  EXPECT_TRUE(core->names().CommitPrepared());
  EXPECT_EQ(core->names().commits(), now + 1);
  for (const auto& call : calls) EXPECT_TRUE(call->answer->status.ok());
  EXPECT_TRUE(found->answer->status.ok());
  EXPECT_EQ(refused->answer->status.code(), ErrorCode::kExists);
  EXPECT_EQ(List(d).size(), 51u);
}

TEST_F(CrashTest, AFailedStoreFailsWhatWaitedAndShowsWhatItHas) {
  Touch(kRoot, "kept");
  DieAfter(0);
  const auto lost = Send(wire::MDS_MKNOD, New(kRoot, "lost", S_IFREG | 0644));
  EXPECT_EQ(Finish(lost).status.code(), ErrorCode::kIo);
  EXPECT_EQ(List(kRoot), std::vector<std::string>{"kept"});
}

}  // namespace
}  // namespace weir::mds
