#include "tests/crash/cluster/board.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "tests/crash/cluster/actor.h"

namespace weir::crash {

void Board::Wrong(const std::string& what) {
  trace("WRONG " + what);
  if (wrong.empty()) wrong = what;
}

size_t Board::Begins(const Actor* who, Register<uint64_t>& inode, uint64_t value) {
  EarlyName name;
  name.who = who;
  name.inode = &inode;
  name.before = inode.floor();
  name.place = inode.Begin(value);
  under_way.push_back(name);
  return name.place;
}

void Board::Told(const Actor* who) {
  const uint64_t order = who->mount().last_order();
  for (const EarlyName& name : under_way) {
    if (name.who == who) Named(name, order);
  }
  std::erase_if(under_way, [&](const EarlyName& name) { return name.who == who; });
  if (named) named(who);
}

void Board::Named(EarlyName name, uint64_t order) {
  name.when = world.clock.Now();
  name.order = order;
  // It may have told him that before; or has, and he remembers.
  name.repeated = name.repeated || mds_died >= name.who->began();
  name.before = std::min(name.before, name.inode->floor());
  early.push_back(name);
  name.inode->Settle(name.place);
}

// What he has done himself is no more certain for that he sees it.
void Board::FoundOut(const Actor* who, Register<uint64_t>& inode, uint64_t value) {
  const auto last = std::find_if(early.rbegin(), early.rend(), [&](const EarlyName& name) {
    return name.who == who && name.inode == &inode;
  });
  if (last == early.rend()) return inode.Certain(value);
  EarlyName name = *last;
  name.before = inode.floor();
  name.place = inode.Begin(value);
  Named(name, who->mount().last_order());
}

void Board::Saw(const Actor* who, const Register<uint64_t>& inode, uint64_t value,
                TimePoint since) {
  for (NamePrefix& prefix : prefixes) {
    const std::string is_wrong = prefix.Saw(inode, value, since);
    if (!is_wrong.empty()) Wrong(who->name() + ": " + who->doing() + ": " + is_wrong);
  }
  for (size_t i = early.size(); i-- > 0;) {
    if (early[i].who == who || early[i].inode != &inode) continue;
    if (inode.ValueAt(early[i].place) != value) continue;
    const bool may_be_older = value == 0 && since <= early[i].when;  // no name was there before
    if (may_be_older) continue;
    const Actor* const told = early[i].who;
    size_t seen = i + 1;  // so many, of which his are durable
    std::erase_if(early, [&](const EarlyName& name) {
      const bool before = seen > 0;
      seen -= before ? 1 : 0;
      return before && name.who == told;
    });
    return;
  }
}

size_t Board::EarlyChangesOf(const Actor* who) const {
  std::set<uint64_t> orders;
  for (const EarlyName& name : early) {
    if (name.who == who && !who->mount().IsDurable(name.order)) orders.insert(name.order);
  }
  return orders.size();
}

void Board::Closed(const Actor* who, const std::shared_ptr<FileHistory>& file,
                   const FileHistory::Places& after, uint64_t epoch) {
  if (IsFenced(who->mount().session(), epoch)) {
    lost.insert({who, file.get()});
    return;
  }
  closed.push_back({who, file, file->Floors(), after});
  file->Settle(after);
}

bool Board::HasClosed(const Actor* who, const FileHistory& file) const {
  return std::any_of(closed.begin(), closed.end(), [&](const ClosedData& one) {
    return one.who == who && one.file.get() == &file;
  });
}

void Board::Synced(const Actor* who, const FileHistory* file) {
  std::erase_if(closed, [&](const ClosedData& one) {
    return one.who == who && (file == nullptr || one.file.get() == file);
  });
}

void Board::ToldToOthers(const Actor* who, const FileHistory& file) {
  std::erase_if(closed,
                [&](const ClosedData& one) { return one.who != who && one.file.get() == &file; });
}

void Board::MadeLock(const Actor* who) {
  lock_holder = who;
  lock_returner = nullptr;
}

void Board::ReturnedLock(const Actor* who) {
  lock_returner = who;
  returned_order = who->mount().last_order();
}

void Board::Died(const Actor* who) {
  std::vector<EarlyName> never_told;
  std::copy_if(under_way.begin(), under_way.end(), std::back_inserter(never_told),
               [&](const EarlyName& name) { return name.who == who && !name.uprooted; });
  std::erase_if(under_way, [&](const EarlyName& name) { return name.who == who; });
  Lost(who, std::move(never_told));
}

// What he has under way he asks for again under the next map.
void Board::Fenced(uint64_t session, uint64_t epoch) {
  fences[session] = epoch;
  std::set<const Actor*> losers;
  for (const ClosedData& one : closed) losers.insert(one.who);
  for (const EarlyName& name : early) losers.insert(name.who);
  losers.insert(racing.begin(), racing.end());
  for (const Actor* who : {lock_holder, lock_returner}) {
    if (who != nullptr) losers.insert(who);
  }
  for (const Actor* who : losers) {
    if (who->mount().session() == session) Lost(who, {});
  }
  for (EarlyName& name : under_way) {
    name.uprooted = name.uprooted || name.who->mount().session() == session;
  }
}

bool Board::IsFenced(uint64_t session, uint64_t epoch) const {
  const auto found = fences.find(session);
  return found != fences.end() && epoch < found->second;
}

// The last first: each goes back to what was certain before it, unless somebody has gone on.
void Board::Lost(const Actor* who, std::vector<EarlyName> never_told) {
  for (size_t i = closed.size(); i-- > 0;) {
    if (closed[i].who != who) continue;
    closed[i].file->Unsettle(closed[i].before, closed[i].after);
    lost.insert({who, closed[i].file.get()});
  }
  Synced(who, nullptr);
  LoseLock(who);
  ForgetDurable();
  const TimePoint now = world.clock.Now();
  std::vector<EarlyName> told;
  std::copy_if(early.begin(), early.end(), std::back_inserter(told),
               [&](const EarlyName& name) { return name.who == who; });
  if (!told.empty() || !never_told.empty()) prefixes.emplace_back(told, never_told, now);
  for (size_t i = told.size(); i-- > 0;) {
    const EarlyName& name = told[i];
    if (name.IsDurableBy(now)) continue;
    lost_names.insert(who);
    if (name.inode->floor() == name.place) name.inode->Unsettle(name.before);
  }
  std::erase_if(early, [&](const EarlyName& name) { return name.who == who; });
}

// Nobody knows whether it is there: the others race for another one.
void Board::LoseLock(const Actor* who) {
  const bool is_back = lock_returner == who && !who->mount().IsDurable(returned_order);
  if (lock_holder != who && !is_back && racing.erase(who) == 0) return;
  racing.erase(who);
  lock_holder = lock_returner = nullptr;
  ++lock_number;
  lost_names.insert(who);
}

void Board::MdsDied() {
  mds_died = world.clock.Now();
  restarts.push_back({mds_died, TimePoint::Max()});
  ForgetDurable();
  for (NamePrefix& prefix : prefixes) prefix.MdsDied(mds_died);
  for (EarlyName& name : early) name.repeated = name.repeated || !name.IsDurableBy(mds_died);
}

void Board::MdsIsBack() {
  if (!restarts.empty()) restarts.back().end = world.clock.Now() + kRepeatsWithin;
}

void Board::Healed() {
  const TimePoint now = world.clock.Now();
  for (auto& [user, spans] : cuts) {
    for (Span& cut : spans) cut.end = std::min(cut.end, now);
  }
}

bool Board::WasCutOff(const std::string& user, TimePoint since) const {
  const auto found = cuts.find(user);
  return found != cuts.end() && std::any_of(found->second.begin(), found->second.end(),
                                            [since](const Span& cut) { return cut.end >= since; });
}

bool Board::MissedRestart(const std::string& user) const {
  const auto found = cuts.find(user);
  if (found == cuts.end()) return false;
  return std::any_of(restarts.begin(), restarts.end(), [&](const Span& restart) {
    return std::any_of(found->second.begin(), found->second.end(), [&](const Span& cut) {
      return cut.begin <= restart.end && restart.begin <= cut.end;
    });
  });
}

void Board::ForgetDurable() {
  std::erase_if(early,
                [](const EarlyName& name) { return name.who->mount().IsDurable(name.order); });
}

std::shared_ptr<FileHistory> Board::FileOf(Slot::Place& place, uint64_t inode) {
  const auto known = files.find(inode);
  if (known != files.end()) return known->second;
  for (size_t i = place.inode.floor(); i <= place.inode.last(); ++i) {
    if (place.inode.at(i) != kMaking) continue;
    place.inode.at(i) = inode;
    return files[inode] = std::make_shared<FileHistory>(InodeId(inode));
  }
  return nullptr;
}

}  // namespace weir::crash
