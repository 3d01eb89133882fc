// Goal: who unmounts waits for whoever serves that mount, for nobody else, and hears the worst.
// Method: each that serves is a child, as what it says last and that it ends are two things.
#include "tools/weirfs/ending.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

namespace weir::weirfs {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr uid_t kSomebody = 65534;

// No device has such a number, and no other test this one.
std::string DeviceOfTest() {
  return "test:" + std::to_string(getpid());
}

void Hear(int pipe_end) {
  char byte = 0;
  (void)!read(pipe_end, &byte, 1);
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
      Ending ending;
      if (setuid(user) == 0) ending.Announce(device);
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

TEST(EndingTest, WhoeverIsKilledHasNotStored) {
  Server server([](Ending&) {});
  EndingWait wait(DeviceOfTest(), geteuid());
  server.End();
  EXPECT_THAT(wait.Wait(1h).message(), HasSubstr("ended before it had stored all of it"));
}

TEST(EndingTest, AStrangerIsNotBelieved) {
  if (geteuid() != 0) GTEST_SKIP() << "root alone can be somebody else";
  Server stranger(Lost, kSomebody);
  EXPECT_TRUE(EndingWait(DeviceOfTest(), 0).Wait(1h).ok());
  EXPECT_EQ(EndingWait(DeviceOfTest(), kSomebody).Wait(1ms).code(), ErrorCode::kTimedOut);
}

}  // namespace
}  // namespace weir::weirfs
