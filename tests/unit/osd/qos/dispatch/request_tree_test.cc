#include "osd/qos/dispatch/request_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "common/base/prng.h"

namespace weir::osd::qos {
namespace {

// How many, and a digest that notices any wrong order.
struct Digest {
  uint64_t count = 0;
  uint64_t power = 1;
  uint64_t value = 0;

  static Digest Of(std::span<const TreeKey> keys, int64_t base) {
    Digest all;
    for (const TreeKey& key : keys) {
      all.Append({1, static_cast<uint64_t>(base), key.value * 31 + key.sequence}, base);
    }
    return all;
  }
  void Append(const Digest& behind, int64_t /*base*/) {
    count += behind.count;
    value = value * behind.power + behind.value;
    power *= behind.power;
  }
};

using Tree = RequestTree<uint64_t, Digest>;
constexpr int64_t kBase = 1'000'003;

// The tree beside a map that is ordered by definition.
class RequestTreeTest : public ::testing::Test {
 protected:
  void Insert(uint64_t value) {
    const TreeKey key{value, ++sequence_};
    tree_.Insert(key, sequence_);
    twin_.emplace(key, sequence_);
  }
  void Remove(std::map<TreeKey, uint64_t>::iterator at) {
    const TreeKey key = at->first;
    EXPECT_EQ(tree_.Remove(key), at->second);
    twin_.erase(at);
  }
  void RemoveSome(uint64_t value) {
    const auto at = twin_.lower_bound({value, 0});
    Remove(at == twin_.end() ? twin_.begin() : at);
  }
  void ExpectFrom(const TreeKey& key) {
    const uint64_t* found = tree_.FirstFrom(key);
    const auto expected = twin_.lower_bound(key);
    ASSERT_EQ(found == nullptr, expected == twin_.end());
    if (found != nullptr) {
      ASSERT_EQ(*found, expected->second);
    }
  }
  void ExpectSame() {
    ASSERT_EQ(tree_.size(), twin_.size());
    Digest all;
    for (const auto& [key, item] : twin_) all.Append(Digest::Of({&key, 1}, tree_.parameter()), 0);
    ASSERT_EQ(tree_.summary().count, all.count);
    ASSERT_EQ(tree_.summary().value, all.value);
    if (!twin_.empty()) {
      ASSERT_EQ(tree_.First(), twin_.begin()->second);
    }
  }
  // Every node but the root has kLeast entries, so a level costs a factor of that.
  void ExpectLow() {
    const double size = std::max<double>(2, static_cast<double>(twin_.size()));
    ASSERT_LE(tree_.height(), std::log(size) / std::log(Tree::kLeast) + 1);
  }

  Tree tree_{kBase};
  std::map<TreeKey, uint64_t> twin_;
  uint64_t sequence_ = 0;
};

TEST_F(RequestTreeTest, AnEmptyTreeFindsNothing) {
  EXPECT_TRUE(tree_.empty());
  EXPECT_EQ(tree_.FirstFrom({0, 0}), nullptr);
  EXPECT_EQ(tree_.summary().count, 0u);
}

TEST_F(RequestTreeTest, EqualNumbersStandInOrderOfSequence) {
  for (int i = 0; i < 100; ++i) Insert(7);
  for (uint64_t sequence = 1; sequence <= 100; ++sequence) {
    ASSERT_EQ(*tree_.FirstFrom({7, sequence}), sequence);
  }
  EXPECT_EQ(tree_.FirstFrom({7, 101}), nullptr);
  ExpectSame();
}

// Goal: the tree is the map whatever comes and goes, and low. Method: it grows to thousands and
// shrinks to nothing, three times, with few and with many equal numbers.
TEST_F(RequestTreeTest, AgreesWithAMapWhileItGrowsAndShrinks) {
  Prng prng(3);
  for (const uint64_t range : {uint64_t{40}, uint64_t{100'000}, UINT64_MAX}) {
    for (const double growth : {0.7, 0.3, 0.5, 0.1}) {
      for (int step = 0; step < 4000; ++step) {
        if (twin_.empty() || prng.Chance(growth)) {
          Insert(prng.Uniform(0, range));
        } else {
          RemoveSome(prng.Uniform(0, range));
        }
        ExpectFrom({prng.Uniform(0, range), prng.Uniform(0, sequence_)});
        ExpectLow();
        if (step % 50 == 0) ExpectSame();
        if (HasFatalFailure()) FAIL() << "range " << range << ", step " << step;
      }
    }
    while (!twin_.empty()) RemoveSome(prng.Uniform(0, range));
    ASSERT_EQ(tree_.height(), 0u);
  }
}

// Addresses of a log only grow: in at one end, out at the other, or out where they came in.
TEST_F(RequestTreeTest, SurvivesGrowthAtEitherEnd) {
  for (const bool upwards : {true, false}) {
    for (const bool from_front : {true, false}) {
      for (uint64_t i = 0; i < 3000; ++i) Insert(upwards ? i : 10'000 - i);
      ExpectSame();
      for (uint64_t i = 0; i < 3000; ++i) {  // a window that slides
        Remove(from_front ? twin_.begin() : std::prev(twin_.end()));
        Insert(upwards ? 3000 + i : 7000 - i);
        ExpectLow();
      }
      ExpectSame();
      while (!twin_.empty()) Remove(from_front ? twin_.begin() : std::prev(twin_.end()));
      ExpectSame();
    }
  }
}

// Prevents: a key that is read from a node after the nodes have moved (the address sanitizer sees
// it). Method: full nodes below full nodes are split at many sizes of the pool.
TEST_F(RequestTreeTest, SplitsFullNodesBelowFullNodes) {
  for (int seed = 0; seed < 20; ++seed) {
    Prng prng(seed);
    Tree tree(kBase);
    for (uint64_t i = 1; i <= 60'000; ++i) tree.Insert({prng.Uniform(0, UINT64_MAX), i}, i);
    ASSERT_EQ(tree.size(), 60'000u);
  }
}

TEST_F(RequestTreeTest, AnotherParameterReachesEveryNode) {
  for (uint64_t i = 0; i < 1000; ++i) Insert(i * 37 % 1000);
  tree_.SetParameter(kBase + 2);
  ExpectSame();
  for (uint64_t i = 0; i < 500; ++i) RemoveSome(i * 91 % 1000);
  ExpectSame();
}

}  // namespace
}  // namespace weir::osd::qos
