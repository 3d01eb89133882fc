// Background I/O beside a foreground that keeps the device to itself. The foreground's operation is
// held for the whole test: whatever gets past it did not wait for it.
#include "osd/io/background_gate.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>
#include <thread>

#include "common/reactor/reactor.h"
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
    reactor_->Start();
    InLoop([&] {
      dispatcher_ = std::make_unique<Dispatcher>(store_, SystemClock::Get(), *reactor_, DepthOne());
      dispatcher_->Apply(DepthOne(), {rest, spec});
    });
    gate_.emplace(*dispatcher_, SystemClock::Get(), kSystemCompaction, kNever);
  }
  ~BackgroundGateTest() override {
    gate_->Close();
    InLoop([&] {
      store_.ReleaseAll();
      dispatcher_.reset();
    });
  }
  void InLoop(const Loop::Task& task) { RunInLoopAndWait(*reactor_, task); }
  void FillTheDevice() {
    InLoop([&] { dispatcher_->Submit(std::make_unique<Foreground>()); });
  }
  void ReleaseAll() {
    InLoop([&] { store_.ReleaseAll(); });
  }
  uint64_t Outstanding() {
    uint64_t outstanding = 0;
    InLoop([&] { outstanding = dispatcher_->outstanding(); });
    return outstanding;
  }
  DispatcherStats Stats() {
    DispatcherStats stats;
    InLoop([&] { stats = dispatcher_->Stats(false); });
    return stats;
  }
  std::future<void*> Ask(IoMeter::Io io = {.write = true, .bytes = 4096}) {
    return std::async(std::launch::async, [this, io] { return gate_->Begin(io); });
  }
  uint64_t Served() {
    for (const auto& one : Stats().classes) {
      if (one.counters.id == kSystemCompaction) return one.counters.served_bytes;
    }
    return 0;
  }
  bool Queued() {
    for (const auto& one : Stats().classes) {
      if (one.counters.id == kSystemCompaction) return one.counters.queued_ops > 0;
    }
    return false;
  }

  // Soon, if all is well; a test that waits for it must not wait for ever.
  bool IsQueued() {
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (!Queued()) {
      if (std::chrono::steady_clock::now() > end) {
        gate_->SetUrgent(true);  // lets go of who waits for it
        return false;
      }
      std::this_thread::yield();
    }
    return true;
  }

  testing::HeldObjectStore store_;
  std::unique_ptr<Reactor> reactor_ = *Reactor::Create({});
  std::unique_ptr<Dispatcher> dispatcher_;
  std::optional<BackgroundGate> gate_;
};

TEST_F(BackgroundGateTest, OnAFreeDeviceItGoesThroughTheSchedulerAndIsCounted) {
  void* ticket = gate_->Begin({.write = true, .bytes = 4096});
  EXPECT_EQ(Outstanding(), 1u);
  gate_->End(ticket);
  EXPECT_EQ(Outstanding(), 0u);
  EXPECT_EQ(Served(), 4096u);
}

TEST_F(BackgroundGateTest, ItWaitsForAFullDeviceAndGoesWhenThereIsRoom) {
  FillTheDevice();
  std::future<void*> asked = Ask();
  ASSERT_TRUE(IsQueued());
  EXPECT_EQ(asked.wait_for(0s), std::future_status::timeout);
  ReleaseAll();
  gate_->End(asked.get());
  EXPECT_EQ(Served(), 4096u);
}

TEST_F(BackgroundGateTest, TheFloorIsServedHoweverFullTheDeviceIs) {
  FillTheDevice();
  gate_->SetFloor(kFast);
  for (int i = 0; i < 3; ++i) gate_->End(gate_->Begin({.write = true, .bytes = 4096}));
  EXPECT_EQ(Served(), 3 * 4096u);
}

TEST_F(BackgroundGateTest, WhatTheForegroundWaitsForGoesAtOnce) {
  FillTheDevice();
  gate_->End(gate_->Begin({.write = true, .bytes = 4096, .offset = 0, .urgent = true}));
  std::future<void*> asked = Ask();
  ASSERT_TRUE(IsQueued());
  gate_->SetUrgent(true);
  gate_->End(asked.get());
  EXPECT_EQ(Served(), 2 * 4096u);
}

TEST_F(BackgroundGateTest, WhatWentUrgentlyIsNoDebtToTheFloor) {
  FillTheDevice();
  gate_->End(gate_->Begin({.write = true, .bytes = 4096, .offset = 0, .urgent = true}));
  gate_->SetFloor(kFast);
  std::future<void*> asked = Ask();
  const bool came = asked.wait_for(60s) == std::future_status::ready;
  EXPECT_TRUE(came);
  if (!came) gate_->SetUrgent(true);
  gate_->End(asked.get());
}

TEST_F(BackgroundGateTest, ClosingLetsWhoWaitsGoAndKnowsNobodyLater) {
  FillTheDevice();
  std::future<void*> asked = Ask();
  ASSERT_TRUE(IsQueued());
  auto closed = std::async(std::launch::async, [this] { gate_->Close(); });
  void* ticket = asked.get();
  EXPECT_EQ(closed.wait_for(0s), std::future_status::timeout);  // its I/O is under way
  gate_->End(ticket);
  closed.get();
  EXPECT_EQ(gate_->Begin({.write = true, .bytes = 4096}), nullptr);
  EXPECT_EQ(Outstanding(), 1u);  // the foreground's
}

}  // namespace
}  // namespace weir::osd
