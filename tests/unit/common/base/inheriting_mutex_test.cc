// Who holds a lock is as urgent as who waits for it.
#include "common/base/inheriting_mutex.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "common/base/short_turns.h"

namespace weir {
namespace {

// As the kernel orders threads; below 0: ahead of all that take turns.
int UrgencyOf(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(file, line);
  std::istringstream fields(line.substr(line.rfind(')') + 2));
  std::string field;
  for (int i = 3; i <= 18; ++i) fields >> field;
  return std::stoi(field);
}

TEST(InheritingMutexTest, LendsTheUrgencyOfWhoWaits) {
  InheritingMutex mutex;
  const pid_t holder = gettid();
  const int usual = UrgencyOf(holder);
  std::atomic<bool> may_run_ahead{false}, asked{false};
  mutex.lock();
  std::thread waiter([&] {
    RunAheadOfTurns();
    may_run_ahead = (sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) == SCHED_FIFO;
    asked = true;
    const std::lock_guard lock(mutex);
  });
  while (!asked) std::this_thread::yield();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  int lent = usual;
  while (may_run_ahead && lent >= 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
    lent = UrgencyOf(holder);
  }
  mutex.unlock();
  waiter.join();
  if (!may_run_ahead) GTEST_SKIP() << "no right to run ahead of turns here";
  EXPECT_GE(usual, 0);
  EXPECT_LT(lent, 0) << "somebody urgent waits for a lock whose holder waits for its turn";
  EXPECT_EQ(UrgencyOf(holder), usual) << "it is lent, not given";
}

TEST(InheritingMutexTest, ServesConditionVariables) {
  InheritingMutex mutex;
  std::condition_variable changed;
  bool told = false;
  std::thread teller([&] {
    const std::lock_guard lock(mutex);
    told = true;
    changed.notify_one();
  });
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return told; });
  lock.unlock();
  teller.join();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

}  // namespace
}  // namespace weir
