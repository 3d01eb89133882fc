#include "osd/qos/dispatch/elevator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <tuple>

#include "common/base/prng.h"

namespace weir::osd::qos {
namespace {

// The elevator beside a list that is searched from end to end.
class ElevatorTest : public ::testing::Test {
 protected:
  struct Waiting {
    Request request;
    bool promised = false;
    uint64_t goes_first_at = 0;
    uint64_t goes_first_of_promised_at = 0;
  };

  void Add(uint64_t lba, bool promised) {
    const auto here = static_cast<uint64_t>(
        std::count_if(all_.begin(), all_.end(), [](const Waiting& w) { return w.promised; }));
    Waiting& newcomer = all_.emplace_back();
    newcomer.request.lba = lba;
    newcomer.request.bytes = 4096;
    newcomer.request.sequence = ++sequence_;
    newcomer.promised = promised;
    newcomer.goes_first_at = departures_ + std::max<uint64_t>(8, 2 * all_.size());
    newcomer.goes_first_of_promised_at = departures_ + std::max<uint64_t>(8, 2 * (here + 1));
    elevator_.Add(&newcomer.request, promised);
  }
  // The first from `lba` on, else the first; equal ones by sequence.
  Request* Nearest(uint64_t lba, uint64_t sequence, bool promised_only) {
    Waiting* nearest = nullptr;
    const auto rank = [&](const Waiting& w) {
      const auto key = std::tuple(w.request.lba, w.request.sequence);
      return std::tuple(key < std::tuple(lba, sequence), key);
    };
    for (Waiting& w : all_) {
      if (promised_only && !w.promised) continue;
      if (nearest == nullptr || rank(w) < rank(*nearest)) nearest = &w;
    }
    return &nearest->request;
  }
  Request* ExpectedFirst() {
    Waiting& oldest = all_.front();
    return departures_ >= oldest.goes_first_at ? &oldest.request : Nearest(head_, 0, false);
  }
  Request* ExpectedFirstPromised(Waiting* oldest) {
    return departures_ >= oldest->goes_first_of_promised_at ? &oldest->request
                                                            : Nearest(head_, 0, true);
  }
  void Serve(const Request* chosen) {
    elevator_.Served(*chosen);
    ++departures_;
    head_ = chosen->lba + chosen->bytes;
    const auto gone = std::find_if(all_.begin(), all_.end(),
                                   [&](const Waiting& w) { return &w.request == chosen; });
    elevator_.Remove(*chosen, gone->promised);
    all_.erase(gone);
  }

  Elevator elevator_;
  std::list<Waiting> all_;  // by arrival
  uint64_t sequence_ = 0;
  uint64_t head_ = 0;
  uint64_t departures_ = 0;
};

TEST_F(ElevatorTest, GoesUpThenBeginsAnew) {
  Add(50 << 20, false);
  Add(10 << 20, true);
  Add(30 << 20, false);
  Serve(ExpectedFirst());
  EXPECT_EQ(head_, (10 << 20) + 4096U);
  Add(5 << 20, true);  // behind the head
  EXPECT_EQ(elevator_.First(&all_.front().request)->lba, 30U << 20);
  EXPECT_EQ(elevator_.After(all_.front().request)->lba, 5U << 20);
}

TEST_F(ElevatorTest, ChoosesWhatAListWouldChoose) {
  Prng prng(7);
  for (int step = 0; step < 20'000; ++step) {
    // Few addresses, so that some are equal; a crowd now and then, so that patience ends.
    if (all_.size() < 3 || (all_.size() < 40 && prng.Chance(0.52))) {
      Add(prng.Uniform(0, 63) * 4096, prng.Chance(0.3));
      continue;
    }
    const Request& someone = std::next(all_.begin(), prng.Uniform(0, all_.size() - 1))->request;
    ASSERT_EQ(elevator_.After(someone), Nearest(someone.lba, someone.sequence + 1, false));
    const auto promised =
        std::find_if(all_.begin(), all_.end(), [](const Waiting& w) { return w.promised; });
    Request* chosen = elevator_.First(&all_.front().request);
    ASSERT_EQ(chosen, ExpectedFirst());
    if (promised != all_.end()) {
      Request* of_promised = elevator_.FirstPromised(&promised->request);
      ASSERT_EQ(of_promised, ExpectedFirstPromised(&*promised));
      if (prng.Chance(0.25)) chosen = of_promised;
    }
    Serve(chosen);
  }
}

}  // namespace
}  // namespace weir::osd::qos
