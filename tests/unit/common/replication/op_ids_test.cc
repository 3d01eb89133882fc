// Goal: no floor is ever above a number that may be asked for again, and none stays behind for
// nothing. Method: random operations beside a model that keeps every number there ever was.
#include "common/replication/op_ids.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "common/base/prng.h"
#include "common/testing/seed.h"

namespace weir::replication {
namespace {

struct Numbered {
  ObjectId object;
  uint64_t number;
  bool open;
};

// The lowest open number of those that `counts` picks; none: the next one.
template <typename Counts>
uint64_t LowestOpen(const std::vector<Numbered>& all, uint64_t above, Counts counts) {
  uint64_t lowest = above + all.size() + 1;
  for (const Numbered& one : all) {
    if (one.open && counts(one)) lowest = std::min(lowest, one.number);
  }
  return lowest;
}

TEST(OpIdsTest, FloorsAreWhatAModelThatForgetsNothingSays) {
  for (const uint64_t above : {uint64_t{0}, uint64_t{3} << 40}) {
    Prng prng(weir::testing::TestSeed(above + 1));
    OpIds ids(7, above);
    std::vector<Numbered> all;
    const auto some_object = [&] {
      return ObjectId{InodeId(prng.Uniform(1, 3)), prng.Uniform(0, 3)};
    };
    uint64_t last_session_floor = 0;
    for (int step = 0; step < 3'000; ++step) {
      const ObjectId object = some_object();
      const size_t at = all.empty() ? 0 : prng.Uniform(0, all.size() - 1);
      if (all.empty() || prng.Uniform(0, 1) == 0) {
        all.push_back({object, ids.Begin(object), true});
        ASSERT_EQ(all.back().number, above + all.size()) << "numbers grow, one by one";
      } else if (all[at].open) {
        all[at].open = false;
        ids.End(all[at].object, all[at].number);
      }
      const ObjectId asked = some_object();
      const IdFloors floors = ids.FloorsOf(asked);
      ASSERT_EQ(floors.session, LowestOpen(all, above, [](const auto&) { return true; }));
      ASSERT_EQ(floors.object,
                LowestOpen(all, above, [&](const auto& one) { return one.object == asked; }));
      ASSERT_GE(floors.session, last_session_floor);
      last_session_floor = floors.session;
    }
    for (const Numbered& one : all) {
      if (one.open) ids.End(one.object, one.number);
    }
    EXPECT_EQ(ids.open(), 0u) << "what has ended takes no memory";
  }
}

}  // namespace
}  // namespace weir::replication
