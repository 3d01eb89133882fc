#include "tests/crash/cluster/actor.h"

#include <sys/stat.h>

#include <utility>

namespace weir::crash {

Actor::Actor(Board& board, std::string name)
    : board_(board),
      world_(board.world),
      name_(std::move(name)),
      mount_(std::make_unique<SimMount>(board.world, name_)) {}

void Actor::Begin() {
  task_ = Live();
  task_.Start();
}

void Actor::BeginAudit() {
  task_ = Audit();
  task_.Start();
}

void Actor::Crash() {
  board_.Died(this);
  task_ = Task();
  open_ = {};
  mount_->Crash();
  for (Slot& slot : board_.slots) {
    if (slot.taken_by != this) continue;
    slot.taken_by = nullptr;
    slot.rests_until = world_.clock.Now() + Actor::kRest;
  }
}

void Actor::Say(const std::string& what) {
  doing_ = what;
  began_ = world_.clock.Now();
  if (!holds_) since_ = mount_->epoch();
  ++board_.operations;
  board_.trace(name_ + " " + what);
}

// Whom the MDS has given up loses what he has open, and with it what he was not told is safe: what
// he begins later is as it should be. Who has nothing open is not fenced, but may lose his session,
// and with it the means to repeat names: what he has under way then is refused.
bool Actor::WasEvicted(const Status& status) const {
  if (mount_->lost_names()) return board_.MissedRestart(name_);
  const ErrorCode code = status.code();
  const bool is_behind_loss =
      board_.MissedRestart(name_) && board_.WasCutOff(name_, began_ - Board::kRepeatsWithin);
  if (code == ErrorCode::kStale && is_behind_loss && !holds_) return true;
  if (status.ok() || !board_.IsFenced(mount_->session(), since_)) return false;
  const bool as_if_never_done = code == ErrorCode::kNotFound || code == ErrorCode::kExists;
  return code == ErrorCode::kStale || (as_if_never_done && board_.lost_names.contains(this));
}

OnlyIf Actor::Done(const Status& status) {
  if (WasEvicted(status)) return Evicted();
  if (mount_->lost_names()) return Right("the mount has lost names, and has missed no restart");
  return Right(status.ok() ? "" : status.message());
}

OnlyIf Actor::Evicted() {
  board_.Died(this);
  board_.evicted(this);
  return {false};
}

// Whom the MDS has given up believes in what he holds until he hears of it.
OnlyIf Actor::RightIn(const std::string& wrong) {
  if (wrong.empty()) return {true};
  return board_.IsFenced(mount_->session(), since_) ? Evicted() : Right(wrong);
}

void Actor::Holds(const File& file) {
  holds_ = true;
  if (board_.lost.contains({this, file.get()})) since_ = 0;
}

OnlyIf Actor::Right(const std::string& wrong) {
  if (!wrong.empty()) board_.Wrong(name_ + ": " + doing_ + ": " + wrong);
  return {wrong.empty()};
}

OnlyIf Actor::Right(bool is_right, const std::string& otherwise) {
  return is_right ? OnlyIf{true} : Right(otherwise);
}

Answer<bool> Actor::Pause(uint64_t most_us) {
  const Duration pause = world_.Between(1, most_us);
  return Answer<bool>([](std::function<void()> task) { task(); },
                      [this, pause](auto done) { world_.After(pause, [done] { done(true); }); });
}

Task Actor::Live() {
  Say("mounts");
  co_await Done(co_await mount_->Mount());
  if (board_.slots[0].places[0].directory.empty()) co_await SetUp();
  while (!board_.stopping && board_.wrong.empty()) {
    co_await Pause(200'000);
    const uint64_t choice = world_.prng.Uniform(0, 11);
    Slot& slot = board_.slots[world_.prng.Uniform(0, board_.slots.size() - 1)];
    const bool free = slot.taken_by == nullptr && slot.rests_until <= world_.clock.Now();
    if (choice == 0) {
      co_await RaceForLock();
    } else if (choice == 10) {
      co_await MakeRow();
    } else if (choice == 11) {
      co_await LookAtRow();
    } else if (choice < 6 && free) {
      co_await TakeTurn(slot);
    } else {
      co_await LookAt(slot);
    }
  }
  Say("unmounts");
  co_await Done(co_await mount_->Unmount());
  board_.Synced(this, nullptr);
  mount_->Crash();  // it would only open a new session
}

Task Actor::SetUp() {
  const std::pair<const char*, const char*> layout[] = {{"user.weir.layout.stripe_unit", "8192"},
                                                        {"user.weir.layout.object_size", "16384"},
                                                        {"user.weir.layout.stripe_count", "3"}};
  for (const auto& [name, value] : layout) {
    Say(name);
    co_await Done(co_await mount_->SetXattr(mount_->root(), name, value));
  }
  for (size_t i = 0; i < board_.slots.size(); ++i) {
    const std::string own = "s" + std::to_string(i);
    Say("makes directory " + own);
    const Result<Entry> made = co_await mount_->Make(mount_->root(), own, S_IFDIR | 0755);
    co_await Done(made.status());
    board_.slots[i].places[1].directory = "x";
    board_.slots[i].places[1].name = "f" + std::to_string(i);
    board_.slots[i].places[0].name = "f";
    board_.slots[i].places[0].directory = own;
  }
  for (const char* name : {"x", "locks", "user0", "user1", "user2"}) {
    Say(std::string("makes directory ") + name);
    const Result<Entry> made = co_await mount_->Make(mount_->root(), name, S_IFDIR | 0755);
    co_await Done(made.status());
  }
}

Task Actor::FindDirectory(const std::string& name, InodeId* found) {
  Say("looks up " + name);
  const Result<Entry> entry = co_await mount_->Lookup(mount_->root(), name);
  co_await Done(entry.status());
  *found = entry->inode;
  co_await Right(found->value != 0, "it is not there");
}

// Who has made the directory holds the lock until he begins to remove it.
Task Actor::RaceForLock() {
  InodeId parent;
  co_await FindDirectory("locks", &parent);
  const int number = board_.lock_number;
  const std::string lock = "l" + std::to_string(number);
  Say("races for " + lock);
  const bool may_be_there = board_.lock_holder != nullptr || !board_.racing.empty();
  const uint64_t tries = ++board_.lock_tries;
  board_.racing.insert(this);
  const Result<Entry> made = co_await mount_->Make(parent, lock, S_IFDIR | 0755);
  board_.racing.erase(this);
  if (number != board_.lock_number) co_return;  // given up, as one who raced for it is dead
  if (made.status().code() == ErrorCode::kExists) {
    const bool by_others = may_be_there || tries != board_.lock_tries;
    co_await Right(by_others, "the lock is there, and nobody has made it");
    co_return;
  }
  co_await Done(made.status());
  if (board_.lock_holder != nullptr) {
    co_await Right("he has it, and so has " + board_.lock_holder->name());
  }
  board_.MadeLock(this);
  co_await Pause(300'000);
  Say("gives back " + lock);
  board_.racing.insert(this);
  if (board_.lock_holder == this) board_.lock_holder = nullptr;
  const Status removed = co_await mount_->Remove(parent, lock, true);
  board_.racing.erase(this);
  if (number != board_.lock_number) co_return;
  co_await Done(removed);
  if (board_.lock_holder == nullptr) board_.ReturnedLock(this);
}

// In a directory of his own, where nothing makes him wait for others.
Task Actor::MakeRow() {
  InodeId parent;
  co_await FindDirectory(name_, &parent);
  const uint64_t count = world_.prng.Uniform(2, 6);
  for (uint64_t i = 0; i < count; ++i) {
    Slot::Place& place = board_.rows.emplace_back();
    place.directory = name_;
    place.name = "n" + std::to_string(board_.rows.size());
    Say("makes " + place.directory + "/" + place.name);
    board_.Begins(this, place.inode, Board::kMaking);
    const Result<Entry> made = co_await mount_->Make(parent, place.name, S_IFREG | 0644);
    co_await Done(made.status());
    const bool is_new = board_.FileOf(place, made->inode.value) != nullptr &&
                        place.inode.newest() == made->inode.value;
    co_await Right(is_new, "it has the inode of another");
    board_.Told(this);
  }
}

}  // namespace weir::crash
