// Board: what all users of the simulated cluster know: the files, what was done to them and to
// their names, and what of that a death may take.
// Threads: one.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/crash/cluster/history.h"
#include "tests/crash/cluster/machines.h"
#include "tests/crash/cluster/name_prefix.h"

namespace weir::crash {

class Actor;

// A file that has one of two names, or none.
struct Slot {
  struct Place {
    std::string directory, name;
    Register<uint64_t> inode{0};
  };
  std::array<Place, 2> places;
  const Actor* taken_by = nullptr;
  TimePoint rests_until;  // what a crashed user had on its way may still arrive
};

// What was closed and not synced, of which the others see all: when its user dies it may be lost.
struct ClosedData {
  const Actor* who = nullptr;
  std::shared_ptr<FileHistory> file;
  FileHistory::Places before, after;
};

struct Board {
  static constexpr uint64_t kMaking = UINT64_MAX;  // behind a name: an inode not known yet
  // Who can be heard has asked an MDS that begins anew by then (kResendInterval), and has repeated
  // what he kept, one after the other; or knows that it is lost.
  static constexpr Duration kRepeatsWithin = std::chrono::seconds(6);

  Board(World& the_world, size_t count) : world(the_world), slots(count) {}

  World& world;
  std::vector<Slot> slots;
  std::map<uint64_t, std::shared_ptr<FileHistory>> files;  // by inode
  std::deque<Slot::Place> rows;  // names that were made one right after the other, for good
  uint64_t next_tag = 1;
  int lock_number = 0;
  uint64_t lock_tries = 0;  // to make one
  const Actor* lock_holder = nullptr;
  const Actor* lock_returner = nullptr;  // told that it is removed, and nobody has made it since
  uint64_t returned_order = 0;           // of that answer
  std::set<const Actor*> racing;         // a mkdir or rmdir of the lock is on its way
  bool stopping = false;
  uint64_t operations = 0;
  std::string wrong;  // the first thing that is
  std::function<void(const std::string&)> trace;
  std::function<void(const Actor*)> evicted;  // he dies, and another takes his place
  std::function<void(const Actor*)> named;    // he was told of a change

  std::vector<EarlyName> early;
  std::vector<EarlyName> under_way;  // nobody has been told of these
  std::vector<NamePrefix> prefixes;  // of the dead
  std::vector<ClosedData> closed;
  // What was lost thereby; who syncs or closes such a file next is told of it.
  std::set<std::pair<const Actor*, const FileHistory*>> lost;
  std::set<const Actor*> lost_names;    // who may have lost some of those that he was told of
  std::map<uint64_t, uint64_t> fences;  // of sessions: the epoch of the last one
  struct Span {
    TimePoint begin, end;
  };
  std::map<std::string, std::vector<Span>> cuts;  // users that the MDS could not hear
  std::vector<Span> restarts;  // of the MDS: from its death until whoever it hears has repeated
  TimePoint mds_died{INT64_MIN / 2};

  void Wrong(const std::string& what);
  // `who` begins to put that behind a name; returns its place. What he begins before he is told is
  // one change.
  size_t Begins(const Actor* who, Register<uint64_t>& inode, uint64_t value);
  // He was told that it is done.
  void Told(const Actor* who);
  // Nobody else changes it now, and that is what it is.
  void FoundOut(const Actor* who, Register<uint64_t>& inode, uint64_t value);
  // Somebody who began to look then sees that value: others than who did it do once it is durable,
  // with all before it.
  void Saw(const Actor* who, const Register<uint64_t>& inode, uint64_t value, TimePoint since);
  // How many changes he was told of that he has not heard to be durable.
  [[nodiscard]] size_t EarlyChangesOf(const Actor* who) const;
  // `who` has closed the file, which he opened under a map of that epoch: all of it is certain
  // while he lives, unless it is lost already.
  void Closed(const Actor* who, const std::shared_ptr<FileHistory>& file,
              const FileHistory::Places& after, uint64_t epoch);
  [[nodiscard]] bool HasClosed(const Actor* who, const FileHistory& file) const;
  // It is stored: `who` has synced it; or, for others, is told what they have closed. Null: of all
  // files.
  void Synced(const Actor* who, const FileHistory* file);
  void ToldToOthers(const Actor* who, const FileHistory& file);
  void MadeLock(const Actor* who);
  void ReturnedLock(const Actor* who);
  void Died(const Actor* who);
  void MdsDied();
  void MdsIsBack();
  void Healed();
  // Whether the MDS could not hear that user then or later.
  [[nodiscard]] bool WasCutOff(const std::string& user, TimePoint since) const;
  // Or at a time when he would have had to repeat something to it.
  [[nodiscard]] bool MissedRestart(const std::string& user) const;
  // The MDS has given the session up, with what it closed and what was not durable of its names;
  // its mount may not know yet, and may go on under a later map.
  void Fenced(uint64_t session, uint64_t epoch);
  // Whether that was after a map of that epoch.
  [[nodiscard]] bool IsFenced(uint64_t session, uint64_t epoch) const;
  // The history of that inode behind a name, which may just be being made.
  std::shared_ptr<FileHistory> FileOf(Slot::Place& place, uint64_t inode);

 private:
  void Named(EarlyName name, uint64_t order);
  void Lost(const Actor* who, std::vector<EarlyName> never_told);
  void LoseLock(const Actor* who);
  void ForgetDurable();
};

}  // namespace weir::crash
