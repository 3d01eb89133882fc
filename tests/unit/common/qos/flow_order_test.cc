#include "common/qos/flow_order.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/qos/lane.h"

namespace weir {
namespace {

constexpr uint64_t kSmall = 4 << 10;
constexpr uint64_t kLarge = 1 << 20;

// Time on the device: 20 us and 1 ms for each MiB.
Duration CostOf(uint64_t bytes) {
  return std::chrono::microseconds(20) + std::chrono::nanoseconds(bytes * 1000000 / (1 << 20));
}

// One device that serves one request after the other; each source keeps so many requests waiting.
class FlowOrderTest : public ::testing::Test {
 protected:
  struct Source {
    FlowKey key;
    uint64_t bytes;
    size_t depth;
    Duration served{0};
    uint64_t requests = 0;
  };
  struct Waiting : FlowOrder::Item {
    Source* source = nullptr;
  };

  Source* AddSource(FlowKey key, uint64_t bytes, size_t depth) {
    sources_.push_back({key, bytes, depth});
    for (size_t i = 0; i < depth; ++i) Ask(&sources_.back());
    return &sources_.back();
  }
  void Ask(Source* source) {
    auto waiting = std::make_unique<Waiting>();
    waiting->source = source;
    order_.Add(waiting.get(), source->key, source->bytes, CostOf(source->bytes));
    asked_[waiting.get()] = std::move(waiting);
  }
  Source* Serve() {
    FlowOrder::Item* item = order_.First();
    if (item == nullptr) return nullptr;
    auto* waiting = static_cast<Waiting*>(item);
    Source* source = waiting->source;
    order_.Take(item);
    FlowOrder::Done(item);
    asked_.erase(waiting);
    source->served += CostOf(source->bytes);
    ++source->requests;
    return source;
  }
  void ServeFor(Duration time) {
    for (Duration spent{0}; spent < time;) {
      Source* source = Serve();
      ASSERT_NE(source, nullptr);
      spent += CostOf(source->bytes);
      Ask(source);
    }
  }
  static double Share(const Source& source, Duration of) {
    return static_cast<double>(source.served.count()) / static_cast<double>(of.count());
  }

  FlowOrder order_;
  std::deque<Source> sources_;
  std::map<Waiting*, std::unique_ptr<Waiting>> asked_;

  void TearDown() override {
    while (Serve() != nullptr) {
    }
  }
};

constexpr Duration kSecond = std::chrono::seconds(1);

// Goal: two users share a class evenly, whatever the number of their programs and the size of their
// requests. Prevents: 64 writers that outvote one.
TEST_F(FlowOrderTest, UsersShareEvenlyHoweverManyProgramsTheyRun) {
  Source* one = AddSource({1, 1}, kLarge, 4);
  for (uint64_t i = 0; i < 64; ++i) AddSource({2, 100 + i}, 64 << 10, 4);
  ServeFor(10 * kSecond);
  EXPECT_NEAR(Share(*one, 10 * kSecond), 0.5, 0.001);
}

// Goal: programs of one user share what the user gets.
TEST_F(FlowOrderTest, ProgramsOfAUserShareEvenly) {
  Source* large = AddSource({1, 1}, kLarge, 8);
  Source* middle = AddSource({1, 2}, 64 << 10, 8);
  Source* third = AddSource({1, 3}, kLarge, 1);
  ServeFor(9 * kSecond);
  EXPECT_NEAR(Share(*large, 9 * kSecond), 1.0 / 3, 0.001);
  EXPECT_NEAR(Share(*middle, 9 * kSecond), 1.0 / 3, 0.001);
  EXPECT_NEAR(Share(*third, 9 * kSecond), 1.0 / 3, 0.001);
}

// Goal: who waits for each answer does not stand behind 64 who do not: at most the request that is
// on its way is before it. Of the same user or of another.
TEST_F(FlowOrderTest, ALightOneGoesFirst) {
  for (uint64_t i = 0; i < 64; ++i) AddSource({1, 100 + i}, kLarge, 1);
  ServeFor(kSecond);
  for (const FlowKey key : {FlowKey{1, 1}, FlowKey{2, 1}}) {
    sources_.push_back({key, kSmall, 1});
    Source* reader = &sources_.back();
    for (int i = 0; i < 1000; ++i) {
      Ask(reader);
      ASSERT_EQ(Serve(), reader) << "user " << key.user << ", request " << i;
      Source* writer = Serve();
      ASSERT_NE(writer, reader);
      Ask(writer);
    }
  }
}

// Goal: a thousand small programs are no way around a user's share. 1000 readers of user 1 are
// light each, the user is not.
TEST_F(FlowOrderTest, AThousandShortProgramsGainNothingForTheirUser) {
  std::vector<Source*> readers;
  for (uint64_t i = 0; i < 1000; ++i) readers.push_back(AddSource({1, 100 + i}, kSmall, 1));
  Source* writer = AddSource({2, 1}, kLarge, 4);
  ServeFor(10 * kSecond);
  EXPECT_NEAR(Share(*writer, 10 * kSecond), 0.5, 0.002);
}

// Goal: the light programs of a user leave half of its time to the others.
TEST_F(FlowOrderTest, LightProgramsLeaveHalfToTheOthersOfTheirUser) {
  for (uint64_t i = 0; i < 100; ++i) AddSource({1, 100 + i}, kSmall, 1);
  Source* writer = AddSource({1, 1}, kLarge, 4);
  ServeFor(10 * kSecond);
  EXPECT_NEAR(Share(*writer, 10 * kSecond), 0.5, 0.002);
}

// Goal: a light user is held to its share in the long run: 20 of them and a heavy one get a 21st.
TEST_F(FlowOrderTest, ALightUserHasItsShareAndNoMore) {
  for (uint64_t i = 0; i < 20; ++i) AddSource({100 + i, 1}, kSmall, 2);
  Source* writer = AddSource({1, 1}, kLarge, 4);
  ServeFor(10 * kSecond);
  EXPECT_NEAR(Share(*writer, 10 * kSecond), 1.0 / 21, 0.005);
}

// Goal: idle time is no credit, and service while nobody else wants any is no debt.
TEST_F(FlowOrderTest, WhoComesLateGetsItsShareFromThenOn) {
  AddSource({1, 1}, kLarge, 4);
  ServeFor(100 * kSecond);
  Source* late = AddSource({2, 1}, kLarge, 4);
  Source* same_user = AddSource({1, 2}, kLarge, 4);
  ServeFor(4 * kSecond);
  EXPECT_NEAR(Share(*late, 4 * kSecond), 0.5, 0.005);
  EXPECT_NEAR(Share(*same_user, 4 * kSecond), 0.25, 0.005);
}

// Goal: a reader who was light for long is not in debt when it has much to do.
TEST_F(FlowOrderTest, ALightTimeLeavesNoDebt) {
  AddSource({1, 1}, kLarge, 4);
  Source* reader = AddSource({1, 2}, kSmall, 1);
  ServeFor(10 * kSecond);
  reader->served = Duration(0);
  reader->bytes = kLarge;
  for (int i = 0; i < 4; ++i) Ask(reader);
  ServeFor(kSecond);
  EXPECT_NEAR(Share(*reader, kSecond), 0.5, 0.02);
}

// Goal: whoever has asked before is not kept waiting by programs that come, ask once and go: `make
// -j`, `xargs cp`. Large requests, and small ones after a large one.
TEST_F(FlowOrderTest, ProgramsThatComeAndGoDoNotKeepTheOthersWaiting) {
  for (const uint64_t bytes : {kSmall, kLarge}) {
    AddSource({1, 1}, kLarge, 1);
    while (Serve()->key.opener != 1) {
    }
    Source* old = AddSource({1, 1}, bytes, 1);
    uint64_t fresh = 1000;
    for (int i = 0; i < 8; ++i) AddSource({1, ++fresh}, bytes, 1);
    bool served = false;
    for (int i = 0; i < 2000 && !served; ++i) {
      served = Serve() == old;
      AddSource({1, ++fresh}, bytes, 1);
    }
    EXPECT_TRUE(served) << bytes;
  }
}

// Goal: users who come and go do not keep one waiting who has had much.
TEST_F(FlowOrderTest, UsersThatComeAndGoDoNotKeepTheOthersWaiting) {
  AddSource({1, 1}, kLarge, 4);
  for (int i = 0; i < 4; ++i) Serve();
  Source* old = AddSource({1, 1}, kLarge, 1);
  uint64_t fresh = 1000;
  for (int i = 0; i < 8; ++i) AddSource({++fresh, 1}, kLarge, 1);
  bool served = false;
  for (int i = 0; i < 2000 && !served; ++i) {
    served = Serve() == old;
    AddSource({++fresh, 1}, kLarge, 1);
  }
  EXPECT_TRUE(served);
}

// Goal: requests of one program stay in order.
TEST_F(FlowOrderTest, AProgramsRequestsStayInOrder) {
  AddSource({1, 1}, kLarge, 16);
  std::vector<Waiting*> served;
  AddSource({2, 1}, kSmall, 16);
  uint64_t last[3] = {0, 0, 0};
  for (int i = 0; i < 32; ++i) {
    FlowOrder::Item* item = order_.First();
    const auto* waiting = static_cast<Waiting*>(item);
    uint64_t& before = last[waiting->source->key.user];
    EXPECT_LT(before, item->sequence);
    before = item->sequence;
    Serve();
  }
}

// Goal: what is cancelled costs nobody anything, and one that is taken out of its turn is paid for.
TEST_F(FlowOrderTest, WhatLeavesIsNotPaidFor) {
  Source* a = AddSource({1, 1}, kLarge, 1);
  Source* b = AddSource({2, 1}, kLarge, 1);
  for (int i = 0; i < 1000; ++i) {
    FlowOrder::Item gone;
    order_.Add(&gone, {1, 1}, kLarge, CostOf(kLarge));
    order_.Leave(&gone);
    EXPECT_EQ(gone.opener, nullptr);
  }
  ServeFor(kSecond);
  EXPECT_NEAR(Share(*a, kSecond), 0.5, 0.005);
  EXPECT_NEAR(Share(*b, kSecond), 0.5, 0.005);
}

// Goal: memory is bounded, and nobody is lost when more flows come than are told apart.
TEST_F(FlowOrderTest, MoreFlowsThanAreToldApartShare) {
  for (uint64_t i = 0; i < 3 * FlowOrder::kFlowsMax; ++i) AddSource({i, i}, kLarge, 1);
  size_t served = 0;
  while (Serve() != nullptr) ++served;
  EXPECT_EQ(served, 3 * FlowOrder::kFlowsMax);
  EXPECT_TRUE(order_.idle());
  // Those that are gone make room.
  for (uint64_t i = 0; i < 10 * FlowOrder::kFlowsMax; ++i) {
    Ask(AddSource({1000000 + i, i}, kSmall, 0));
    ASSERT_NE(Serve(), nullptr);
  }
}

// Goal: the same calls give the same order.
TEST_F(FlowOrderTest, LightIsWhoHasLittleUnderWay) {
  FlowOrder::Item small[40];
  for (auto& item : small) order_.Add(&item, {1, 1}, kSmall, CostOf(kSmall));
  EXPECT_FALSE(FlowOrder::IsLight(small[0]));
  for (int i = 0; i < 8; ++i) {
    order_.Take(&small[i]);
    EXPECT_FALSE(FlowOrder::IsLight(small[39])) << "taken and not done is under way";
    FlowOrder::Done(&small[i]);
  }
  EXPECT_TRUE(FlowOrder::IsLight(small[39]));
  for (int i = 8; i < 40; ++i) order_.Leave(&small[i]);
  FlowOrder::Item large;
  order_.Add(&large, {1, 1}, kInteractiveBytesMax + 1, CostOf(kSmall));
  EXPECT_FALSE(FlowOrder::IsLight(large));
  order_.Leave(&large);
}

TEST_F(FlowOrderTest, TellsWhatGoesNextOfOneUser) {
  EXPECT_EQ(order_.FirstOf(2), nullptr);
  AddSource({1, 1}, kLarge, 4);
  const Source* writer = AddSource({2, 1}, kLarge, 4);
  const auto source_of = [](FlowOrder::Item* item) { return static_cast<Waiting*>(item)->source; };
  FlowOrder::Item* const large = order_.FirstOf(2);
  ASSERT_NE(large, nullptr);
  EXPECT_EQ(source_of(large), writer);
  const Source* reader = AddSource({2, 2}, kSmall, 1);
  EXPECT_EQ(source_of(order_.FirstOf(2)), reader) << "light goes first";
  EXPECT_EQ(FlowOrder::FirstOfUser(*large), order_.FirstOf(2));
  EXPECT_EQ(order_.FirstOf(3), nullptr);
}

}  // namespace
}  // namespace weir
