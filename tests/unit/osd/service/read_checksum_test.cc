// Goal: the checksum of an answer is that of its bytes, whether the store has joined it from those
// of its blocks or the service has summed them up. Method: reads over a store on a device, at and
// beside the bounds of blocks, of holes, of what lies in memory still.
#include <gtest/gtest.h>

#include <future>

#include "common/base/crc32c.h"
#include "common/disk/mem_device.h"
#include "common/placement/cluster_map.h"
#include "common/reactor/reactor.h"
#include "common/testing/manual_clock.h"
#include "common/testing/seed.h"
#include "common/wire/osd.pb.h"
#include "osd/service/object_service.h"
#include "tests/crash/store_harness.h"
#include "tests/unit/osd/service/fake_call.h"

namespace weir::osd {
namespace {

const OsdIdentity kOfDisk{"5e1f-cluster", "0a-osd", 3, 0};
const ObjectId kRead{InodeId(7), 0};

class AwaitedCall final : public net::IncomingCall {
 public:
  explicit AwaitedCall(std::string body) {
    method_ = wire::OSD_READ;
    sub_session_ = 1;
    body_ = std::move(body);
  }
  using net::IncomingCall::Respond;
  void Respond(Status status, std::string body, Buffer payload) override {
    answer_.set_value(testing::Answer{std::move(status), std::move(body), std::move(payload)});
  }
  testing::Answer Wait() { return answer_.get_future().get(); }

 private:
  std::promise<testing::Answer> answer_;
};

class ReadChecksumTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(MakeStore(device_, {}).ok());
    reactor_->Start();
    store_ = *OpenStore(device_, {.loop = reactor_.get()});
    SchedulerConfig config;
    config.guarantee = GuaranteeKind::kNone;
    RunInLoopAndWait(*reactor_, [&] {
      dispatcher_ = std::make_unique<Dispatcher>(*store_, clock_, *reactor_, config);
      service_ = std::make_unique<ObjectService>(*dispatcher_, *store_, clock_, kOfDisk,
                                                 ObjectService::Options());
    });
    model_.resize(kBlocks * kBlockSize);
  }
  void TearDown() override {
    RunInLoopAndWait(*reactor_, [&] {
      service_.reset();
      dispatcher_.reset();
    });
    store_.reset();
  }
  void Write(uint64_t offset, size_t size) {
    const Buffer data = testing::RandomBytes(prng_, size);
    ASSERT_TRUE(testing::WriteSync(*store_, kRead, offset, data).ok());
    model_.replace(offset, size, data.view());
  }
  void ExpectChecksum(uint64_t offset, uint64_t length) {
    ClusterMap map;
    map.cluster_uuid = kOfDisk.cluster_uuid;
    wire::ObjectRequest request;
    request.set_inode(kRead.inode.value);
    request.set_offset(offset);
    request.set_length(length);
    request.set_cluster(map.ClusterHash());
    const auto call = std::make_shared<AwaitedCall>(request.SerializeAsString());
    reactor_->Post([this, call] { service_->Handle(call); });
    const testing::Answer answer = call->Wait();
    ASSERT_TRUE(answer.status.ok()) << answer.status;
    const std::string expected = model_.substr(offset, length);
    EXPECT_TRUE(answer.payload.view() == expected) << offset << " + " << length;
    wire::ObjectReply reply;
    ASSERT_TRUE(reply.ParseFromString(answer.body));
    EXPECT_EQ(reply.payload_crc(), Crc32c(expected.data(), expected.size()))
        << offset << " + " << length;
  }

  static constexpr size_t kBlocks = 300;
  MemDevice device_{64 << 20};
  weir::testing::ManualClock clock_;
  std::unique_ptr<Reactor> reactor_ = *Reactor::Create({});
  std::unique_ptr<ObjectStore> store_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::unique_ptr<ObjectService> service_;
  Prng prng_{weir::testing::TestSeed()};
  std::string model_;
};

TEST_F(ReadChecksumTest, OfAnAnswerIsThatOfItsBytes) {
  Write(0, 64 * kBlockSize);
  Write(80 * kBlockSize, (kBlocks - 80) * kBlockSize);  // behind a hole
  Write(100 * kBlockSize + 10, 100);                    // an overlay
  const uint64_t block = kBlockSize;
  for (const uint64_t first : {uint64_t{0}, uint64_t{1}, uint64_t{63}, uint64_t{64}, uint64_t{79},
                               uint64_t{100}, uint64_t{101}}) {
    for (const uint64_t blocks : {1, 2, 17, 199}) {
      ExpectChecksum(first * block, blocks * block);
      ExpectChecksum(first * block, blocks * block - 1);
      ExpectChecksum(first * block + 1, blocks * block);
      ExpectChecksum(first * block + 1, blocks * block - 1);
      ExpectChecksum(first * block + 4095, 2);
    }
  }
  ExpectChecksum(0, 256 * block);
  ExpectChecksum(2048, 256 * block);
  ExpectChecksum(44 * block, 256 * block);
}

// A last block that is not whole is not summed as if it were.
TEST_F(ReadChecksumTest, OfTheEndOfAnObjectIsThatOfWhatIsThere) {
  Write(0, 20 * kBlockSize + 100);
  model_.resize(20 * kBlockSize + 100);
  for (const uint64_t offset : {uint64_t{0}, uint64_t{kBlockSize}, uint64_t{20 * kBlockSize}}) {
    ExpectChecksum(offset, 21 * kBlockSize);
    ExpectChecksum(offset, 50);
  }
}

}  // namespace
}  // namespace weir::osd
