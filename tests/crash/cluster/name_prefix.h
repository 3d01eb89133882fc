// NamePrefix: what may be left of the names that a dead user gave and took away and that were not
// durable then: the changes up to some one, and none behind it. A rename is one change. The last
// may be one that he was not told of: that may also be carried out later than his death.
//
// All that he was told of is there while the MDS that told him lives. How many are left after that
// is not known; `least_` and `most_` enclose it. It never grows, but by the one that he was not
// told of, and what somebody else has seen is durable. So whoever sees a name as it is after k
// changes raises the least to the fewest that give it so, durable or not, and lowers the most to
// the most of them.
// Pure. Threads: one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/time.h"
#include "tests/crash/cluster/history.h"

namespace weir::crash {

// A name that was given or taken away, of which its user was told before it was durable. When he
// dies, and with him the MDS, it may be gone, or there again: until his mount has heard that it is
// durable, or has been there with one MDS for so long that it must be.
struct EarlyName {
  // What mounts are told early is durable within this, a tick included.
  static constexpr Duration kDurableWithin = std::chrono::milliseconds(1200);

  const class Actor* who = nullptr;
  Register<uint64_t>* inode = nullptr;
  size_t place = 0;   // of the change
  size_t before = 0;  // certain without it
  TimePoint when;
  uint64_t order = 0;     // of the last answer that his mount had then
  bool repeated = false;  // an MDS has died since, with it maybe; another one is told again
  bool uprooted = false;  // under way when its user lost what came before it

  [[nodiscard]] bool IsDurableBy(TimePoint now) const {
    return !repeated && when + kDurableWithin < now;
  }
};

class NamePrefix {
 public:
  // `told`: his changes, in their order, as he died; `never_told`: that of which he was not.
  NamePrefix(std::vector<EarlyName> told, std::vector<EarlyName> never_told, TimePoint died);

  // Those that were durable by then can go no more; of the others nothing is sure from then on.
  void MdsDied(TimePoint now);
  // Somebody has seen that value behind a name. `since`: when he began to look. Empty, or what is
  // wrong with it.
  [[nodiscard]] std::string Saw(const Register<uint64_t>& inode, uint64_t value, TimePoint since);
  // How often that told how many changes are left more precisely than before, or was wrong.
  [[nodiscard]] uint64_t informed() const { return informed_; }

 private:
  // As it was when he died: who changes it later has seen it before.
  struct Name {
    const Register<uint64_t>* inode;
    size_t before;  // without any change
    size_t last;    // of the last change
  };
  [[nodiscard]] uint64_t ValueAfter(const Name& name, size_t changes) const;
  void RaiseLeast(TimePoint now);
  // At least so many are there now: the MDS that told him of them lives, or they are durable.
  [[nodiscard]] size_t LeastNow() const;

  std::vector<EarlyName> changed_;
  std::vector<size_t> ends_;  // changed_ up to here are the first k + 1 changes
  std::vector<Name> names_;
  const TimePoint died_;
  size_t told_ = 0;  // of so many changes he was
  size_t least_ = 0, most_ = 0;
  uint64_t informed_ = 0;
};

}  // namespace weir::crash
