// Goal: after any crash the namespace holds together, has everything that was answered, and a
// client that repeats what was not answered ends where it would have without the crash. Method: an
// MDS on RocksDB on a disk that loses its power at seeded points and forgets what was not flushed;
// a plain tree in memory; the checker of weir-mds --fsck.
#include <algorithm>
#include <cstdlib>

#include "common/base/prng.h"
#include "common/disk/faulty_device.h"
#include "common/kv/raw_kv_check.h"
#include "common/testing/seed.h"
#include "mds/check/namespace_check.h"
#include "tests/unit/mds/mds_fixture.h"
#include "tests/unit/mds/model_tree.h"

namespace weir::mds {
namespace {

constexpr uint64_t kDiskBytes = 16 << 20;

uint64_t Schedules() {
  const char* text = std::getenv("WEIR_CRASH_POINTS");
  return text != nullptr ? std::strtoull(text, nullptr, 0) / 10 : 40;
}

// Hands on to a store that is opened again after each crash.
class Reopened final : public KvStore {
 public:
  Result<std::string> Get(std::string_view key) override { return below->Get(key); }
  Status Apply(const WriteBatch& batch, Durability durability) override {
    return below->Apply(batch, lazy ? Durability::kBuffered : durability);
  }
  std::unique_ptr<Iterator> NewIterator() override { return below->NewIterator(); }
  std::unique_ptr<KvStore> below;
  bool lazy = false;  // a bug on purpose: answers before it is durable
};

class NamespaceCrashTest : public MdsFixture {
 protected:
  // One change, as sent; ids of the model in `node`, `to`, `made`.
  struct Step {
    enum class Kind { kMake, kLink, kRemove, kRename } kind;
    int node = 0, to = 0, made = 0;
    std::string name, new_name;
    bool directory = false;
  };
  KvStore& Store() override { return store; }
  void SetUp() override {}  // each schedule has a disk of its own
  void TearDown() override { PowerOff(); }

  void PowerOff() {
    core.reset();
    store.below.reset();
  }
  void OpenDisk() {
    auto opened = OpenRawKvStore(*disk, {0, kDiskBytes}, {.write_buffer_bytes = 64 << 10});
    ASSERT_TRUE(opened.ok()) << opened.status();
    store.below = *std::move(opened);
  }

  void NewDisk() {
    PowerOff();
    disk = std::make_unique<FaultyDevice>(std::make_unique<MemDevice>(kDiskBytes));
    ASSERT_TRUE(FormatRawKv(*disk, {0, kDiskBytes}).ok());
    OpenDisk();
    model = {};
    inode_of = {{0, kRoot}};
    next_made = 1;
    ASSERT_NO_FATAL_FAILURE(MdsFixture::SetUp());
    model.Make(0, "pool", false, next_made);
    inode_of[next_made++] = Touch(kRoot, "pool");  // in use from here on
  }

  Step RandomStep(Prng& prng) {
    const std::vector<int> nodes = model.Reachable();
    const auto node = [&] { return nodes[prng.Uniform(0, nodes.size() - 1)]; };
    const auto word = [&] { return std::string(1, static_cast<char>('a' + prng.Uniform(0, 5))); };
    Step step{Step::Kind::kMake, node(), node(), 0, word(), word(), prng.Chance(0.5)};
    for (int i = 0; i < 3 && !model.IsDirectory(step.node); ++i) step.node = node();
    const uint64_t choice = prng.Uniform(0, 9);
    if (choice >= 4) step.kind = Step::Kind::kRemove;
    if (choice >= 6) step.kind = Step::Kind::kRename;
    if (choice == 9 && !model.IsDirectory(step.to)) step.kind = Step::Kind::kLink;
    if (step.kind == Step::Kind::kMake) step.made = next_made;
    return step;
  }

  Answer Do(const Step& step, uint64_t id) {
    const uint64_t inode = inode_of[step.node];
    switch (step.kind) {
      case Step::Kind::kMake:
        return Try(wire::MDS_MKNOD,
                   New(inode, step.name, step.directory ? S_IFDIR | 0755 : S_IFREG | 0644), id);
      case Step::Kind::kLink:
        return Try(wire::MDS_LINK, NewLink(inode_of[step.to], inode, step.name), id);
      case Step::Kind::kRemove:
        return Try(step.directory ? wire::MDS_RMDIR : wire::MDS_UNLINK, Name(inode, step.name), id);
      case Step::Kind::kRename:
        return Try(wire::MDS_RENAME, Move(inode, step.name, inode_of[step.to], step.new_name), id);
    }
    return {};
  }

  ErrorCode DoInModel(const Step& step) {
    switch (step.kind) {
      case Step::Kind::kMake:
        return model.Make(step.node, step.name, step.directory, step.made);
      case Step::Kind::kLink:
        return model.Link(step.to, step.node, step.name);
      case Step::Kind::kRemove:
        return model.Remove(step.node, step.name, step.directory);
      case Step::Kind::kRename:
        return model.Rename(step.node, step.name, step.to, step.new_name);
    }
    return ErrorCode::kOk;
  }

  // Empty, or what is wrong.
  std::string Settle(const Step& step, const Answer& answer) {
    const ErrorCode want = DoInModel(step);
    if (answer.status.code() != want) {
      return "answered '" + answer.status.message() + "', the model says " +
             std::string(ToText(want));
    }
    if (step.kind != Step::Kind::kMake || !answer.status.ok()) return "";
    wire::EntryReply reply;
    if (!reply.ParseFromString(answer.body)) return "an answer that does not parse";
    inode_of[next_made++] = reply.attr().inode();
    return "";
  }

  // Until the power fails: the step that was not answered stays in `unanswered`.
  std::string Work(Prng& prng, uint64_t* id, std::optional<Step>* unanswered) {
    disk->PowerLossAt(prng.Uniform(0, 60));
    for (int i = 0; i < 100; ++i) {
      const Step step = RandomStep(prng);
      const Answer answer = Do(step, ++*id);
      if (answer.status.code() == ErrorCode::kIo) {
        *unanswered = step;
        return "";
      }
      if (std::string wrong = Settle(step, answer); !wrong.empty()) return wrong;
    }
    return "";
  }

  std::string CheckDisk() {
    CheckReport report;
    const auto kv = OpenForCheck(*disk, {0, kDiskBytes}, true, &report.findings);
    if (!kv.ok()) return kv.status().message();
    if (*kv == nullptr) return ToText(report);
    const Status checked = CheckNamespace(**kv, {}, &report);
    if (!checked.ok()) return checked.message();
    return report.findings.found() == 0 ? "" : ToText(report);
  }

  std::string Compare(int node) {
    std::vector<std::string> want;
    for (const auto& [name, child] : model.Names(node)) want.push_back(name);
    std::vector<std::string> listed = List(inode_of[node]);
    std::sort(listed.begin(), listed.end());
    if (listed != want) {
      std::string text = "directory " + std::to_string(inode_of[node]) + " lists";
      for (const std::string& name : listed) text += " " + name;
      text += " and should list";
      for (const std::string& name : want) text += " " + name;
      return text;
    }
    for (const auto& [name, child] : model.Names(node)) {
      const Answer found = Try(wire::MDS_LOOKUP, Name(inode_of[node], name));
      wire::EntryReply reply;
      if (!found.status.ok() || !reply.ParseFromString(found.body) ||
          reply.attr().inode() != inode_of[child]) {
        return "'" + name + "' is another inode";
      }
      if (!model.IsDirectory(child)) continue;
      if (std::string wrong = Compare(child); !wrong.empty()) return wrong;
    }
    return "";
  }

  // Two crashes of one disk. Empty, or what is wrong.
  std::string RunSchedule(uint64_t seed) {
    Prng prng(seed);
    NewDisk();
    uint64_t id = 1'000'000;  // apart from those of the fixture
    for (int life = 0; life < 2; ++life) {
      std::optional<Step> unanswered;
      std::string wrong = Work(prng, &id, &unanswered);
      if (!wrong.empty()) return wrong;
      PowerOff();
      disk->PowerOn(prng.Next());
      if (wrong = CheckDisk(); !wrong.empty()) return "the checker says " + wrong;
      OpenDisk();
      Start();
      if (unanswered.has_value()) wrong = Settle(*unanswered, Do(*unanswered, id));
      if (!wrong.empty()) return "repeated: " + wrong;
      if (wrong = Compare(0); !wrong.empty()) return "life " + std::to_string(life) + ", " + wrong;
    }
    return "";
  }

  Reopened store;
  std::unique_ptr<FaultyDevice> disk;
  ModelTree model;
  std::map<int, uint64_t> inode_of;
  int next_made = 1;
};

TEST_F(NamespaceCrashTest, HasWhatWasAnsweredAndHoldsTogether) {
  const uint64_t base = weir::testing::TestSeed(300);
  for (uint64_t i = 0; i < Schedules(); ++i) {
    ASSERT_EQ(RunSchedule(base + i), "") << "TEST_SEED=" << base + i;
    ASSERT_FALSE(HasFailure()) << "TEST_SEED=" << base + i;
  }
}

// Goal: the test above would notice an answer that is not durable. Method: a store that does so.
TEST_F(NamespaceCrashTest, GoesRedWhenAnswersAreNotDurable) {
  const uint64_t base = weir::testing::TestSeed(600);
  store.lazy = true;
  std::string wrong;
  for (uint64_t i = 0; i < 60 && wrong.empty(); ++i) wrong = RunSchedule(base + i);
  EXPECT_NE(wrong, "");
}

}  // namespace
}  // namespace weir::mds
