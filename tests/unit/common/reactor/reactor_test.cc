// Both backends: what a machine refuses is skipped.
#include "common/reactor/reactor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/short_turns.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

// Set by whoever, waited for by the test.
class Event {
 public:
  void Set() {
    const std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  void Await(int count = 1) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

class SocketPair {
 public:
  SocketPair() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends_.data()), 0); }
  ~SocketPair() {
    for (const int end : ends_) {
      if (end >= 0) close(end);
    }
  }
  SocketPair(const SocketPair&) = delete;
  SocketPair& operator=(const SocketPair&) = delete;
  [[nodiscard]] int ours() const { return ends_[0]; }
  [[nodiscard]] int theirs() const { return ends_[1]; }
  void CloseTheirs() { close(std::exchange(ends_[1], -1)); }
  void Say(const std::string& text) const {
    EXPECT_EQ(write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

class Listener final : public Watcher {
 public:
  Listener(Reactor& reactor, int fd, size_t at_once = 4096)
      : reactor_(reactor), fd_(fd), at_once_(at_once) {}
  void OnReadable() override {
    ++calls;
    std::string bytes(at_once_, '\0');
    const ssize_t got = read(fd_, bytes.data(), bytes.size());
    if (got > 0) {
      heard += bytes.substr(0, static_cast<size_t>(got));
      reactor_.Continue(this);
      came.Set();
    } else if (got == 0) {
      gone.Set();
    }
  }
  void OnWritable() override { writable.Set(); }

  std::string heard;
  int calls = 0;
  Event came, gone, writable;

 private:
  Reactor& reactor_;
  const int fd_;
  const size_t at_once_;
};

class Request final : public DiskRequest {
 public:
  Request(Kind what, int file, uint64_t at, uint8_t* bytes, uint32_t size) {
    kind = what;
    fd = file;
    offset = at;
    data = bytes;
    length = size;
  }
  void Done(int64_t answer) override {
    result = answer;
    done.Set();
  }
  int64_t result = INT64_MIN;
  Event done;
};

class ReactorTest : public ::testing::TestWithParam<Reactor::Backend> {
 protected:
  void SetUp() override {
    Reactor::Options options;
    options.backend = GetParam();
    auto reactor = Reactor::Create(options);
    if (!reactor.ok() && reactor.code() == ErrorCode::kNotSupported) {
      GTEST_SKIP() << "this machine refuses it: " << reactor.status().message();
    }
    ASSERT_TRUE(reactor.ok()) << reactor.status().message();
    reactor_ = std::move(*reactor);
    reactor_->Start();
  }
  std::unique_ptr<Reactor> reactor_;
};

INSTANTIATE_TEST_SUITE_P(Backends, ReactorTest,
                         ::testing::Values(Reactor::Backend::kUring, Reactor::Backend::kEpoll),
                         [](const auto& tested) {
                           return tested.param == Reactor::Backend::kUring ? "Uring" : "Epoll";
                         });

TEST_P(ReactorTest, PostedTasksRunInOrderOnItsThread) {
  std::vector<int> ran;
  Event done;
  for (int i = 0; i < 1000; ++i) {
    reactor_->Post([&, i] {
      EXPECT_TRUE(reactor_->InLoop());
      ran.push_back(i);
      if (i == 999) done.Set();
    });
  }
  done.Await();
  EXPECT_FALSE(reactor_->InLoop());
  ASSERT_EQ(ran.size(), 1000U);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(ran[i], i);
}

// A wake-up that is lost would let one of the rounds wait for ever.
TEST_P(ReactorTest, NoPostIsLostHoweverItMeetsTheMomentOfFallingAsleep) {
  constexpr int kThreads = 3, kRounds = 3000;
  std::vector<std::thread> posters;
  for (int t = 0; t < kThreads; ++t) {
    posters.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        Event ran;
        reactor_->Post([&] { ran.Set(); });
        ran.Await();
      }
    });
  }
  for (std::thread& poster : posters) poster.join();
}

TEST_P(ReactorTest, ATimerRunsWhenItIsDueAndNotWhenCancelled) {
  Event done;
  bool cancelled_ran = false;
  TimePoint due, ran;
  RunInLoopAndWait(*reactor_, [&] {
    const TimePoint now = SystemClock::Get().Now();
    due = now + 2ms;
    const LoopTimer cancelled = reactor_->RunAt(now + 1ms, [&] { cancelled_ran = true; });
    reactor_->RunAt(due, [&] {
      ran = SystemClock::Get().Now();
      done.Set();
    });
    reactor_->CancelTimer(cancelled);
  });
  done.Await();
  EXPECT_GE(ran, due);
  EXPECT_FALSE(cancelled_ran);
}

TEST_P(ReactorTest, TheEndOfATurnComesAfterEverythingThatTheTurnFound) {
  std::string order;
  Event done;
  RunInLoopAndWait(*reactor_, [&] {
    reactor_->AtTurnEnd([&] { order += 'e'; });
    order += 'a';
    reactor_->Post([&] {
      order += 'n';
      done.Set();
    });
  });
  done.Await();
  EXPECT_EQ(order, "aen");
}

TEST_P(ReactorTest, AWatcherHearsEverythingAndOfTheEnd) {
  SocketPair pair;
  Listener listener(*reactor_, pair.ours(), 3);
  pair.Say("before ");
  RunInLoopAndWait(*reactor_, [&] { reactor_->Watch(pair.ours(), &listener); });
  pair.Say("after");
  listener.came.Await(4);
  pair.CloseTheirs();
  listener.gone.Await();
  RunInLoopAndWait(*reactor_, [&] {
    EXPECT_EQ(listener.heard, "before after");
    reactor_->Unwatch(&listener);
  });
}

// Goal: what several reactors watch is read to its end, though no watcher reads all or asks for
// another turn. Method: a thousand bytes at once, one byte per call.
TEST_P(ReactorTest, WhatReactorsWatchTogetherIsReadToItsEnd) {
  class OneByte final : public Watcher {
   public:
    OneByte(int fd, Event& came) : fd_(fd), came_(came) {}
    void OnReadable() override {
      char byte = 0;
      if (read(fd_, &byte, 1) == 1) came_.Set();
    }

   private:
    const int fd_;
    Event& came_;
  };
  Reactor::Options options;
  options.backend = GetParam();
  auto other = Reactor::Create(options);
  ASSERT_TRUE(other.ok());
  (*other)->Start();
  const SocketPair pair;
  Event came;
  OneByte here(pair.ours(), came), there(pair.ours(), came);
  RunInLoopAndWait(*reactor_, [&] { reactor_->WatchShared(pair.ours(), &here); });
  RunInLoopAndWait(**other, [&] { (*other)->WatchShared(pair.ours(), &there); });
  pair.Say("a");
  came.Await(1);
  pair.Say(std::string(999, 'b'));
  came.Await(1000);
  RunInLoopAndWait(*reactor_, [&] { reactor_->Unwatch(&here); });
  RunInLoopAndWait(**other, [&] { (*other)->Unwatch(&there); });
}

// Goal: who leaves a shared descriptor takes no wake with him. Method: of two that watch, one
// leaves after each byte that he hears and comes back later; every byte must be heard, one at a
// time.
TEST_P(ReactorTest, WhoLeavesWhatIsWatchedTogetherTakesNoWakeWithHim) {
  class Reader : public Watcher {
   public:
    Reader(int fd, Event& came) : fd_(fd), came_(came) {}
    void OnReadable() override {
      char byte = 0;
      while (read(fd_, &byte, 1) == 1) came_.Set();
    }

   private:
    const int fd_;
    Event& came_;
  };
  class Leaver final : public Reader {
   public:
    Leaver(Reactor& reactor, int fd, Event& came) : Reader(fd, came), reactor_(reactor) {}
    void OnReadable() override {
      Reader::OnReadable();
      reactor_.Unwatch(this);
      watching = false;
      ++left;
    }
    bool watching = false;
    int left = 0;

   private:
    Reactor& reactor_;
  };
  Reactor::Options options;
  options.backend = GetParam();
  auto other = Reactor::Create(options);
  ASSERT_TRUE(other.ok());
  (*other)->Start();
  const SocketPair pair;
  Event came;
  Reader stays(pair.ours(), came);
  Leaver leaves(**other, pair.ours(), came);
  RunInLoopAndWait(*reactor_, [&] { reactor_->WatchShared(pair.ours(), &stays); });
  for (int i = 1; i <= 5000; ++i) {
    if (i % 3 != 0) {
      (*other)->Post([&] {
        if (std::exchange(leaves.watching, true)) return;
        (*other)->WatchShared(pair.ours(), &leaves);
      });
    }
    pair.Say("a");
    came.Await(i);
  }
  // Who hears a byte is the kernel's choice, but here there is nobody else.
  RunInLoopAndWait(*reactor_, [&] { reactor_->Unwatch(&stays); });
  RunInLoopAndWait(**other, [&] {
    if (leaves.watching) (*other)->Unwatch(&leaves);
    leaves.left = 0;
    leaves.watching = true;
    (*other)->WatchShared(pair.ours(), &leaves);
  });
  pair.Say("a");
  came.Await(5001);
  RunInLoopAndWait(*reactor_, [&] { reactor_->WatchShared(pair.ours(), &stays); });
  pair.Say("a");
  came.Await(5002);
  RunInLoopAndWait(**other, [&] {
    EXPECT_EQ(leaves.left, 1);
    if (leaves.watching) (*other)->Unwatch(&leaves);
  });
  RunInLoopAndWait(*reactor_, [&] { reactor_->Unwatch(&stays); });
}

TEST_P(ReactorTest, AfterUnwatchNothingIsHeardAlsoOfWhatHadCome) {
  SocketPair pair;
  Listener listener(*reactor_, pair.ours());
  RunInLoopAndWait(*reactor_, [&] {
    reactor_->Watch(pair.ours(), &listener);
    pair.Say("too late");
    reactor_->Continue(&listener);
    reactor_->Unwatch(&listener);
  });
  RunInLoopAndWait(*reactor_, [] {});
  RunInLoopAndWait(*reactor_, [&] { EXPECT_EQ(listener.calls, 0); });
}

// What a turn has for its peers leaves before anything that takes long goes on.
TEST_P(ReactorTest, TheEndOfATurnComesBeforeWhatContinues) {
  std::string order;
  struct Long final : Watcher {
    Long(Reactor& r, std::string& o) : reactor(r), order(o) {}
    void OnReadable() override {
      order += "l";
      if (--pieces > 0) reactor.Continue(this);
    }
    Reactor& reactor;
    std::string& order;
    int pieces = 2;
  } work(*reactor_, order);
  Event done;
  RunInLoopAndWait(*reactor_, [&] {
    reactor_->Continue(&work);
    reactor_->AtTurnEnd([&] {
      order += "e";
      reactor_->Post([&] {
        order += "p";
        reactor_->AtTurnEnd([&] {
          order += "e";
          done.Set();
        });
      });
    });
  });
  done.Await();
  RunInLoopAndWait(*reactor_, [&] { EXPECT_EQ(order, "elpel"); });
}

// Both descriptors are ready in one turn; the one that is called first ends the other.
TEST_P(ReactorTest, OneWatcherMayEndAnotherThatIsReadyToo) {
  SocketPair first, second;
  struct Ender final : Watcher {
    Ender(Reactor& r, int f) : reactor(r), fd(f) {}
    void OnReadable() override {
      char byte = 0;
      if (read(fd, &byte, 1) != 1) return;
      ++calls;
      if (other != nullptr) reactor.Unwatch(std::exchange(other, nullptr));
    }
    Reactor& reactor;
    int fd;
    int calls = 0;
    Ender* other = nullptr;
  };
  Ender a(*reactor_, first.ours()), b(*reactor_, second.ours());
  a.other = &b;
  b.other = &a;
  RunInLoopAndWait(*reactor_, [&] {
    reactor_->Watch(first.ours(), &a);
    reactor_->Watch(second.ours(), &b);
    first.Say("x");
    second.Say("x");
  });
  for (int i = 0; i < 3; ++i) RunInLoopAndWait(*reactor_, [] {});
  RunInLoopAndWait(*reactor_, [&] {
    EXPECT_EQ(a.calls + b.calls, 1);
    reactor_->Unwatch(a.calls == 1 ? &a : &b);
  });
}

TEST_P(ReactorTest, AWriterIsToldWhenThereIsRoomAgain) {
  SocketPair pair;
  Listener listener(*reactor_, pair.ours());
  const std::string much(1 << 20, 'x');
  RunInLoopAndWait(*reactor_, [&] {
    reactor_->Watch(pair.ours(), &listener);
    while (send(pair.ours(), much.data(), much.size(), MSG_DONTWAIT) > 0) {
    }
    reactor_->WaitWritable(&listener);
  });
  std::string sink(1 << 20, '\0');
  while (read(pair.theirs(), sink.data(), sink.size()) > 0) {
  }
  listener.writable.Await();
  RunInLoopAndWait(*reactor_, [&] { reactor_->Unwatch(&listener); });
}

TEST_P(ReactorTest, ADiskRequestReadsWhatAnotherHasWritten) {
  char path[] = "/var/tmp/weir-reactor-test-XXXXXX";
  const int file = mkstemp(path);
  ASSERT_GE(file, 0);
  unlink(path);
  Buffer out = Buffer::Aligned(8192), in = Buffer::Aligned(8192);
  std::memset(out.data(), 'w', out.size());
  Request write(DiskRequest::Kind::kWrite, file, 4096, out.data(), 8192);
  Request sync(DiskRequest::Kind::kSync, file, 0, nullptr, 0);
  Request read(DiskRequest::Kind::kRead, file, 4096, in.data(), 8192);
  Request wrong(DiskRequest::Kind::kRead, -1, 0, in.data(), 4096);
  RunInLoopAndWait(*reactor_, [&] { reactor_->Submit(&write); });
  write.done.Await();
  EXPECT_EQ(write.result, 8192);
  RunInLoopAndWait(*reactor_, [&] {
    reactor_->Submit(&sync);
    reactor_->Submit(&read);
    reactor_->Submit(&wrong);
    EXPECT_EQ(wrong.result, INT64_MIN) << "ended within Submit";
  });
  sync.done.Await();
  read.done.Await();
  wrong.done.Await();
  EXPECT_EQ(sync.result, 0);
  EXPECT_EQ(read.result, 8192);
  EXPECT_EQ(std::memcmp(in.data(), out.data(), 8192), 0);
  EXPECT_EQ(wrong.result, -EBADF);
  close(file);
}

TEST_P(ReactorTest, MoreDiskRequestsThanTheKernelTakesAtOnceAllEnd) {
  char path[] = "/var/tmp/weir-reactor-test-XXXXXX";
  const int file = mkstemp(path);
  ASSERT_GE(file, 0);
  unlink(path);
  constexpr int kRequests = 3000;
  Buffer bytes = Buffer::AlignedZeros(4096);
  Event done;
  struct Write final : DiskRequest {
    explicit Write(Event& event) : ended(event) {}
    void Done(int64_t answer) override {
      result = answer;
      ended.Set();
    }
    Event& ended;
    int64_t result = 0;
  };
  std::vector<std::unique_ptr<Write>> writes;
  for (int i = 0; i < kRequests; ++i) {
    auto write = std::make_unique<Write>(done);
    write->kind = DiskRequest::Kind::kWrite;
    write->fd = file;
    write->offset = 4096ULL * i;
    write->data = bytes.data();
    write->length = 4096;
    writes.push_back(std::move(write));
  }
  RunInLoopAndWait(*reactor_, [&] {
    for (auto& write : writes) reactor_->Submit(write.get());
  });
  done.Await(kRequests);
  for (auto& write : writes) EXPECT_EQ(write->result, 4096);
  close(file);
}

// A loop that turns for nothing would take a processor.
TEST_P(ReactorTest, WithNothingToDoItSleeps) {
  SocketPair pair;
  Listener listener(*reactor_, pair.ours());
  RunInLoopAndWait(*reactor_, [&] { reactor_->Watch(pair.ours(), &listener); });
  pair.Say("hello");
  listener.came.Await();
  Event later;
  uint64_t before = 0, after = 0;
  RunInLoopAndWait(*reactor_, [&] {
    before = reactor_->waits();
    reactor_->RunAt(SystemClock::Get().Now() + 20ms, [&] {
      after = reactor_->waits();
      later.Set();
    });
  });
  later.Await();
  EXPECT_LE(after - before, 4U);
  RunInLoopAndWait(*reactor_, [&] { reactor_->Unwatch(&listener); });
}

// Nobody would take the processor from it meanwhile.
TEST_P(ReactorTest, WhoRunsAheadOfTurnsSleepsAtOnce) {
  constexpr int kWaits = 300;
  Event done;
  bool ahead = false;
  Duration looked{0};
  int left = kWaits;
  const std::function<void()> wait = [&] {
    if (--left == 0) {
      looked = reactor_->looked() - looked;
      WeighMost();
      done.Set();
      return;
    }
    reactor_->RunAt(SystemClock::Get().Now() + 10us, wait);
  };
  RunInLoopAndWait(*reactor_, [&] {
    ahead = RunAheadOfTurns();
    looked = reactor_->looked();
    if (ahead) wait();
  });
  if (!ahead) GTEST_SKIP() << "this process may not ask for it";
  done.Await();
  EXPECT_EQ(looked, 0us);
}

TEST_P(ReactorTest, WhatIsLeftAtItsEndIsDroppedAndFreed) {
  auto owned = std::make_shared<int>(1);
  std::weak_ptr<int> left = owned;
  RunInLoopAndWait(*reactor_, [&] { reactor_->RunAt(TimePoint::Max(), [owned] {}); });
  owned.reset();
  reactor_->Stop();
  reactor_->Post([] { FAIL() << "ran after its end"; });
  reactor_.reset();
  EXPECT_TRUE(left.expired());
}

}  // namespace
}  // namespace weir
