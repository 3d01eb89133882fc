// Leases of the MDS and caches of several mounts together, over a network that delays and reorders:
// whatever a mount says by itself is what the MDS would say at that moment.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/vfs/dir_cache.h"
#include "common/base/prng.h"
#include "common/testing/manual_clock.h"
#include "common/testing/seed.h"
#include "common/wire/mds.pb.h"
#include "mds/ns/dir_leases.h"

namespace weir::mds {
namespace {

using namespace std::chrono_literals;
using client::DirCache;

constexpr uint64_t kRoot = 1;
constexpr size_t kMounts = 3;

class World {
 public:
  explicit World(uint64_t seed) : prng_(seed) {
    constexpr double kLoss[] = {0.005, 0.05, 0.2};
    constexpr uint64_t kPauseUs[] = {2'000, 20'000, 60'000};
    loss_ = kLoss[seed % 3];
    longest_pause_us_ = kPauseUs[seed / 3 % 3];
    last_name_ = seed / 9 % 2 == 0 ? 2 : 5;
    directories_[kRoot] = {};
    for (size_t i = 0; i < kMounts; ++i) {
      mounts_.push_back(std::make_unique<DirCache>(clock_));
      mounts_[i]->BeginSession(leases_.Begin(Session(i)), clock_.Now());
      Watch(i);
    }
    After(100ms, [this] { Tick(); });
  }
  void Run(Duration time) {
    const TimePoint end = clock_.Now() + time;
    while (!events_.empty() && events_.begin()->first < end) {
      const auto event = events_.extract(events_.begin());
      clock_.Advance(event.key() - clock_.Now());
      event.mapped()();
    }
  }
  void StartLoad() {
    for (size_t i = 0; i < kMounts; ++i) Load(i);
  }
  uint64_t said_absent = 0, said_directory = 0, changed = 0, longest_wait_ms = 0;

 private:
  struct Parked {
    size_t mount;
    std::vector<uint64_t> directories;
    TimePoint since;
    std::function<void()> run;
  };
  static uint64_t Session(size_t mount) { return 100 + mount; }

  void After(Duration delay, std::function<void()> run) {
    events_.emplace(clock_.Now() + delay, std::move(run));
  }
  // Mostly a millisecond; when the connection is lost, seconds.
  Duration Latency() {
    if (prng_.Chance(loss_)) return Duration(std::chrono::milliseconds(prng_.Uniform(100, 6000)));
    return Duration(std::chrono::microseconds(prng_.Uniform(50, 3000)));
  }
  void Tick() {
    leases_.Tick();
    Retry();
    FlushWatches();
    After(100ms, [this] { Tick(); });
  }

  // WATCH of one mount, over and over.
  void Watch(size_t mount) {
    const TimePoint asked = clock_.Now();
    const uint64_t obeyed = mounts_[mount]->obeyed();
    After(Latency(), [this, mount, asked, obeyed] {
      if (leases_.Obeyed(Session(mount), obeyed)) Retry();
      watches_[mount] = {obeyed, asked, clock_.Now() + 500ms};
      FlushWatches();
    });
  }
  void FlushWatches() {
    for (auto it = watches_.begin(); it != watches_.end();) {
      const auto [mount, held] = *it;
      if (!leases_.HasRecalls(Session(mount), held.obeyed) && clock_.Now() < held.until) {
        ++it;
        continue;
      }
      it = watches_.erase(it);
      After(Latency(),
            [this, mount = mount, asked = held.asked, recall = leases_.RecallsOf(Session(mount))] {
              std::vector<InodeId> recalled;
              for (const uint64_t directory : recall.directories) recalled.emplace_back(directory);
              mounts_[mount]->Renew(recall.epoch, recall.seq, recalled, asked);
              Watch(mount);
            });
    }
  }

  // A change at the MDS, when nobody's lease is in the way.
  void Execute(Parked request) {
    if (leases_.InTheWay(Session(request.mount), request.directories)) {
      parked_.push_back(std::move(request));
      FlushWatches();
      return;
    }
    const auto waited = (clock_.Now() - request.since).count() / 1'000'000;
    longest_wait_ms = std::max(longest_wait_ms, static_cast<uint64_t>(waited));
    request.run();
  }
  void Retry() {
    for (Parked& request : std::exchange(parked_, {})) Execute(std::move(request));
  }

  void Grant(size_t mount, uint64_t directory, wire::EntryReply* reply) {
    reply->mutable_attr()->set_inode(directory);
    reply->mutable_attr()->set_mode(S_IFDIR | 0755);
    const auto grant = leases_.TryGrant(Session(mount), directory);
    if (!grant.has_value()) return;
    reply->mutable_lease()->set_epoch(grant->epoch);
    reply->mutable_lease()->set_seq(grant->seq);
    reply->mutable_lease()->set_empty(directories_.at(directory).empty());
  }

  void Load(size_t mount) {
    const uint64_t directory = AnyDirectory();
    const std::string name(1, static_cast<char>('a' + prng_.Uniform(0, last_name_)));
    switch (prng_.Uniform(0, 39)) {
      case 0:
        Make(mount, directory, name);
        break;
      case 1:
        Remove(mount, directory, name);
        break;
      case 2:
        Rename(mount, directory, name);
        break;
      default:
        LookUp(mount, directory, name);
    }
    After(Duration(std::chrono::microseconds(prng_.Uniform(100, longest_pause_us_))),
          [this, mount] { Load(mount); });
  }
  uint64_t AnyDirectory() {
    auto it = directories_.begin();
    std::advance(it, prng_.Uniform(0, directories_.size() - 1));
    return it->first;
  }

  void LookUp(size_t mount, uint64_t directory, const std::string& name) {
    const auto look = mounts_[mount]->Find(InodeId(directory), name, wire::Caller());
    const auto& names = directories_.at(directory);
    const auto truth = names.find(name);
    if (look.kind == DirCache::Look::Kind::kAbsent) {
      ++said_absent;
      ASSERT_TRUE(truth == names.end()) << "mount " << mount << " denied " << name;
    } else if (look.kind == DirCache::Look::Kind::kDirectory) {
      ++said_directory;
      ASSERT_TRUE(truth != names.end()) << "mount " << mount << " sees " << name << ", removed";
      ASSERT_EQ(look.attr.inode.value, truth->second);
    } else {
      AskMds(mount, directory, prng_.Chance(0.2) ? "." : name);
    }
  }
  void AskMds(size_t mount, uint64_t directory, const std::string& name) {
    auto asking = mounts_[mount]->Ask(InodeId(name == "." ? 0 : directory));
    After(Latency(), [=, this] {
      wire::EntryReply reply;
      const auto& names = directories_.at(directory);
      if (name == ".") {
        Grant(mount, directory, &reply);
      } else if (names.contains(name)) {
        Grant(mount, names.at(name), &reply);
      }
      After(Latency(), [=, this] { mounts_[mount]->Learn(*asking, name, reply); });
    });
  }
  void Make(size_t mount, uint64_t directory, const std::string& name) {
    auto asking = mounts_[mount]->Ask(InodeId(directory));
    auto changing = mounts_[mount]->BeginChange({{DirCache::Kind::kAdd, InodeId(directory), name}});
    After(Latency(), [=, this] {
      Execute({mount, {directory}, clock_.Now(), [=, this] {
                 wire::EntryReply reply;
                 if (directories_.size() < 30 &&
                     directories_.at(directory).try_emplace(name, next_inode_).second) {
                   ++changed;
                   directories_[next_inode_] = {};
                   Grant(mount, next_inode_++, &reply);
                 }
                 After(Latency(), [=, this] {
                   mounts_[mount]->Learn(*asking, name, reply);
                   (void)changing;
                 });
               }});
    });
  }
  void Remove(size_t mount, uint64_t directory, const std::string& name) {
    auto changing =
        mounts_[mount]->BeginChange({{DirCache::Kind::kRemove, InodeId(directory), name}});
    After(Latency(), [=, this] {
      Execute({mount, {directory}, clock_.Now(), [=, this] {
                 auto& names = directories_.at(directory);
                 const auto found = names.find(name);
                 // Removed directories stay, as for somebody whose working directory they are.
                 if (found != names.end() && directories_.at(found->second).empty()) {
                   names.erase(found);
                   ++changed;
                 }
                 After(Latency(), [changing] {});
               }});
    });
  }
  void Rename(size_t mount, uint64_t from, const std::string& name) {
    const uint64_t to = AnyDirectory();
    const std::string new_name(1, static_cast<char>('a' + prng_.Uniform(0, last_name_)));
    using Kind = DirCache::Kind;
    auto changing = mounts_[mount]->BeginChange({{Kind::kRemove, InodeId(from), name},
                                                 {Kind::kAdd, InodeId(from), name},
                                                 {Kind::kRemove, InodeId(to), new_name},
                                                 {Kind::kAdd, InodeId(to), new_name}});
    After(Latency(), [=, this] {
      Execute({mount, {from, to}, clock_.Now(), [=, this] {
                 auto& names = directories_.at(from);
                 const auto found = names.find(name);
                 if (found != names.end() && !directories_.at(to).contains(new_name)) {
                   directories_.at(to)[new_name] = found->second;
                   names.erase(name);
                   ++changed;
                 }
                 After(Latency(), [changing] {});
               }});
    });
  }

  struct HeldWatch {
    uint64_t obeyed;
    TimePoint asked;
    TimePoint until;
  };
  ::weir::testing::ManualClock clock_;
  Prng prng_;
  DirLeases leases_{clock_};
  std::vector<std::unique_ptr<DirCache>> mounts_;           // outlive what is on its way to them
  std::multimap<TimePoint, std::function<void()>> events_;  // those of one moment in their order
  double loss_;                                             // of a message, until it is sent again
  uint64_t longest_pause_us_;
  uint64_t last_name_;
  std::map<size_t, HeldWatch> watches_;
  std::vector<Parked> parked_;
  std::map<uint64_t, std::map<std::string, uint64_t>> directories_;
  uint64_t next_inode_ = 2;
};

TEST(DirLeasesPropertyTest, WhatAMountSaysByItselfIsTrue) {
  const uint64_t first = ::weir::testing::TestSeed(1);
  uint64_t absent = 0, directory = 0, changed = 0;
  for (uint64_t seed = first; seed < first + 36; ++seed) {
    SCOPED_TRACE(seed);
    World world(seed);
    world.StartLoad();
    world.Run(60s);
    ASSERT_FALSE(HasFatalFailure());
    EXPECT_LE(world.longest_wait_ms, 2200u);
    absent += world.said_absent;
    directory += world.said_directory;
    changed += world.changed;
  }
  EXPECT_GT(absent, 1000u);
  EXPECT_GT(directory, 100u);
  EXPECT_GT(changed, 1000u);
}

}  // namespace
}  // namespace weir::mds
