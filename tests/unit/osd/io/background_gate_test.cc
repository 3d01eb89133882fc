// Background I/O beside a foreground that keeps the device to itself. The foreground's operation is
// held for the whole test: whatever gets past it did not wait for it.
#include "osd/io/background_gate.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "osd/io/dispatcher.h"
#include "tests/unit/osd/io/held_object_store.h"

namespace weir::osd {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kFast = 1ull << 40;
constexpr uint64_t kNever = 1;  // byte per second

SchedulerConfig DepthOne() {
  SchedulerConfig base;
  base.depth = 1;
  base.token_rate = 1ull << 40;
  return *ApplyProfile("noqos", base);
}

class Foreground final : public ObjectOp {
 public:
  Foreground() {
    kind = ObjectOpKind::kRead;
    object = {InodeId(1), 0};
    length = 4096;
    class_id = kBestEffort;
  }
  void Done(ObjectOpResult) override {}
};

class BackgroundGateTest : public ::testing::Test {
 protected:
  BackgroundGateTest() {
    ClassSpec spec;
    spec.id = kSystemCompaction;
    spec.name = "system.compaction";
    ClassSpec rest;
    rest.name = "best-effort";
    dispatcher_.Apply(DepthOne(), {rest, spec});
  }
  ~BackgroundGateTest() override {
    gate_.Close();
    store_.ReleaseAll();
  }
  void FillTheDevice() { dispatcher_.Submit(std::make_unique<Foreground>()); }
  std::future<void*> Ask(IoMeter::Io io = {.write = true, .bytes = 4096}) {
    return std::async(std::launch::async, [this, io] { return gate_.Begin(io); });
  }
  uint64_t Served() {
    for (const auto& one : dispatcher_.Stats(false).classes) {
      if (one.counters.id == kSystemCompaction) return one.counters.served_bytes;
    }
    return 0;
  }
  bool Queued() {
    for (const auto& one : dispatcher_.Stats(false).classes) {
      if (one.counters.id == kSystemCompaction) return one.counters.queued_ops > 0;
    }
    return false;
  }

  // Soon, if all is well; a test that waits for it must not wait for ever.
  bool IsQueued() {
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (!Queued()) {
      if (std::chrono::steady_clock::now() > end) {
        gate_.SetUrgent(true);  // lets go of who waits for it
        return false;
      }
      std::this_thread::yield();
    }
    return true;
  }

  testing::HeldObjectStore store_;
  Dispatcher dispatcher_{store_, SystemClock::Get(), DepthOne(), {}};
  BackgroundGate gate_{dispatcher_, SystemClock::Get(), kSystemCompaction, kNever};
};

TEST_F(BackgroundGateTest, OnAFreeDeviceItGoesThroughTheSchedulerAndIsCounted) {
  void* ticket = gate_.Begin({.write = true, .bytes = 4096});
  EXPECT_EQ(dispatcher_.outstanding(), 1u);
  gate_.End(ticket);
  EXPECT_EQ(dispatcher_.outstanding(), 0u);
  EXPECT_EQ(Served(), 4096u);
}

TEST_F(BackgroundGateTest, ItWaitsForAFullDeviceAndGoesWhenThereIsRoom) {
  FillTheDevice();
  std::future<void*> asked = Ask();
  ASSERT_TRUE(IsQueued());
  EXPECT_EQ(asked.wait_for(0s), std::future_status::timeout);
  store_.ReleaseAll();
  gate_.End(asked.get());
  EXPECT_EQ(Served(), 4096u);
}

TEST_F(BackgroundGateTest, TheFloorIsServedHoweverFullTheDeviceIs) {
  FillTheDevice();
  gate_.SetFloor(kFast);
  for (int i = 0; i < 3; ++i) gate_.End(gate_.Begin({.write = true, .bytes = 4096}));
  EXPECT_EQ(Served(), 3 * 4096u);
}

TEST_F(BackgroundGateTest, WhatTheForegroundWaitsForGoesAtOnce) {
  FillTheDevice();
  gate_.End(gate_.Begin({.write = true, .bytes = 4096, .offset = 0, .urgent = true}));
  std::future<void*> asked = Ask();
  ASSERT_TRUE(IsQueued());
  gate_.SetUrgent(true);
  gate_.End(asked.get());
  EXPECT_EQ(Served(), 2 * 4096u);
}

TEST_F(BackgroundGateTest, WhatWentUrgentlyIsNoDebtToTheFloor) {
  FillTheDevice();
  gate_.End(gate_.Begin({.write = true, .bytes = 4096, .offset = 0, .urgent = true}));
  gate_.SetFloor(kFast);
  std::future<void*> asked = Ask();
  const bool came = asked.wait_for(60s) == std::future_status::ready;
  EXPECT_TRUE(came);
  if (!came) gate_.SetUrgent(true);
  gate_.End(asked.get());
}

TEST_F(BackgroundGateTest, ClosingLetsWhoWaitsGoAndKnowsNobodyLater) {
  FillTheDevice();
  std::future<void*> asked = Ask();
  ASSERT_TRUE(IsQueued());
  auto closed = std::async(std::launch::async, [this] { gate_.Close(); });
  void* ticket = asked.get();
  EXPECT_EQ(closed.wait_for(0s), std::future_status::timeout);  // its I/O is under way
  gate_.End(ticket);
  closed.get();
  EXPECT_EQ(gate_.Begin({.write = true, .bytes = 4096}), nullptr);
  EXPECT_EQ(dispatcher_.outstanding(), 1u);  // the foreground's
}

}  // namespace
}  // namespace weir::osd
