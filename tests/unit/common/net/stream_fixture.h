// What the tests of streams share: messages with numbers, what has come, a reactor of each kind,
// and a finder in place of HELLO over ZeroMQ.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "common/net/envelope.h"
#include "common/net/stream_transport.h"
#include "common/reactor/reactor.h"
#include "common/wire/rpc.pb.h"

namespace weir::net {

// A test that hangs shows as one that takes this long; nothing depends on it otherwise.
constexpr auto kStreamPatience = std::chrono::seconds(60);

inline Message Numbered(Direction direction, uint64_t number, size_t payload_bytes) {
  wire::RpcHeader header;
  header.set_request_id(number);
  Buffer payload = payload_bytes > 0 ? Buffer::Aligned(payload_bytes) : Buffer();
  if (payload_bytes > 0) std::memset(payload.data(), static_cast<uint8_t>(number), payload_bytes);
  return {*EncodeFrame(direction, header, payload_bytes), payload};
}

inline uint64_t NumberOf(Direction direction, const Message& message) {
  wire::RpcHeader header;
  bool matches = false;
  EXPECT_TRUE(
      DecodeFrame(direction, message.header, message.payload.size(), &header, &matches).ok());
  EXPECT_TRUE(matches);
  const Buffer& payload = message.payload;
  const bool its_own =
      payload.empty() || (payload.data()[0] == static_cast<uint8_t>(header.request_id()) &&
                          std::memcmp(payload.data(), payload.data() + 1, payload.size() - 1) == 0);
  EXPECT_TRUE(its_own) << "the payload is another one's";
  return header.request_id();
}

// What has come, in order.
template <typename T>
class Arrivals {
 public:
  void Add(T one) {
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(one));
    changed_.notify_all();
  }
  // Waits for it.
  T Next() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kStreamPatience, [this] { return !all_.empty(); })) {
      ADD_FAILURE() << "nothing came";
      return {};
    }
    T one = std::move(all_.front());
    all_.pop_front();
    return one;
  }
  [[nodiscard]] size_t count() {
    const std::lock_guard lock(mutex_);
    return all_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> all_;
};

// Both backends: what a machine refuses is skipped.
class ReactorFixture : public ::testing::TestWithParam<Reactor::Backend> {
 protected:
  void SetUp() override {
    Reactor::Options options;
    options.backend = GetParam();
    auto reactor = Reactor::Create(options);
    if (!reactor.ok() && reactor.code() == ErrorCode::kNotSupported) {
      GTEST_SKIP() << "this machine refuses it: " << reactor.status().message();
    }
    ASSERT_TRUE(reactor.ok()) << reactor.status().message();
    reactor_ = *std::move(reactor);
    reactor_->Start();
  }

  std::unique_ptr<Reactor> reactor_;
};

inline std::string NameOfBackend(const ::testing::TestParamInfo<Reactor::Backend>& info) {
  return info.param == Reactor::Backend::kUring ? "Uring" : "Epoll";
}

// Where the server is at the moment, as HELLO would say. Threads: any.
class Directory {
 public:
  void Set(StreamAddresses streams, std::string host = "127.0.0.1") {
    const std::lock_guard lock(mutex_);
    found_ = {std::move(streams), std::move(host)};
  }
  // So many of the next questions, or their answers, are lost.
  void LoseNext(int questions) {
    const std::lock_guard lock(mutex_);
    lost_ = questions;
  }
  // Each question is answered so often.
  void Repeat(int answers) {
    const std::lock_guard lock(mutex_);
    repeat_ = answers;
  }
  [[nodiscard]] int questions() {
    const std::lock_guard lock(mutex_);
    return questions_;
  }
  std::unique_ptr<StreamFinder> MakeFinder(Reactor& reactor);

 private:
  class Finder final : public StreamFinder {
   public:
    Finder(Directory& directory, Reactor& reactor) : directory_(directory), reactor_(reactor) {}
    void Ask(OnFound on_found) override {
      on_found_ = std::make_shared<OnFound>(std::move(on_found));
      const auto [found, answers] = directory_.Answer();
      for (int i = 0; i < answers; ++i) {
        reactor_.Post([asked = std::weak_ptr(on_found_), found = found] {
          if (const auto answer = asked.lock()) (*answer)(found);
        });
      }
    }
    void Stop() override {
      if (!directory_.answers_late()) on_found_ = nullptr;
    }

   private:
    Directory& directory_;
    Reactor& reactor_;
    std::shared_ptr<OnFound> on_found_;
  };
  std::pair<StreamFinder::Found, int> Answer() {
    const std::lock_guard lock(mutex_);
    ++questions_;
    const bool silent = found_.streams.endpoints.empty() || lost_ > 0;
    if (lost_ > 0) --lost_;
    return {found_, silent ? 0 : repeat_};
  }
  [[nodiscard]] bool answers_late() {
    const std::lock_guard lock(mutex_);
    return repeat_ > 1;
  }

  std::mutex mutex_;
  StreamFinder::Found found_;
  int lost_ = 0;
  int repeat_ = 1;
  int questions_ = 0;
};

inline std::unique_ptr<StreamFinder> Directory::MakeFinder(Reactor& reactor) {
  return std::make_unique<Finder>(*this, reactor);
}

}  // namespace weir::net
