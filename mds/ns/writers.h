// Writers: the sessions that may have data on its way to OSDs, each under a number that files name
// in their records (InodeRecord.writers). Whoever opens a file for writing may come to buffer what
// he writes; after a restart of ours nobody knows any more who did, but the files tell who may.
//
// A writer that has not come back since the restart is missing: until it has, or has been fenced
// and dropped, nobody else looks at or changes a file that names it, for what it still holds is
// newer than what can be seen and would later overwrite what others write. One that is dropped as
// missing is lost: what it left behind the ends of its files nobody knows.
//
// Numbers count up and are never used again; 0 is no number. Threads: under the NamespaceDb lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "common/base/time.h"
#include "mds/format/ns_values.pb.h"
#include "mds/ns/awaited.h"
#include "mds/ns/sole_writers.h"

namespace weir::mds {

class Writers {
 public:
  // `number` 0: of before writers had numbers.
  void Load(uint64_t session, uint64_t number) {
    numbers_[session] = number;
    missing_[session] = {};
  }
  void LoadLost(uint64_t number) { lost_.insert(number); }
  // Somebody could buffer: files are waited for. Else a missing one is as good as lost.
  void AwaitMissing() { awaits_ = true; }

  [[nodiscard]] bool Knows(uint64_t session) const { return numbers_.contains(session); }
  [[nodiscard]] uint64_t NumberOf(uint64_t session) const {
    const auto found = numbers_.find(session);
    return found == numbers_.end() ? 0 : found->second;
  }
  void Add(uint64_t session, uint64_t number) { numbers_[session] = number; }
  void Remove(uint64_t session) { numbers_.erase(session); }
  void CameBack(uint64_t session) { missing_.erase(session); }
  // The session is dropped. Its number if it is lost thereby; `told_all`: it has nothing left.
  std::optional<uint64_t> Drop(uint64_t session, bool told_all) {
    const uint64_t number = NumberOf(session);
    numbers_.erase(session);
    const bool lost = missing_.erase(session) > 0 && !told_all && number != 0;
    if (!lost) return std::nullopt;
    lost_.insert(number);
    return number;
  }

  [[nodiscard]] std::vector<uint64_t> Missing() const {
    std::vector<uint64_t> sessions;
    for (const auto& [session, awaited] : missing_) sessions.push_back(session);
    return sessions;
  }

  // Missing sessions, besides `asker`, that a file names.
  [[nodiscard]] std::vector<uint64_t> AwaitedBy(uint64_t asker, const InodeRecord& file) const {
    std::vector<uint64_t> awaited;
    if (!awaits_ || missing_.empty()) return awaited;
    for (const auto& [session, since] : missing_) {
      if (session != asker && Names(file, NumberOf(session))) awaited.push_back(session);
    }
    return awaited;
  }
  // Somebody waits for it.
  void Await(uint64_t session, TimePoint now) {
    const auto found = missing_.find(session);
    if (found != missing_.end()) found->second.Ask(now, round_);
  }
  // All that wait ask again now.
  void BeginRound() { ++round_; }
  // Those that somebody, who still waits, has waited for for longer than that.
  [[nodiscard]] std::vector<uint64_t> Overdue(TimePoint now, Duration patience) const {
    std::vector<uint64_t> overdue;
    for (const auto& [session, awaited] : missing_) {
      if (awaited.ForLongerThan(patience, now, round_)) overdue.push_back(session);
    }
    return overdue;
  }

  [[nodiscard]] SoleWriters& sole() { return sole_; }

  // Whether somebody who is lost may have left something behind the end of the file.
  [[nodiscard]] bool MayHaveLooseEnd(const InodeRecord& file) const {
    return std::any_of(file.writers().begin(), file.writers().end(),
                       [this](uint64_t number) { return IsLost(number); });
  }
  // That is cut off now.
  void ForgetLost(InodeRecord* file) const {
    auto* writers = file->mutable_writers();
    writers->erase(std::remove_if(writers->begin(), writers->end(),
                                  [this](uint64_t number) { return IsLost(number); }),
                   writers->end());
  }

 private:
  static bool Names(const InodeRecord& file, uint64_t number) {
    return std::find(file.writers().begin(), file.writers().end(), number) != file.writers().end();
  }
  [[nodiscard]] bool IsLost(uint64_t number) const {
    if (lost_.contains(number)) return true;
    return !awaits_ && std::any_of(missing_.begin(), missing_.end(), [&](const auto& entry) {
      return NumberOf(entry.first) == number;
    });
  }

  std::map<uint64_t, uint64_t> numbers_;  // by session: Table::kWriter
  std::map<uint64_t, Awaited> missing_;   // by session
  uint64_t round_ = 1;
  std::set<uint64_t> lost_;  // numbers: Table::kLostWriter
  bool awaits_ = false;
  SoleWriters sole_;
};

}  // namespace weir::mds
