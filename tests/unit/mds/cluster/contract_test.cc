// Contracts in the cluster map: what may be said, what is admitted, what stays across a restart.
#include <gmock/gmock.h>

#include "mds/cluster/cluster_keeper.h"
#include "tests/unit/mds/mds_fixture.h"

namespace weir::mds {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
constexpr uint64_t kMiB = 1 << 20;

class ContractTest : public MdsFixture {
 protected:
  void SetUp() override {
    MdsFixture::SetUp();
    // 960 requests per second of 64 KiB, all of them free.
    wire::SetOsdRequest rates;
    rates.set_token_rate(60 * kMiB);
    rates.set_best_effort_min(0);
    ASSERT_TRUE(Admin(wire::MDS_SET_OSD, rates).status.ok());
  }

  static wire::SetClassRequest Bound(const std::string& name, Duration bound, double part = 0.95) {
    wire::SetClassRequest request;
    request.set_name(name);
    request.set_latency_ns(static_cast<uint64_t>(bound.count()));
    request.set_latency_part(part);
    return request;
  }
  static wire::SetClassRequest Disk(const std::string& name, const std::string& type, double peak) {
    wire::SetClassRequest request;
    request.set_name(name);
    request.set_type(type);
    request.set_peak(peak);
    return request;
  }
  Status Create(const wire::SetClassRequest& request) {
    return Admin(wire::MDS_CLASS_CREATE, request).status;
  }
  Status Set(const wire::SetClassRequest& request) {
    return Admin(wire::MDS_CLASS_SET, request).status;
  }
  // OSD 0 says what it measured: every request takes `part` of its bound.
  void Measured(uint32_t part, const std::vector<uint32_t>& classes) {
    wire::WatchRequest watch;
    watch.set_osd_id(0);
    watch.set_have_epoch(core->keeper().map()->epoch.value);
    watch.mutable_measures()->set_stable(true);
    for (int i = 0; i < 100; ++i) watch.mutable_measures()->add_service_parts(part);
    for (const uint32_t id : classes) watch.mutable_measures()->add_measured(id);
    Send(wire::MDS_WATCH, watch);
  }
  const ClassSpec& Spec(const std::string& name) {
    return core->keeper().map()->FindClass(name)->spec;
  }
};

TEST_F(ContractTest, TheKindOfFlowsStaysUntilItIsChanged) {
  const auto flow = [this] { return core->keeper().map()->FindClass("gold")->flow; };
  wire::SetClassRequest request;
  request.set_name("gold");
  ASSERT_TRUE(Create(request).ok());
  EXPECT_EQ(flow(), FlowKind::kUser);
  request.set_flow("cgroup");
  ASSERT_TRUE(Set(request).ok());
  request.clear_flow();
  request.set_weight(2);
  ASSERT_TRUE(Set(request).ok());
  EXPECT_EQ(flow(), FlowKind::kCgroup);
  Restart();
  EXPECT_EQ(flow(), FlowKind::kCgroup);
  request.set_flow("process");
  const Status refused = Set(request);
  EXPECT_EQ(refused.code(), ErrorCode::kInvalid);
  EXPECT_NE(refused.message().find("user, cgroup, opener, none"), std::string::npos) << refused;
  EXPECT_EQ(flow(), FlowKind::kCgroup);
}

TEST_F(ContractTest, EveryPartOfAContractStaysAcrossARestart) {
  wire::SetClassRequest request = Bound("gold", 40ms, 0.9);
  request.set_max_pending(4);
  request.set_admission("measured");
  ASSERT_TRUE(Create(request).ok());
  request = Disk("disk", "throughput", 0.25);
  request.set_throughput_bytes_per_s(5 * kMiB);
  request.set_tolerance(0.1);
  ASSERT_TRUE(Create(request).ok());
  wire::ReserveRequest reserve;
  reserve.set_name("disk");
  reserve.set_bytes_per_s(kMiB);
  reserve.set_iops(50);
  reserve.set_admission("measured");
  ASSERT_TRUE(Admin(wire::MDS_RESERVE, reserve).status.ok());
  const ClassSpec gold = Spec("gold");
  const ClassSpec disk = Spec("disk");
  EXPECT_EQ(gold.service.bound, 40ms);
  EXPECT_EQ(gold.service.probability, 0.9);
  EXPECT_EQ(gold.service.max_pending, 4u);
  EXPECT_EQ(disk.disk.throughput_bytes_per_s, 5 * kMiB);
  EXPECT_EQ(disk.disk.tolerance, 0.1);
  EXPECT_EQ(disk.reservation->iops, 50u);
  Restart();
  EXPECT_EQ(Spec("gold").service, gold.service);
  EXPECT_EQ(Spec("gold").admission, AdmissionKind::kMeasured);
  EXPECT_EQ(Spec("disk").disk, disk.disk);
  EXPECT_EQ(Spec("disk").reservation, disk.reservation);
}

TEST_F(ContractTest, ABoundIsAdmittedLikeAReservation) {
  ASSERT_TRUE(Create(Bound("gold", 20ms)).ok());  // 897 of 960 requests/s
  const Status refused = Create(Bound("silver", 20ms));
  EXPECT_EQ(refused.code(), ErrorCode::kRefused);
  EXPECT_THAT(refused.message(),
              HasSubstr("cannot promise 20ms@95% to 'silver' on osd.0: 896 of 960 requests/s "
                        "already promised, this needs 897 (largest that fits: 63 requests/s, a "
                        "bound of "));
  EXPECT_EQ(core->keeper().map()->FindClass("silver"), nullptr);
  // The bound that it names fits, a little less does not.
  const std::string& text = refused.message();
  const size_t at = text.find("a bound of ") + 11;
  const double ms = std::stod(text.substr(at));
  const auto bound = Duration(static_cast<int64_t>(ms * 1e6));
  EXPECT_EQ(Create(Bound("silver", bound - 5ms)).code(), ErrorCode::kRefused);
  EXPECT_TRUE(Create(Bound("silver", bound)).ok());
  // A reservation meets the same ledger.
  MakeClass("bronze");
  wire::ReserveRequest reserve;
  reserve.set_name("bronze");
  reserve.set_bytes_per_s(10 * kMiB);
  EXPECT_EQ(Admin(wire::MDS_RESERVE, reserve).status.code(), ErrorCode::kRefused);
  EXPECT_TRUE(Set(Bound("gold", 0ms)).ok());  // lifted
  EXPECT_TRUE(Admin(wire::MDS_RESERVE, reserve).status.ok());
}

TEST_F(ContractTest, ABoundShorterThanOneRequestSaysSo) {
  const Status refused = Create(Bound("gold", 1ms));
  EXPECT_EQ(refused.code(), ErrorCode::kRefused);
  EXPECT_THAT(refused.message(), HasSubstr("one request alone takes 1.042ms there"));
}

TEST_F(ContractTest, MeasuredAdmissionTakesMoreThanTheWorstCaseAndKeepsWhatWasPromisedInFull) {
  const auto measured = [](const std::string& name) {
    wire::SetClassRequest request = Bound(name, 50ms);  // 347/s in the worst case
    request.set_admission("measured");
    return request;
  };
  // Without measurements it is the worst case: two fit.
  ASSERT_TRUE(Create(measured("a")).ok());
  ASSERT_TRUE(Create(measured("b")).ok());
  EXPECT_EQ(Create(measured("c")).code(), ErrorCode::kRefused);
  // Requests take a tenth of their bound. Each newcomer that was not measured yet counts with s.
  Measured(10, {16, 17});
  EXPECT_TRUE(Create(measured("c")).ok());
  Measured(12, {16, 17, 18});
  EXPECT_TRUE(Create(measured("d")).ok());
  Measured(12, {16, 17});
  EXPECT_EQ(Create(measured("e")).code(), ErrorCode::kRefused);
  Measured(15, {16, 17, 18, 19});
  EXPECT_TRUE(Create(measured("e")).ok());
  // In full: what is left is less than nothing.
  EXPECT_EQ(Create(Bound("hard", 500ms)).code(), ErrorCode::kRefused);
  // Quite a lot of it may still be promised by measurement.
  Measured(15, {16, 17, 18, 19, 20});
  wire::SetClassRequest soft = Bound("soft", 500ms);
  soft.set_admission("measured");
  EXPECT_TRUE(Create(soft).ok());
}

TEST_F(ContractTest, WhoAsksForLessOrForTheSameAgainIsNotRefused) {
  const auto measured = [](const std::string& name, Duration bound) {
    wire::SetClassRequest request = Bound(name, bound);
    request.set_admission("measured");
    return request;
  };
  ASSERT_TRUE(Create(measured("a", 50ms)).ok());
  ASSERT_TRUE(Create(measured("b", 50ms)).ok());
  Measured(10, {16, 17});
  ASSERT_TRUE(Create(measured("c", 50ms)).ok());
  MakeClass("gold");
  wire::ReserveRequest reserve;
  reserve.set_name("gold");
  reserve.set_bytes_per_s(kMiB);
  ASSERT_EQ(Admin(wire::MDS_RESERVE, reserve).status.code(), ErrorCode::kRefused);
  EXPECT_TRUE(Set(measured("a", 60ms)).ok());
  EXPECT_TRUE(Set(measured("b", 50ms)).ok());
  wire::SetClassRequest in_full = Bound("c", 50ms);
  in_full.set_admission("additive");
  EXPECT_EQ(Set(in_full).code(), ErrorCode::kRefused);
}

TEST_F(ContractTest, AnOsdThatGetsSmallerStillKeepsWhatMeasuredAdmissionPromised) {
  MakeClass("gold");
  wire::ReserveRequest reserve;
  reserve.set_name("gold");
  reserve.set_bytes_per_s(50 * kMiB);
  reserve.set_admission("measured");
  ASSERT_TRUE(Admin(wire::MDS_RESERVE, reserve).status.ok());
  wire::SetOsdRequest rates;
  rates.set_token_rate(40 * kMiB);
  EXPECT_EQ(Admin(wire::MDS_SET_OSD, rates).status.code(), ErrorCode::kRefused);
  rates.set_token_rate(55 * kMiB);
  EXPECT_TRUE(Admin(wire::MDS_SET_OSD, rates).status.ok());
}

TEST_F(ContractTest, ALatencyDiskTakesItsBoundWithIt) {
  wire::SetClassRequest request = Disk("disk", "latency", 0.2);
  request.set_latency_ns(80'000'000);
  ASSERT_TRUE(Create(request).ok());
  ASSERT_TRUE(Set(Disk("disk", "best-effort", 0)).ok());
  EXPECT_EQ(Spec("disk").service.bound, Duration(0));
  EXPECT_EQ(Spec("disk").disk.latency, Duration(0));
}

TEST_F(ContractTest, SharesOfTheDiskAddUpToAWholeOne) {
  ASSERT_TRUE(Create(Disk("a", "rent-a-disk", 0.5)).ok());
  const Status refused = Create(Disk("b", "rent-a-disk", 0.6));
  EXPECT_EQ(refused.message(),
            "cannot promise 60% of the disk to 'b' on osd.0: 50% already promised (largest that "
            "fits: 50%)");
  EXPECT_TRUE(Create(Disk("b", "rent-a-disk", 0.5)).ok());
  EXPECT_TRUE(Set(Disk("a", "rent-a-disk", 0.4)).ok());
}

TEST_F(ContractTest, RequestsPerSecondAreReserved) {
  MakeClass("gold");
  wire::ReserveRequest reserve;
  reserve.set_name("gold");
  reserve.set_iops(1000);
  const Status refused = Admin(wire::MDS_RESERVE, reserve).status;
  EXPECT_EQ(refused.message(),
            "cannot reserve 1000 requests/s for 'gold' on osd.0: 0B/s of 60MiB/s already promised "
            "(largest that fits: 960 requests/s of 64KiB)");
  reserve.set_iops(960);
  EXPECT_TRUE(Admin(wire::MDS_RESERVE, reserve).status.ok());
  // An OSD that does more small requests has room for more.
  wire::SetOsdRequest faster;
  faster.set_iops_max(9600);
  EXPECT_TRUE(Admin(wire::MDS_SET_OSD, faster).status.ok());
  reserve.set_iops(9600);
  EXPECT_TRUE(Admin(wire::MDS_RESERVE, reserve).status.ok());
  faster.set_iops_max(0);
  EXPECT_EQ(Admin(wire::MDS_SET_OSD, faster).status.code(), ErrorCode::kRefused);
}

TEST_F(ContractTest, ADryRunSaysAndChangesNothing) {
  const Epoch before = core->keeper().map()->epoch;
  wire::SetClassRequest request = Bound("gold", 20ms);
  request.set_dry_run(true);
  const Answer answer = Admin(wire::MDS_CLASS_CREATE, request);
  ASSERT_TRUE(answer.status.ok());
  wire::ClassInfo info;
  ASSERT_TRUE(info.ParseFromString(answer.body));
  EXPECT_NEAR(static_cast<double>(info.booked_bytes_per_s()) / 65536, 896.7, 0.1);
  EXPECT_EQ(core->keeper().map()->epoch, before);
  request.set_latency_ns(1'000'000);
  EXPECT_EQ(Create(request).code(), ErrorCode::kRefused);
}

TEST_F(ContractTest, APeakMayBeABandwidth) {
  const auto peak = [](const std::string& name, uint64_t rate) {
    wire::SetClassRequest request = Disk(name, "rent-a-disk", 0);
    request.clear_peak();
    request.set_peak_bytes_per_s(rate);
    return request;
  };
  EXPECT_TRUE(Create(peak("a", 40 * kMiB)).ok());
  EXPECT_EQ(Create(peak("b", 30 * kMiB)).message(),
            "cannot promise a peak of 30MiB/s to 'b' on osd.0: 40MiB/s of 60MiB/s already promised "
            "(largest that fits: 20MiB/s)");
  EXPECT_TRUE(Create(Disk("b", "rent-a-disk", 1.0 / 3)).ok());
  EXPECT_EQ(Set(peak("a", 50 * kMiB)).code(), ErrorCode::kRefused);
  EXPECT_EQ(Set(Disk("a", "rent-a-disk", 0.9)).code(), ErrorCode::kRefused);
  Restart();
  EXPECT_EQ(Spec("a").disk.peak_bytes_per_s, 40 * kMiB);
  EXPECT_TRUE(Set(Disk("a", "rent-a-disk", 0.5)).ok());
  EXPECT_EQ(Spec("a").disk.peak_bytes_per_s, 0u);
  EXPECT_TRUE(Set(peak("a", 20 * kMiB)).ok());
  EXPECT_EQ(Spec("a").disk.peak, 0);
  wire::SetClassRequest both = peak("a", kMiB);
  both.set_peak(0.1);
  EXPECT_EQ(Set(both).code(), ErrorCode::kInvalid);
  wire::SetClassRequest none;
  none.set_name("a");
  none.set_type("best-effort");
  EXPECT_TRUE(Set(none).ok());
  EXPECT_EQ(Spec("a").disk.peak_bytes_per_s, 0u);
}

TEST_F(ContractTest, WhatMakesNoSenseIsRefusedByName) {
  wire::SetClassRequest request;
  request.set_name("gold");
  request.set_peak(0.5);
  EXPECT_THAT(Create(request).message(), HasSubstr("--peak"));
  EXPECT_THAT(Create(Disk("gold", "throughput", 0.5)).message(), HasSubstr("--throughput"));
  EXPECT_THAT(Create(Disk("gold", "latency", 0.5)).message(), HasSubstr("--latency"));
  EXPECT_THAT(Create(Disk("gold", "sideways", 0.5)).message(), HasSubstr("rent-a-disk"));
  EXPECT_EQ(Create(Bound("gold", 20ms, 1)).code(), ErrorCode::kInvalid);
  EXPECT_THAT(Set(Bound("best-effort", 20ms)).message(), HasSubstr("own class"));
  EXPECT_EQ(core->keeper().map()->FindClass("gold"), nullptr);
}

}  // namespace
}  // namespace weir::mds
