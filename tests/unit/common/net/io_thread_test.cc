#include "common/net/io_thread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "common/net/transport.h"

namespace weir::net {
namespace {

class IoThreadTest : public ::testing::Test {
 protected:
  void SetUp() override { loop_.Start(); }
  // Waits until everything posted before has run.
  void Settle() {
    std::promise<void> done;
    loop_.Post([&done] { done.set_value(); });
    done.get_future().wait();
  }
  IoThread loop_;
};

TEST_F(IoThreadTest, AnIdleLoopBorrowsTheCaller) {
  // The loop is idle only after the task of Settle has returned: until then, a post is right too.
  std::thread::id ran_on;
  while (ran_on != std::this_thread::get_id()) {
    std::promise<std::thread::id> ran;
    loop_.RunOrPost([&ran] { ran.set_value(std::this_thread::get_id()); });
    ran_on = ran.get_future().get();
  }
}

TEST_F(IoThreadTest, ABusyLoopDoesNot) {
  std::promise<void> entered, leave;
  loop_.Post([&] {
    entered.set_value();
    leave.get_future().wait();
  });
  entered.get_future().wait();
  std::promise<std::thread::id> ran;
  loop_.RunOrPost([&ran] { ran.set_value(std::this_thread::get_id()); });
  leave.set_value();
  EXPECT_NE(ran.get_future().get(), std::this_thread::get_id());
}

TEST_F(IoThreadTest, ATaskOnABorrowedThreadDoesNotNest) {
  IoThread other;
  other.Start();
  std::promise<std::thread::id> inner;
  std::thread::id outer;
  while (outer != std::this_thread::get_id()) {
    std::promise<std::thread::id> ran;
    loop_.RunOrPost([&] { ran.set_value(std::this_thread::get_id()); });
    outer = ran.get_future().get();
  }
  std::atomic<bool> asked{false};
  loop_.RunOrPost([&] {
    if (std::this_thread::get_id() != outer) return;
    asked = true;
    other.RunOrPost([&inner] { inner.set_value(std::this_thread::get_id()); });
  });
  Settle();
  if (asked) {
    EXPECT_NE(inner.get_future().get(), outer);
  }
}

TEST_F(IoThreadTest, WhatWouldNestRunsHereWhenTheCallerSaysWhere) {
  const auto owner = std::make_shared<IoThread>();
  owner->Start();
  const std::thread::id here = std::this_thread::get_id();
  std::thread::id outer, inner;
  thread_local bool inside = false;
  bool nested = false;
  // Both loops are idle at some time.
  while (outer != here || inner != here) {
    std::promise<void> outer_ran, inner_ran;
    {
      const AnswerHere scope;
      loop_.RunOrPost([&] {
        outer = std::this_thread::get_id();
        inside = true;
        owner->RunOrPost(
            [&] {
              nested |= inside;
              inner = std::this_thread::get_id();
              inner_ran.set_value();
            },
            owner);
        inside = false;
        outer_ran.set_value();
      });
      outer_ran.get_future().wait();
    }
    inner_ran.get_future().wait();
  }
  EXPECT_FALSE(nested) << "the caller's task was not over";
}

TEST_F(IoThreadTest, WorkThatMayBlockWaitsUntilTheCallerIsThrough) {
  int ran = 0;
  std::function<void()> work = [&] { ++ran; };
  EXPECT_FALSE(AnswerHere::Afterwards(work));
  {
    const AnswerHere scope;
    {
      const AnswerHere inner;
      EXPECT_TRUE(AnswerHere::Afterwards(work));
    }
    work = [&] { ran += 10; };
    EXPECT_FALSE(AnswerHere::Afterwards(work)) << "one at a time";
    EXPECT_EQ(ran, 0);
  }
  EXPECT_EQ(ran, 1);
  EXPECT_NE(work, nullptr) << "still the caller's";
}

TEST_F(IoThreadTest, OneTaskAtATimeAndEachOnceWhoeverRunsThem) {
  constexpr int kThreads = 4, kEach = 20000;
  int count = 0;  // deliberately plain: the sanitizer sees two tasks at once, and so does the sum
  std::vector<std::vector<int>> seen(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        const auto task = [&, t, i] {
          ++count;
          seen[t].push_back(i);
        };
        if (i % 3 == 0) {
          loop_.Post(task);
        } else {
          loop_.RunOrPost(task);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Settle();
  loop_.Stop();
  EXPECT_EQ(count, kThreads * kEach);
  for (const std::vector<int>& order : seen) {
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end())) << "posted in order, run in order";
  }
}

TEST_F(IoThreadTest, AStoppedLoopDropsWhatItIsAsked) {
  loop_.Stop();
  bool ran = false;
  loop_.RunOrPost([&ran] { ran = true; });
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace weir::net
