// Goal: a large file is purged step by step, each step a request of its own; a step that fails is
// tried again where it failed.
#include "tests/unit/mds/mds_fixture.h"

namespace weir::mds {
namespace {

using namespace std::chrono_literals;

class PurgeTest : public MdsFixture {
 protected:
  void SetUp() override {
    MdsFixture::SetUp();
    clock.Advance(20s);  // nobody reclaims anything any more
    core->Tick();
    core->names().CommitPrepared();
  }
  void Remove(const std::string& name) {
    Touch(kRoot, name);
    osds.orders.clear();
    ASSERT_EQ(Code(wire::MDS_UNLINK, Name(kRoot, name)), ErrorCode::kOk);
  }
  // First index and number of each step.
  std::vector<std::pair<uint64_t, uint32_t>> Asked() const {
    std::vector<std::pair<uint64_t, uint32_t>> steps;
    for (const ObjectOrder& order : osds.orders) {
      EXPECT_EQ(order.kind, ObjectOrder::Kind::kDeleteInode);
      EXPECT_EQ(order.charged_to, kSystemPurge);
      steps.emplace_back(order.index, order.objects_max);
    }
    return steps;
  }
};

using Steps = std::vector<std::pair<uint64_t, uint32_t>>;

TEST_F(PurgeTest, ASmallFileIsOneStepAndALargeOneMany) {
  Remove("small");
  EXPECT_EQ(Asked(), (Steps{{0, 1}}));
  osds.left = {1, 17, 33};
  Remove("large");
  EXPECT_EQ(Asked(), (Steps{{0, 1}, {1, 16}, {17, 16}, {33, 16}}));
  EXPECT_EQ(core->objects().pending_purges(), 0u);
}

TEST_F(PurgeTest, AStepThatFailedIsTriedAgain) {
  osds.left = {1, 17};
  osds.answer = Status(ErrorCode::kUnreachable, "gone");
  Remove("large");
  EXPECT_EQ(core->objects().pending_purges(), 1u);
  osds.answer = Status::Ok();
  osds.orders.clear();
  clock.Advance(1s);
  core->Tick();
  EXPECT_EQ(Asked(), (Steps{{17, 16}}));
  EXPECT_EQ(core->objects().pending_purges(), 0u);
}

}  // namespace
}  // namespace weir::mds
