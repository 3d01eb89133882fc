#include "osd/service/scrubber.h"

#include <gtest/gtest.h>

#include "common/disk/mem_device.h"
#include "common/reactor/reactor.h"
#include "common/testing/manual_clock.h"
#include "common/wire/osd.pb.h"
#include "osd/store/object_store.h"
#include "tests/crash/store_harness.h"
#include "tests/unit/osd/service/fake_call.h"

namespace weir::osd {
namespace {

constexpr uint64_t kBytes = 64 << 20;

class ScrubberTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(MakeStore(device_, {}).ok());
    reactor_->Start();
    store_ = *OpenStore(device_, {.loop = reactor_.get()});
    SchedulerConfig config;
    config.guarantee = GuaranteeKind::kNone;
    RunInLoopAndWait(*reactor_, [&] {
      dispatcher_ = std::make_unique<Dispatcher>(*store_, clock_, *reactor_, config);
    });
    scrubber_ =
        std::make_unique<Scrubber>(std::vector<Scrubber::Disk>{{dispatcher_.get(), store_.get()}},
                                   [this](const std::string& line) { reports_.push_back(line); });
    Prng prng(3);
    for (uint64_t i = 0; i < 3; ++i) {
      ASSERT_TRUE(
          testing::WriteSync(*store_, Id(i), 0, testing::RandomBytes(prng, 1'000'000)).ok());
    }
  }
  void TearDown() override {
    scrubber_.reset();
    RunInLoopAndWait(*reactor_, [&] { dispatcher_.reset(); });
    store_.reset();
  }
  static ObjectId Id(uint64_t i) { return {InodeId(10 + i), i}; }
  ScrubProgress Scrub() {
    scrubber_->Start();
    scrubber_->Wait();
    return scrubber_->Progress();
  }
  void FlipByteOf(ObjectId id, uint64_t offset) {
    const uint64_t at = store_->LbaHint(id, offset) / kBlockSize * kBlockSize;
    Buffer block = Buffer::Aligned(kBlockSize);
    ASSERT_TRUE(device_.Read(at, block).ok());
    block.data()[17] ^= 1;
    ASSERT_TRUE(device_.Write(at, block).ok());
  }

  MemDevice device_{kBytes};
  weir::testing::ManualClock clock_;
  std::unique_ptr<Reactor> reactor_ = *Reactor::Create({});
  std::unique_ptr<ObjectStore> store_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::vector<std::string> reports_;
  std::unique_ptr<Scrubber> scrubber_;
};

TEST_F(ScrubberTest, ReadsEveryByteOfEveryObject) {
  const ScrubProgress progress = Scrub();
  EXPECT_FALSE(progress.running);
  EXPECT_EQ(progress.error, "");
  EXPECT_EQ(progress.runs, 1u);
  EXPECT_EQ(progress.objects, 3u);
  EXPECT_EQ(progress.objects_total, 3u);
  EXPECT_EQ(progress.bytes, 3'000'000u);
  EXPECT_EQ(progress.damaged_blocks, 0u);
  EXPECT_EQ(Scrub().runs, 2u);
}

TEST_F(ScrubberTest, NamesEveryDamagedBlockAndGoesOn) {
  FlipByteOf(Id(0), 0);
  FlipByteOf(Id(1), 600'000);
  FlipByteOf(Id(1), 700'000);
  const ScrubProgress progress = Scrub();
  EXPECT_EQ(progress.damaged_blocks, 3u);
  EXPECT_EQ(progress.objects, 3u);
  EXPECT_EQ(progress.runs, 1u);
  ASSERT_EQ(reports_.size(), 3u);
  EXPECT_NE(reports_[1].find("block 146 of object 11.1"), std::string::npos) << reports_[1];
  EXPECT_GT(store_->Stats().checksum_errors, 0u);
}

TEST_F(ScrubberTest, DoesNotStartAfterItsEndAndAnswersRequests) {
  auto answer = std::make_shared<std::optional<testing::Answer>>();
  wire::ScrubRequest request;
  request.set_action(wire::ScrubRequest::START);
  testing::FakeCall start(wire::OSD_SCRUB, 1, request.SerializeAsString(), {}, answer);
  scrubber_->Handle(start, 3);
  ASSERT_TRUE(answer->has_value());
  EXPECT_TRUE((*answer)->status.ok());
  scrubber_->End();
  scrubber_->Start();
  EXPECT_FALSE(scrubber_->Progress().running);
}

}  // namespace
}  // namespace weir::osd
