#include "common/placement/object_audit.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

constexpr uint64_t kObject = 64 << 10;

class ObjectAuditTest : public ::testing::Test {
 protected:
  ObjectAuditTest() {
    Pool& pool = map_.pools[PoolId(1)];
    pool.id = PoolId(1);
    pool.osds = {OsdId(0), OsdId(1)};
    pool.chains = ComputeChains(pool.id, 16, 1, {{OsdId(0), 1}, {OsdId(1), 1}});
  }
  static AuditedFile File(uint64_t size) {
    AuditedFile file;
    file.layout.stripe_unit = kObject;
    file.layout.object_size = kObject;
    file.layout.pool = PoolId(1);
    file.size = size;
    return file;
  }
  [[nodiscard]] OsdId HomeOf(ObjectId id) const { return map_.ChainOf(PoolId(1), id)->head(); }
  [[nodiscard]] OsdId OtherThan(OsdId osd) const { return OsdId(1 - osd.value); }

  ClusterMap map_;
};

TEST_F(ObjectAuditTest, IsContentWithWhatFilesHave) {
  ObjectAudit audit(map_);
  for (uint64_t index = 0; index < 8; ++index) {
    const ObjectId id{InodeId(7), index};
    audit.Saw(HomeOf(id), id, kObject, File(8 * kObject));
  }
  const CheckReport report = audit.Report();
  EXPECT_EQ(report.findings.found(), 0U) << ToText(report);
  EXPECT_EQ(report.Fact("objects"), 8U);
  EXPECT_EQ(report.Fact("bytes"), 8 * kObject);
  EXPECT_EQ(report.Fact("behind_end_objects"), 0U);
}

TEST_F(ObjectAuditTest, NamesTheObjectThatNobodyHas) {
  ObjectAudit audit(map_);
  audit.Saw(OsdId(1), {InodeId(9), 3}, 10, std::nullopt);
  const CheckReport report = audit.Report();
  ASSERT_EQ(report.findings.CountOf("leak"), 1U);
  EXPECT_NE(report.findings.listed()[0].text.find("object 9.3"), std::string::npos);
}

TEST_F(ObjectAuditTest, LetsAPurgeTakeItsTime) {
  ObjectAudit audit(map_);
  audit.Saw(OsdId(0), {InodeId(9), 3}, 10, AuditedFile{.layout = {}, .size = 0, .purging = true});
  EXPECT_EQ(audit.Report().findings.found(), 0U);
  EXPECT_EQ(audit.Report().Fact("purging_objects"), 1U);
}

TEST_F(ObjectAuditTest, FindsObjectsAwayFromHomeAndTooLongOnes) {
  ObjectAudit audit(map_);
  const ObjectId id{InodeId(7), 0};
  audit.Saw(OtherThan(HomeOf(id)), id, kObject, File(kObject));
  audit.Saw(HomeOf(id), id, kObject + 1, File(kObject));
  const CheckReport report = audit.Report();
  EXPECT_EQ(report.findings.CountOf("misplaced"), 1U);
  EXPECT_EQ(report.findings.CountOf("overlong"), 1U);
}

// What a mount wrote and did not live to report.
TEST_F(ObjectAuditTest, CountsWhatLiesBehindTheEnd) {
  ObjectAudit audit(map_);
  const ObjectId id{InodeId(7), 5};
  audit.Saw(HomeOf(id), id, 100, File(5 * kObject));
  EXPECT_EQ(audit.Report().findings.found(), 0U);
  EXPECT_EQ(audit.Report().Fact("behind_end_objects"), 1U);
}

}  // namespace
}  // namespace weir
