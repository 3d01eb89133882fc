// Goal: the namespace does what a plain tree in memory does. Method: the same random operations on
// both; answers and the whole tree must agree, also across restarts.
#include <set>

#include "common/base/prng.h"
#include "common/testing/seed.h"
#include "tests/unit/mds/mds_fixture.h"
#include "tests/unit/mds/model_tree.h"

namespace weir::mds {
namespace {

class ModelTest : public MdsFixture {
 protected:
  void Compare(int node) {
    std::set<std::string> want;
    for (const auto& [name, child] : model.Names(node)) want.insert(name);
    const std::vector<std::string> listed = List(inode_of[node]);
    EXPECT_EQ(std::set<std::string>(listed.begin(), listed.end()), want);
    EXPECT_EQ(listed.size(), want.size());
    for (const auto& [name, child] : model.Names(node)) {
      const auto found = Ask<wire::EntryReply>(wire::MDS_LOOKUP, Name(inode_of[node], name));
      EXPECT_EQ(found.attr().inode(), inode_of[child]);
      if (model.IsDirectory(child)) Compare(child);
    }
  }
  ModelTree model;
  std::map<int, uint64_t> inode_of{{0, kRoot}};
};

TEST_F(ModelTest, AgreesWithAPlainTree) {
  const uint64_t seed = weir::testing::TestSeed(5);
  Prng prng(seed);
  SCOPED_TRACE("seed " + std::to_string(seed));
  int next = 1;
  for (int step = 0; step < 4000; ++step) {
    const std::vector<int> nodes = model.Reachable();
    const auto node = [&] { return nodes[prng.Uniform(0, nodes.size() - 1)]; };
    const auto word = [&] { return std::string(1, static_cast<char>('a' + prng.Uniform(0, 5))); };
    const int parent = node();
    const std::string name = word();
    const bool directory = prng.Chance(0.5);
    const uint64_t choice = prng.Uniform(0, 9);
    if (choice < 4) {
      const ErrorCode want = model.Make(parent, name, directory, next);
      const Answer answer = Try(wire::MDS_MKNOD, New(inode_of[parent], name,
                                                     directory ? S_IFDIR | 0755 : S_IFREG | 0644));
      ASSERT_EQ(answer.status.code(), want) << answer.status;
      if (!answer.status.ok()) continue;
      wire::EntryReply reply;
      ASSERT_TRUE(reply.ParseFromString(answer.body));
      inode_of[next++] = reply.attr().inode();
    } else if (choice < 6) {
      ASSERT_EQ(Code(directory ? wire::MDS_RMDIR : wire::MDS_UNLINK, Name(inode_of[parent], name)),
                model.Remove(parent, name, directory));
    } else {
      const int to = node();
      const std::string new_name = word();
      ASSERT_EQ(Code(wire::MDS_RENAME, Move(inode_of[parent], name, inode_of[to], new_name)),
                model.Rename(parent, name, to, new_name))
          << "step " << step;
    }
    if (step % 500 == 499) {
      Restart();
      Compare(0);
    }
  }
}

}  // namespace
}  // namespace weir::mds
