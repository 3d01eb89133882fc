#include "osd/store/commit_queue.h"

#include <gtest/gtest.h>

#include <future>

#include "common/disk/faulty_device.h"
#include "common/disk/mem_device.h"
#include "common/kv/mem_kv_store.h"
#include "common/testing/manual_loop.h"

namespace weir::osd {
namespace {

using namespace std::chrono_literals;

class CommitQueueTest : public ::testing::Test {
 protected:
  // The future holds the item's status once it is durable.
  std::future<Status> Push(const std::string& key, uint64_t data_stamp = 0,
                           Duration patience = 0ns) {
    auto promise = std::make_shared<std::promise<Status>>();
    CommitQueue::Item item;
    item.batch.Put(key, "value");
    item.data_stamp = data_stamp;
    item.patience = patience;
    item.done = [promise](const Status& status) { promise->set_value(status); };
    queue_.Push(std::move(item));
    return promise->get_future();
  }

  FaultyDevice device_{std::make_unique<MemDevice>(1 << 20)};
  MemKvStore kv_;
  CommitQueue queue_{kv_, device_};
};

TEST_F(CommitQueueTest, PatientItemsShareTheCommitOfOneThatIsNot) {
  std::future<Status> first = Push("a", 0, 1h), second = Push("b", 0, 1h);
  EXPECT_EQ(queue_.commits(), 0u);
  EXPECT_TRUE(Push("c").get().ok());
  EXPECT_TRUE(first.get().ok());
  EXPECT_TRUE(second.get().ok());
  EXPECT_EQ(queue_.commits(), 1u);
  EXPECT_EQ(queue_.committed_items(), 3u);
}

TEST_F(CommitQueueTest, PatienceEndsByItself) {
  EXPECT_TRUE(Push("a", 0, 1ms).get().ok());
}

TEST_F(CommitQueueTest, StoppingWaitsForNobodysPatience) {
  std::future<Status> patient = Push("a", 0, 1h);
  queue_.Stop();
  EXPECT_TRUE(patient.get().ok());
  EXPECT_TRUE(kv_.Get("a").ok());
}

TEST_F(CommitQueueTest, DataIsFlushedBeforeTheRecordThatPointsAtIt) {
  ASSERT_TRUE(device_.Write(0, Buffer::AlignedZeros(kBlockSize)).ok());
  EXPECT_TRUE(Push("a", device_.completed_writes()).get().ok());
  EXPECT_EQ(device_.durable_writes(), 1u);
}

TEST_F(CommitQueueTest, AFailedFlushFailsWhatDependsOnItForGood) {
  ASSERT_TRUE(device_.Write(0, Buffer::AlignedZeros(kBlockSize)).ok());
  const uint64_t stamp = device_.completed_writes();
  device_.FailAt(0);
  EXPECT_FALSE(device_.Flush().ok());  // somebody else's
  device_.ClearFaults();
  EXPECT_EQ(Push("a", stamp).get().code(), ErrorCode::kIo);
  EXPECT_TRUE(queue_.failed());
  EXPECT_EQ(kv_.Get("a").code(), ErrorCode::kNotFound);
}

// One hop back for all of them.
TEST_F(CommitQueueTest, TheCallbacksOfAGroupAreOneTaskOfTheLoop) {
  weir::testing::ManualLoop loop(SystemClock::Get());
  std::vector<std::string> done;
  CommitQueue queue(kv_, device_, &loop, [] {});
  for (const char* key : {"a", "b"}) {
    CommitQueue::Item item;
    item.batch.Put(key, "value");
    item.done = [&done, key](const Status&) { done.emplace_back(key); };
    queue.Push(std::move(item));
  }
  EXPECT_TRUE(queue.Work());
  EXPECT_TRUE(kv_.Get("b").ok());
  EXPECT_TRUE(done.empty());
  EXPECT_EQ(loop.tasks(), 1u);
  loop.Run();
  EXPECT_EQ(done, (std::vector<std::string>{"a", "b"}));
}

// Its owner does what the thread would do, when it likes.
TEST_F(CommitQueueTest, WithoutThreadsNothingHappensButInWork) {
  int wakes = 0;
  std::vector<std::string> done;
  CommitQueue queue(kv_, device_, nullptr, [&] { ++wakes; });
  for (const char* key : {"a", "b"}) {
    CommitQueue::Item item;
    item.batch.Put(key, "value");
    item.patience = 1h;
    item.done = [&done, key](const Status& status) { done.push_back(key + status.message()); };
    queue.Push(std::move(item));
  }
  EXPECT_EQ(wakes, 2);
  EXPECT_EQ(kv_.Get("a").code(), ErrorCode::kNotFound);
  EXPECT_TRUE(queue.Work());
  EXPECT_EQ(done, (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(queue.Work());
}

}  // namespace
}  // namespace weir::osd
