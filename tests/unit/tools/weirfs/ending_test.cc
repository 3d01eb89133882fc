// Goal: who unmounts waits for whoever serves that mount, for nobody else, and hears the worst.
// Method: each that serves is a child, as what it says last and that it ends are two things.
#include "tools/weirfs/ending.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <thread>

namespace weir::weirfs {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr uid_t kSomebody = 65534;

// No device has such a number, and no other test this one.
std::string DeviceOfTest() {
  return "test:" + std::to_string(getpid());
}

// More than wait for a socket to accept them.
constexpr int kMany = 260;

bool Hear(int pipe_end) {
  char byte = 0;
  return read(pipe_end, &byte, 1) == 1;
}

sigset_t BlockedDialled() {
  sigset_t dialled;
  sigemptyset(&dialled);
  sigaddset(&dialled, Ending::kDialled);
  pthread_sigmask(SIG_BLOCK, &dialled, nullptr);
  return dialled;
}

// A process that serves from when it is made, and does `last` before it ends.
class Server {
 public:
  explicit Server(std::function<void(Ending&)> last, uid_t user = geteuid()) {
    const std::string device = DeviceOfTest();
    int ready[2], end[2];
    if (pipe(ready) != 0 || pipe(end) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      close(end[1]);
      const sigset_t dialled = BlockedDialled();
      Ending ending;
      if (setuid(user) == 0) ending.Announce(device);
      std::thread([&] {
        for (int signal = 0; sigwait(&dialled, &signal) == 0;) ending.Accept();
      }).detach();
      close(ready[1]);
      Hear(end[0]);
      last(ending);
      _exit(0);
    }
    close(ready[1]);
    close(end[0]);
    Hear(ready[0]);
    close(ready[0]);
    end_ = end[1];
  }
  ~Server() {
    End();
    if (lives_on_) kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  void LivesOn() { lives_on_ = true; }
  void End() {
    if (end_ < 0) return;
    const char byte = 0;
    (void)!write(end_, &byte, 1);  // a server made later has this end, too
    close(end_);
    end_ = -1;
  }

 private:
  pid_t pid_ = -1;
  int end_ = -1;
  bool lives_on_ = false;
};

void Stored(Ending& ending) {
  ending.Tell(Status::Ok());
}

void Lost(Ending& ending) {
  ending.Tell({ErrorCode::kIo, "a disk was away"});
}

TEST(EndingTest, WhereNobodyServesNobodyIsWaitedFor) {
  EXPECT_TRUE(EndingWait(DeviceOfTest(), geteuid()).Wait(1h).ok());
}

TEST(EndingTest, WhoeverServesIsWaitedFor) {
  Server server(Stored);
  EndingWait wait(DeviceOfTest(), geteuid());
  EXPECT_EQ(wait.Wait(1ms).code(), ErrorCode::kTimedOut);
  server.End();
  EXPECT_TRUE(wait.Wait(1h).ok());
}

TEST(EndingTest, WhoeverGoesOnIsWaitedForToo) {
  Server first(Stored);
  EndingWait wait(DeviceOfTest(), geteuid());
  Server successor(Lost);
  first.End();
  wait.LookAgain();
  successor.End();
  EXPECT_EQ(wait.Wait(1h).message(), "a disk was away");
}

TEST(EndingTest, ThatHasToldIsNotTheEnd) {
  Server server([](Ending& ending) {
    Stored(ending);
    pause();
  });
  server.LivesOn();
  EndingWait wait(DeviceOfTest(), geteuid());
  server.End();
  EXPECT_EQ(wait.Wait(1ms).code(), ErrorCode::kTimedOut);
}

TEST(EndingTest, TheWorstOfSeveralIsHeard) {
  Server first(Stored), second(Lost), third(Stored);
  EndingWait wait(DeviceOfTest(), geteuid());
  for (Server* server : {&first, &second, &third}) server->End();
  EXPECT_EQ(wait.Wait(1h).message(), "a disk was away");
}

// A user's weirfs may be any program, and root reads what it says on a terminal.
TEST(EndingTest, WhatIsSaidIsShortAndPlain) {
  Server server([](Ending& ending) {
    ending.Tell({ErrorCode::kIo, "a\x1b]0;b\nc\xc2\x9b" + std::string(1 << 16, 'x')});
    pause();
  });
  server.LivesOn();
  EndingWait wait(DeviceOfTest(), geteuid());
  server.End();
  const std::string said = wait.Wait(1h).message();
  EXPECT_THAT(said, StartsWith("a?]0;b?c??xxx"));
  EXPECT_EQ(said.size(), 4096);
}

TEST(EndingTest, WhoeverIsKilledHasNotStored) {
  Server server([](Ending&) {});
  EndingWait wait(DeviceOfTest(), geteuid());
  server.End();
  EXPECT_THAT(wait.Wait(1h).message(), HasSubstr("ended before it had stored all of it"));
}

TEST(EndingTest, WhoHasGoneIsInNobodysWay) {
  Server server(Stored);
  for (int i = 0; i < kMany; ++i) EndingWait(DeviceOfTest(), geteuid());
  EndingWait wait(DeviceOfTest(), geteuid());
  EXPECT_EQ(wait.Wait(1ms).code(), ErrorCode::kTimedOut);
  server.End();
  EXPECT_TRUE(wait.Wait(1h).ok());
}

// Does `what` as a stranger, and stays.
class Stranger {
 public:
  explicit Stranger(const std::function<bool()>& what) {
    int ready[2];
    if (pipe(ready) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      const bool done = setuid(kSomebody) == 0 && what() && write(ready[1], "x", 1) == 1;
      close(ready[1]);
      if (done) pause();
      _exit(0);
    }
    close(ready[1]);
    EXPECT_TRUE(Hear(ready[0])) << "the stranger could not do it";
    close(ready[0]);
  }
  ~Stranger() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

 private:
  pid_t pid_ = -1;
};

TEST(EndingTest, AStrangerIsToldNothingAndIsInNobodysWay) {
  if (geteuid() != 0) GTEST_SKIP() << "root alone can be somebody else";
  Server server(Stored);
  Stranger stranger([device = DeviceOfTest()] {
    for (int i = 0; i < kMany; ++i) new EndingWait(device, 0);
    const std::string told = EndingWait(device, 0).Wait(1h).message();
    return told == "only root and who has mounted it hear whether all of it is stored";
  });
  EndingWait wait(DeviceOfTest(), 0);
  EXPECT_EQ(wait.Wait(1ms).code(), ErrorCode::kTimedOut);
  server.End();
  EXPECT_TRUE(wait.Wait(1h).ok());
}

TEST(EndingTest, StrangersFullSocketsAreNobodysAndTakeNoTime) {
  if (geteuid() != 0) GTEST_SKIP() << "root alone can be somebody else";
  constexpr int kSockets = 30;
  Stranger stranger([device = DeviceOfTest()] {
    BlockedDialled();
    for (int i = 0; i < kSockets; ++i) (new Ending)->Announce(device);
    for (int i = 0; i < kMany; ++i) EndingWait(device, kSomebody);
    return true;
  });
  const TimePoint start = SystemClock::Get().Now();
  EXPECT_TRUE(EndingWait(DeviceOfTest(), 0).Wait(1h).ok());
  EXPECT_LT(SystemClock::Get().Now() - start, 2s);
}

TEST(EndingTest, AStrangerIsNotBelieved) {
  if (geteuid() != 0) GTEST_SKIP() << "root alone can be somebody else";
  constexpr uid_t kDaemon = 33;  // a service is no more than anybody else
  Server stranger(Lost, kSomebody), service(Lost, kDaemon);
  EXPECT_TRUE(EndingWait(DeviceOfTest(), 0).Wait(1h).ok());
  EXPECT_EQ(EndingWait(DeviceOfTest(), kSomebody).Wait(1ms).code(), ErrorCode::kTimedOut);
}

}  // namespace
}  // namespace weir::weirfs
