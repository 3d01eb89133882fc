#include "common/placement/class_promise.h"

#include <gtest/gtest.h>

#include "common/wire/map.pb.h"

namespace weir {
namespace {

// Three OSDs of 60, 60 and 30 MiB/s, and a class.
class ClassPromiseTest : public ::testing::Test {
 protected:
  ClassPromiseTest() {
    for (const uint64_t rate : {60, 60, 30}) {
      wire::OsdInfo* osd = map_.add_osds();
      osd->set_id(static_cast<uint32_t>(map_.osds_size()));
      osd->mutable_qos()->set_token_rate(rate << 20);
    }
    info_.set_name("gold");
    info_.set_weight(1);
  }
  uint64_t PromisedMib() { return PromisedTo(map_, info_) >> 20; }

  wire::ClusterMap map_;
  wire::ClassInfo info_;
};

TEST_F(ClassPromiseTest, AReservationIsATotalOrOnEachOsd) {
  EXPECT_EQ(PromisedMib(), 0u);
  info_.mutable_reservation()->set_bytes_per_s(10 << 20);
  info_.mutable_reservation()->set_scope("cluster");
  EXPECT_EQ(PromisedMib(), 10u);
  info_.mutable_reservation()->set_scope("osd");
  EXPECT_EQ(PromisedMib(), 30u);
}

TEST_F(ClassPromiseTest, AVirtualDiskIsPromisedItsPeakOnEachOsd) {
  EXPECT_TRUE(PeaksOf(map_, info_).empty());
  info_.set_type("rent-a-disk");
  info_.set_peak(0.5);
  EXPECT_EQ(PromisedMib(), 30u + 30 + 15);
  info_.set_type("latency");
  info_.set_latency_ns(20'000'000);
  info_.set_peak(0);
  info_.set_peak_bytes_per_s(40 << 20);
  ASSERT_EQ(PeaksOf(map_, info_).size(), 3u);
  EXPECT_EQ(PeaksOf(map_, info_)[2].osd_id, 3u);
  EXPECT_EQ(PeaksOf(map_, info_)[2].share, 1) << "it has no more";
  EXPECT_EQ(PromisedMib(), 40u + 40 + 30);
  info_.mutable_reservation()->set_bytes_per_s(200 << 20);
  EXPECT_EQ(PromisedMib(), 200u) << "a request counts against both";
}

TEST_F(ClassPromiseTest, AThroughputIsATotal) {
  info_.set_type("throughput");
  info_.set_peak(0.5);
  info_.set_throughput_bytes_per_s(12 << 20);
  EXPECT_EQ(PromisedMib(), 12u);
}

}  // namespace
}  // namespace weir
