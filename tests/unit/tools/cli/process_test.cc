#include "tools/cli/process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <thread>

#include "tools/cli/files.h"

namespace weir::cli {
namespace {

using std::chrono::seconds;

TEST(ProcessTest, ARecycledPidIsNotTheProcessWeKnew) {
  const ProcessId self = Identify(getpid());
  EXPECT_TRUE(IsAlive(self));
  EXPECT_FALSE(IsAlive({.pid = self.pid, .start_time = self.start_time + 1}));
  EXPECT_FALSE(IsAlive({}));
}

TEST(ProcessTest, ADaemonHasASessionOfItsOwnAndDiesWhenTold) {
  const auto daemon = StartDaemon({"sleep", "1000"}, {});
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  EXPECT_TRUE(IsAlive(*daemon));
  EXPECT_EQ(getsid(daemon->pid), daemon->pid);
  Signal(*daemon, SIGKILL);
  EXPECT_TRUE(WaitUntilGone(*daemon, seconds(60)));
  EXPECT_FALSE(IsAlive(*daemon));
}

char StateOf(pid_t pid) {
  const std::string line = *ReadFile("/proc/" + std::to_string(pid) + "/stat");
  return line[line.rfind(')') + 2];
}

// As of a killed daemon that still waits for its disk: the lock on its directory is not free yet.
TEST(ProcessTest, LivesUntilItsLastThreadIsGone) {
  const auto process = StartDaemon({"python3", "-c",
                                    "import ctypes, threading, time\n"
                                    "threading.Thread(target=time.sleep, args=(1000,)).start()\n"
                                    "ctypes.CDLL(None).pthread_exit(None)"},
                                   {});
  ASSERT_TRUE(process.ok()) << process.status();
  while (StateOf(process->pid) != 'Z') std::this_thread::yield();
  EXPECT_TRUE(IsAlive(*process));
  Signal(*process, SIGKILL);
  EXPECT_TRUE(WaitUntilGone(*process, seconds(60)));
}

TEST(ProcessTest, RunLoggedGivesTheExitStatusAndKeepsTheOutput) {
  const std::string log = ::testing::TempDir() + "/weir_process_test.log";
  unlink(log.c_str());
  EXPECT_EQ(RunLogged({"sh", "-c", "echo one; echo two >&2; exit 3"}, log), 3);
  EXPECT_EQ(*ReadFile(log), "one\ntwo\n");
  EXPECT_EQ(TailOf(log, 1), "\n  two");
  EXPECT_EQ(RunQuietly({"sh", "-c", "kill -9 $$"}), 128 + SIGKILL);
  EXPECT_EQ(RunQuietly({"/there/is/no/such/program"}), 127);
  unlink(log.c_str());
}

TEST(ProcessTest, WhatIsRunHasNoSignalBlocked) {
  sigset_t set, before;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, &before);
  EXPECT_EQ(RunQuietly({"sh", "-c", "kill -TERM $$; exit 3"}), 128 + SIGTERM);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(ProcessTest, RunAttachedSharesStdoutAndGivesTheExitStatus) {
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(RunAttached({"sh", "-c", "echo here; exit 3"}), 3);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "here\n");
  EXPECT_EQ(RunAttached({"/there/is/no/such/program"}), 127);
}

}  // namespace
}  // namespace weir::cli
