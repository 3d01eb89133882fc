// Goal: whoever may be kept waiting commits what he prepared himself, whoever may not leaves it to
// the commit thread, and between them nothing is lost, written twice or written at the same time.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "common/kv/mem_kv_store.h"
#include "tests/unit/mds/mds_fixture.h"

namespace weir::mds {
namespace {

// Knows who writes, and that nobody else does meanwhile.
class WatchedStore final : public KvStore {
 public:
  Result<std::string> Get(std::string_view key) override { return below.Get(key); }
  Status Apply(const WriteBatch& batch, Durability durability) override {
    EXPECT_FALSE(busy.exchange(true)) << "two batches at once";
    if (std::this_thread::get_id() == watched) ++by_watched;
    Status status = below.Apply(batch, durability);
    busy = false;
    return status;
  }
  std::unique_ptr<Iterator> NewIterator() override { return below.NewIterator(); }
  MemKvStore below;
  std::atomic<bool> busy{false};
  std::thread::id watched;
  std::atomic<int> by_watched{0};
};

thread_local std::function<void()> left_to_do;

// As a thread of a mount does: what it may block for comes when the request has been handed over.
bool Here(std::function<void()>& commit) {
  left_to_do = std::move(commit);
  return true;
}

class CommitHereTest : public ::testing::Test {
 protected:
  void Start(std::function<bool(std::function<void()>&)> commit_here) {
    MdsOptions options;
    options.background = false;
    options.ns.commit_here = std::move(commit_here);
    auto opened = MdsCore::Open(store, clock, osds, options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    core = *std::move(opened);
  }
  // Prepares one change; the future has its end.
  std::future<Status> Change(const std::string& key) {
    auto end = std::make_shared<std::promise<Status>>();
    core->names().Execute(
        {},
        [key](Operation& op) -> Result<std::string> {
          op.txn.Put(key, "x");
          return std::string();
        },
        [end](const Status& status, const std::string&) { end->set_value(status); });
    return end->get_future();
  }

  WatchedStore store;
  testing::ManualClock clock;
  RecordingOsds osds;
  std::unique_ptr<MdsCore> core;
};

TEST_F(CommitHereTest, WhoeverMayBlockWritesHisOwn) {
  Start(Here);
  store.watched = std::this_thread::get_id();
  // Once would do, were the commit thread not free to wake up for nothing and be quicker.
  for (int i = 0; store.by_watched == 0; ++i) {
    std::future<Status> end = Change("z" + std::to_string(i));
    ASSERT_NE(left_to_do, nullptr);
    std::exchange(left_to_do, nullptr)();
    EXPECT_TRUE(end.get().ok());
  }
}

TEST_F(CommitHereTest, WhatSomebodyLeftAtTheEndIsWritten) {
  Start(Here);
  std::future<Status> end = Change("z");
  const std::function<void()> late = std::exchange(left_to_do, nullptr);
  core.reset();
  EXPECT_TRUE(end.get().ok());
}

TEST_F(CommitHereTest, AllIsWrittenOnceWhoeverWrites) {
  constexpr uint64_t kThreads = 4, kEach = 500, kTotal = kThreads * kEach;
  std::atomic<uint32_t> turn{0};
  Start([&](std::function<void()>& commit) { return turn++ % 3 != 0 && Here(commit); });
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < kEach; ++i) {
        std::future<Status> end = Change("z" + std::to_string(t) + "." + std::to_string(i));
        if (left_to_do != nullptr) std::exchange(left_to_do, nullptr)();
        EXPECT_TRUE(end.get().ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(core->names().committed_operations(), kTotal);
  for (uint64_t t = 0; t < kThreads; ++t) {
    for (uint64_t i = 0; i < kEach; ++i) {
      EXPECT_TRUE(store.Get("z" + std::to_string(t) + "." + std::to_string(i)).ok());
    }
  }
}

}  // namespace
}  // namespace weir::mds
