// Holes, extents and copies as an OSD is asked for them, down to a store in memory, and what the
// pipeline charges for them.
#include <gtest/gtest.h>

#include "common/placement/cluster_map.h"
#include "common/testing/manual_clock.h"
#include "common/testing/manual_loop.h"
#include "common/wire/osd.pb.h"
#include "osd/service/object_service.h"
#include "osd/store/mem_object_store.h"
#include "tests/unit/osd/service/fake_call.h"

namespace weir::osd {
namespace {

const OsdIdentity kIdentity{"5e1f-cluster", "0a-osd", 3, 0};

class RangeRequestsTest : public ::testing::Test {
 protected:
  wire::ObjectReply Ask(uint32_t method, const wire::ObjectRequest& request) {
    auto answer = std::make_shared<std::optional<testing::Answer>>();
    service_.Handle(std::make_shared<testing::FakeCall>(method, 1, request.SerializeAsString(),
                                                        Buffer(), answer));
    wire::ObjectReply reply;
    EXPECT_TRUE(answer->has_value());
    status_ = (*answer)->status;
    EXPECT_TRUE(reply.ParseFromString((*answer)->body));
    return reply;
  }
  static wire::ObjectRequest Request(uint64_t inode, uint64_t offset, uint64_t length) {
    ClusterMap map;
    map.cluster_uuid = kIdentity.cluster_uuid;
    wire::ObjectRequest request;
    request.set_inode(inode);
    request.set_offset(offset);
    request.set_length(length);
    request.set_cluster(map.ClusterHash());
    return request;
  }
  void Put(ObjectId id, uint64_t size) {
    store_.Write(id, 0, Buffer::CopyOf(std::string(size, 'x')), {}, [](const auto&) {});
  }
  std::string Get(uint64_t inode) {
    std::string bytes;
    store_.Read({InodeId(inode), 0}, 0, kMaxObjectSize,
                [&bytes](const Result<ObjectData>& read) { bytes = read->bytes.view(); });
    return bytes;
  }
  uint64_t Charged() {
    uint64_t bytes = 0;
    for (const auto& one : dispatcher_.Stats(true).classes) bytes += one.counters.served_bytes;
    return bytes;
  }
  static SchedulerConfig Config() {
    SchedulerConfig config;
    config.guarantee = GuaranteeKind::kNone;
    return config;
  }

  weir::testing::ManualClock clock_;
  weir::testing::ManualLoop loop_{clock_};
  MemObjectStore store_;
  Dispatcher dispatcher_{store_, clock_, loop_, Config()};
  ObjectService service_{dispatcher_, store_, clock_, kIdentity, {}};
  Status status_;
};

TEST_F(RangeRequestsTest, PunchMakesZerosForThePriceOfACommit) {
  Put({InodeId(7), 0}, 10'000);
  EXPECT_EQ(Ask(wire::OSD_PUNCH, Request(7, 1000, 8000)).object_size(), 10'000u);
  EXPECT_EQ(Get(7), std::string(1000, 'x') + std::string(8000, 0) + std::string(1000, 'x'));
  EXPECT_EQ(Charged(), kMetadataOpBytes);
}

TEST_F(RangeRequestsTest, ExtentsComeInPairsAndTellOfTheNextObject) {
  Put({InodeId(7), 0}, 5000);
  Put({InodeId(7), 4}, 1);
  wire::ObjectRequest request = Request(7, 0, kMaxObjectSize);
  EXPECT_FALSE(Ask(wire::OSD_EXTENTS, request).has_next_object());
  request.set_want_next(true);
  const wire::ObjectReply reply = Ask(wire::OSD_EXTENTS, request);
  ASSERT_EQ(reply.extents_size(), 2);
  EXPECT_EQ(reply.extents(0), 0u);
  EXPECT_EQ(reply.extents(1), 5000u);
  EXPECT_EQ(reply.next_object(), 4u);
  request.set_index(4);
  EXPECT_FALSE(Ask(wire::OSD_EXTENTS, request).has_next_object());
}

TEST_F(RangeRequestsTest, ACopyIsChargedForWhatTheDiskDoes) {
  Put({InodeId(7), 0}, 64 * kBlockSize);
  wire::ObjectRequest request = Request(8, 0, 64 * kBlockSize);
  request.set_source_inode(7);
  Ask(wire::OSD_COPY, request);
  EXPECT_EQ(Get(8), Get(7));
  EXPECT_EQ(Charged(), kMetadataOpBytes);  // shared
  request.set_length(64 * kBlockSize - 100);
  Ask(wire::OSD_COPY, request);
  EXPECT_EQ(Charged(), kMetadataOpBytes + 2 * kBlockSize);  // and a ragged block
  request.set_source_offset(1);
  request.set_length(5000);
  Ask(wire::OSD_COPY, request);
  EXPECT_EQ(Charged(), 10'000u);  // read and written
}

TEST_F(RangeRequestsTest, RangesOutsideOfAnObjectAreRefused) {
  Ask(wire::OSD_PUNCH, Request(7, kMaxObjectSize, 1));
  EXPECT_EQ(status_.code(), ErrorCode::kInvalid);
  wire::ObjectRequest request = Request(8, 0, 10);
  request.set_source_inode(7);
  request.set_source_offset(kMaxObjectSize - 9);
  Ask(wire::OSD_COPY, request);
  EXPECT_EQ(status_.code(), ErrorCode::kInvalid);
}

}  // namespace
}  // namespace weir::osd
