#include "tests/crash/cluster/actor.h"

#include <sys/stat.h>

#include <utility>

namespace weir::crash {
namespace {

constexpr uint64_t kBlock = FileHistory::kBlockBytes;

}  // namespace

void Board::Wrong(const std::string& what) {
  trace("WRONG " + what);
  if (wrong.empty()) wrong = what;
}

void Board::Named(const Actor* who, Register<uint64_t>& inode, size_t place) {
  EarlyName name{who, &inode, place, inode.floor(), world.clock.Now(), who->mount().last_order()};
  name.repeated = mds_died >= who->began();  // it may have told him that before
  early.push_back(name);
  inode.Settle(place);
}

// What he has done himself is no more certain for that he sees it.
void Board::FoundOut(const Actor* who, Register<uint64_t>& inode, uint64_t value) {
  const bool is_early = std::any_of(early.begin(), early.end(), [&](const EarlyName& name) {
    return name.who == who && name.inode == &inode;
  });
  if (is_early) {
    Named(who, inode, inode.Begin(value));
  } else {
    inode.Certain(value);
  }
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

void Board::Closed(const Actor* who, const std::shared_ptr<FileHistory>& file,
                   const FileHistory::Places& after) {
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
  for (size_t i = closed.size(); i-- > 0;) {
    const ClosedData& one = closed[i];
    const bool his = one.who == who || one.file.get() != &file;
    if (!his && is_fenced(one.who->mount().session())) one.file->Unsettle(one.before, one.after);
  }
  std::erase_if(closed,
                [&](const ClosedData& one) { return one.who != who && one.file.get() == &file; });
}

void Board::Died(const Actor* who) {
  for (size_t i = closed.size(); i-- > 0;) {
    if (closed[i].who == who) closed[i].file->Unsettle(closed[i].before, closed[i].after);
  }
  Synced(who, nullptr);
  ForgetDurable();
  std::vector<EarlyName> told;
  std::copy_if(early.begin(), early.end(), std::back_inserter(told),
               [&](const EarlyName& name) { return name.who == who && !name.orphaned; });
  if (!told.empty()) prefixes.emplace_back(std::move(told), world.clock.Now()).MdsDied(mds_died);
  for (EarlyName& name : early) name.orphaned = name.orphaned || name.who == who;
  UndoOrphaned();
}

void Board::MdsDied() {
  mds_died = world.clock.Now();
  ForgetDurable();
  for (NamePrefix& prefix : prefixes) prefix.MdsDied(mds_died);
  for (EarlyName& name : early) {
    name.repeated = name.repeated || (!name.orphaned && name.DurableAt() >= mds_died);
  }
  UndoOrphaned();
}

void Board::ForgetDurable() {
  std::erase_if(early, [](const EarlyName& name) {
    return !name.orphaned && name.who->mount().IsDurable(name.order);
  });
}

// The last first: each goes back to what was certain before it, unless somebody has gone on.
void Board::UndoOrphaned() {
  for (size_t i = early.size(); i-- > 0;) {
    const EarlyName& name = early[i];
    const bool must_last = !name.repeated && name.DurableAt() < mds_died;
    if (!name.orphaned || must_last) continue;
    if (name.inode->floor() == name.place) name.inode->Unsettle(name.before);
    given_back.insert(name.inode->ValueAt(name.place));
    early.erase(early.begin() + static_cast<ptrdiff_t>(i));
  }
}

std::shared_ptr<FileHistory> Board::FileOf(Slot::Place& place, uint64_t inode) {
  const auto known = files.find(inode);
  if (known != files.end()) return known->second;
  for (size_t i = place.inode.floor(); i <= place.inode.last(); ++i) {
    if (place.inode.at(i) != Actor::kMaking) continue;
    place.inode.at(i) = inode;
    return files[inode] = std::make_shared<FileHistory>(InodeId(inode));
  }
  return nullptr;
}

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
  if (board_.lock_holder != this && board_.racing.erase(this) == 0) return;
  // Nobody knows whether it is there: the others race for another one.
  board_.lock_holder = nullptr;
  ++board_.lock_number;
}

void Actor::Say(const std::string& what) {
  doing_ = what;
  began_ = world_.clock.Now();
  ++board_.operations;
  board_.trace(name_ + " " + what);
}

// Who is cut off for long loses what he has open, and with it what he was not told is safe.
bool Actor::WasEvicted(const Status& status) const {
  if (board_.cuts == 0) return false;
  if (mount_->lost_names()) return true;
  return (status.code() == ErrorCode::kStale && open_.handle != nullptr) ||
         (!status.ok() && board_.is_fenced(mount_->session()));
}

bool Actor::Ok(const Status& status) {
  const bool was_evicted = WasEvicted(status);
  if (status.ok() && !was_evicted) return true;
  if (was_evicted) {
    board_.Died(this);  // what he does meanwhile is of no use to anybody
    board_.evicted(this);
    return false;
  }
  board_.Wrong(name_ + ": " + doing_ + ": " + status.message());
  return false;
}

Answer<bool> Actor::Pause(uint64_t most_us) {
  const Duration pause = world_.Between(1, most_us);
  return Answer<bool>([](std::function<void()> task) { task(); },
                      [this, pause](auto done) { world_.After(pause, [done] { done(true); }); });
}

Task Actor::Live() {
  Say("mounts");
  const Status mounted = co_await mount_->Mount();
  if (!Ok(mounted)) co_return;
  if (board_.slots[0].places[0].directory.empty()) co_await SetUp();
  while (!board_.stopping && board_.wrong.empty()) {
    co_await Pause(200'000);
    const uint64_t choice = world_.prng.Uniform(0, 9);
    Slot& slot = board_.slots[world_.prng.Uniform(0, board_.slots.size() - 1)];
    const bool free = slot.taken_by == nullptr && slot.rests_until <= world_.clock.Now();
    if (choice == 0) {
      co_await RaceForLock();
    } else if (choice < 6 && free) {
      co_await TakeTurn(slot);
    } else {
      co_await LookAt(slot);
    }
  }
  Say("unmounts");
  const Status unmounted = co_await mount_->Unmount();
  if (Ok(unmounted)) board_.Synced(this, nullptr);
  mount_->Crash();  // it would only open a new session
}

Task Actor::SetUp() {
  const std::pair<const char*, const char*> layout[] = {{"user.weir.layout.stripe_unit", "8192"},
                                                        {"user.weir.layout.object_size", "16384"},
                                                        {"user.weir.layout.stripe_count", "3"}};
  for (const auto& [name, value] : layout) {
    Say(name);
    const Status set = co_await mount_->SetXattr(mount_->root(), name, value);
    if (!Ok(set)) co_return;
  }
  for (size_t i = 0; i < board_.slots.size(); ++i) {
    const std::string own = "s" + std::to_string(i);
    Say("makes directory " + own);
    const Result<Entry> made = co_await mount_->Make(mount_->root(), own, S_IFDIR | 0755);
    if (!Ok(made.status())) co_return;
    board_.slots[i].places[1].directory = "x";
    board_.slots[i].places[1].name = "f" + std::to_string(i);
    board_.slots[i].places[0].name = "f";
    board_.slots[i].places[0].directory = own;
  }
  for (const char* name : {"x", "locks"}) {
    Say(std::string("makes directory ") + name);
    const Result<Entry> made = co_await mount_->Make(mount_->root(), name, S_IFDIR | 0755);
    if (!Ok(made.status())) co_return;
  }
}

Task Actor::FindDirectory(const std::string& name, InodeId* found) {
  Say("looks up " + name);
  const Result<Entry> entry = co_await mount_->Lookup(mount_->root(), name);
  if (!Ok(entry.status())) co_return;
  *found = entry->inode;
  if (found->value == 0) board_.Wrong(name_ + ": directory " + name + " is not there");
}

// Nobody else changes that name now: what is seen is certain from here on.
Task Actor::FindOut(Slot::Place& place, InodeId* parent) {
  co_await FindDirectory(place.directory, parent);
  if (parent->value == 0) co_return;
  Say("looks up " + place.directory + "/" + place.name);
  const size_t floor = place.inode.floor();
  const TimePoint since = world_.clock.Now();
  const Result<Entry> entry = co_await mount_->Lookup(*parent, place.name);
  if (!Ok(entry.status())) co_return;
  const uint64_t inode = entry->inode.value;
  if (inode != 0) board_.FileOf(place, inode);
  // Meanwhile somebody may have died, and what he did be undone.
  if (!place.inode.Allows(inode, std::min(floor, place.inode.floor()))) {
    board_.Wrong(name_ + ": " + place.directory + "/" + place.name + " is inode " +
                 std::to_string(inode) + " and may be " + place.inode.Describe(floor));
  }
  board_.Saw(this, place.inode, inode, since);
  board_.FoundOut(this, place.inode, inode);
}

Task Actor::TakeTurn(Slot& slot) {
  slot.taken_by = this;
  open_ = {};
  for (size_t k = 0; k < 2; ++k) {
    co_await FindOut(slot.places[k], &open_.parents[k]);
    if (!board_.wrong.empty()) co_return;
  }
  co_await Obtain(slot);
  if (open_.handle == nullptr) co_return;
  co_await WorkOn();
  if (!board_.wrong.empty()) co_return;
  co_await LeaveIt(slot);
  slot.taken_by = nullptr;
}

Task Actor::Obtain(Slot& slot) {
  const uint64_t inodes[2] = {slot.places[0].inode.newest(), slot.places[1].inode.newest()};
  if (inodes[0] != 0 && inodes[1] != 0) {
    board_.Wrong(name_ + ": both names are there of " + slot.places[0].directory);
    co_return;
  }
  const bool make = inodes[0] == 0 && inodes[1] == 0;
  const size_t k = make ? world_.prng.Uniform(0, 1) : inodes[0] != 0 ? 0U : 1U;
  Slot::Place& place = slot.places[k];
  open_.place = &place;
  client::HandlePtr handle;
  if (make) {
    Say("creates " + place.directory + "/" + place.name);
    const size_t at = place.inode.Begin(kMaking);
    const auto made = co_await mount_->Create(open_.parents[k], place.name, true);
    if (!Ok(made.status())) co_return;
    handle = *made;
    const uint64_t inode = handle->inode->id().value;
    if (board_.given_back.erase(inode) != 0) board_.files.erase(inode);
    open_.file = board_.FileOf(place, inode);
    if (open_.file == nullptr || place.inode.at(at) != inode) {
      board_.Wrong(name_ + ": a new file has the inode " + std::to_string(inode) + " of another");
      co_return;
    }
    board_.Named(this, place.inode, at);
    open_.floors = open_.file->Floors();
  } else {
    Say("opens inode " + std::to_string(inodes[k]));
    open_.file = board_.files.at(inodes[k]);
    open_.floors = open_.file->Floors();
    const auto opened = co_await mount_->Open(InodeId(inodes[k]));
    if (!Ok(opened.status())) co_return;
    handle = *opened;
    board_.ToldToOthers(this, *open_.file);
    open_.floors = FileHistory::Lower(open_.floors, open_.file->Floors());
  }
  const FileHistory::Places before = open_.file->Floors();
  const std::string size = open_.file->SeeSize(handle->inode->size(), &open_.floors);
  if (!size.empty()) board_.Wrong(name_ + ": " + doing_ + ": " + size);
  const uint32_t bits = handle->inode->attr().mode & 0777;
  const std::string mode = open_.file->SeeMode(bits, &open_.floors);
  if (!mode.empty()) board_.Wrong(name_ + ": " + doing_ + ": " + mode);
  if (board_.HasClosed(this, *open_.file)) {
    board_.closed.push_back({this, open_.file, before, open_.file->Floors()});
  }
  open_.handle = handle;
}

Task Actor::WorkOn() {
  const uint64_t steps = world_.prng.Uniform(1, 12);
  for (uint64_t step = 0; step < steps && board_.wrong.empty(); ++step) {
    co_await Pause(world_.prng.Chance(0.1) ? 3'000'000U : 30'000U);
    const uint64_t choice = world_.prng.Uniform(0, 10);
    if (choice == 10) {
      co_await SetMode();
    } else if (choice < 6) {
      co_await WriteSome();
    } else if (choice < 7) {
      Say("syncs inode " + std::to_string(open_.file->inode().value));
      const Status synced = co_await mount_->Sync(open_.handle);
      if (!Ok(synced)) co_return;
      open_.file->Settle(open_.floors);
      board_.Synced(this, open_.file.get());
    } else if (choice < 9) {
      co_await ReadSome(open_.handle, open_.file, open_.floors);
    } else {
      const size_t blocks = world_.prng.Uniform(0, FileHistory::kBlocks - 1);
      Say("truncates inode " + std::to_string(open_.file->inode().value) + " to " +
          std::to_string(blocks * kBlock));
      open_.file->BeginTruncate(blocks);
      // Growing cuts nothing off, not even what a dead user has left behind the end.
      const bool cuts = open_.handle->inode->size() >= blocks * kBlock;
      const Status cut = co_await mount_->Truncate(open_.handle, blocks * kBlock);
      if (!Ok(cut)) co_return;
      // Not what was written before: the next sync or close may tell that it is lost.
      FileHistory::Places certain = open_.file->Floors();
      for (FileHistory::Places* places : {&open_.floors, &certain}) {
        Raise(places, blocks, cuts ? FileHistory::kBlocks : blocks);
      }
      open_.file->Settle(certain);
    }
  }
}

Task Actor::WriteSome() {
  const size_t block = world_.prng.Uniform(0, FileHistory::kBlocks - 1);
  const size_t count = world_.prng.Uniform(1, std::min<uint64_t>(5, FileHistory::kBlocks - block));
  const uint64_t tag = board_.next_tag++;
  Say("writes " + std::to_string(tag) + " to inode " + std::to_string(open_.file->inode().value) +
      " blocks " + std::to_string(block) + "+" + std::to_string(count));
  const std::string bytes = open_.file->BeginWrite(block, count, tag);
  const Status written = co_await mount_->Write(open_.handle, block * kBlock, bytes);
  if (Ok(written)) Raise(&open_.floors, block, block + count);
}

Task Actor::SetMode() {
  const auto mode = static_cast<uint32_t>(world_.prng.Uniform(0, 0777));
  Say("sets the mode of inode " + std::to_string(open_.file->inode().value) + " to " +
      std::to_string(mode));
  open_.file->BeginMode(mode);
  const Status set = co_await mount_->SetMode(open_.handle, mode);
  if (Ok(set)) open_.floors.mode = open_.file->Newest().mode;
}

// Only that: what a crashed user had under way elsewhere in the file stays as uncertain as it was.
void Actor::Raise(FileHistory::Places* places, size_t begin, size_t end) const {
  const FileHistory::Places newest = open_.file->Newest();
  places->size = newest.size;
  for (size_t i = begin; i < end; ++i) places->blocks[i] = newest.blocks[i];
}

Task Actor::LeaveIt(Slot& slot) {
  const uint64_t choice = world_.prng.Uniform(0, 9);
  if (choice == 0) {
    co_await Unlink();
    if (!board_.wrong.empty()) co_return;
    co_await ReadSome(open_.handle, open_.file, open_.floors);
    if (!board_.wrong.empty()) co_return;
    co_await WriteSome();
    if (!board_.wrong.empty()) co_return;
  }
  Say("closes inode " + std::to_string(open_.file->inode().value));
  const Status closed = co_await mount_->Close(open_.handle);
  if (!Ok(closed)) co_return;
  board_.Closed(this, open_.file, open_.floors);
  // By its name, while the mount may still count it as open.
  if (choice > 7) co_await SetMode();
  open_.handle = nullptr;
  if (choice == 1 || choice == 2) co_await Unlink();
  if (choice < 3 || choice > 5) co_return;
  const size_t from = open_.place == &slot.places[0] ? 0 : 1;
  Slot::Place& target = slot.places[1 - from];
  Say("renames " + open_.place->directory + "/" + open_.place->name + " to " + target.directory);
  const size_t gone = open_.place->inode.Begin(0);
  const size_t come = target.inode.Begin(open_.file->inode().value);
  const Status renamed = co_await mount_->Rename(open_.parents[from], open_.place->name,
                                                 open_.parents[1 - from], target.name);
  if (!Ok(renamed)) co_return;
  board_.Named(this, open_.place->inode, gone);
  board_.Named(this, target.inode, come);
}

Task Actor::Unlink() {
  Say("unlinks " + open_.place->directory + "/" + open_.place->name);
  open_.file->unlinked = true;
  const size_t gone = open_.place->inode.Begin(0);
  const InodeId parent = open_.place->directory == "x" ? open_.parents[1] : open_.parents[0];
  const Status removed = co_await mount_->Remove(parent, open_.place->name, false);
  if (Ok(removed)) board_.Named(this, open_.place->inode, gone);
}

// Who has made the directory holds the lock until he begins to remove it.
Task Actor::RaceForLock() {
  InodeId parent;
  co_await FindDirectory("locks", &parent);
  if (parent.value == 0) co_return;
  const int number = board_.lock_number;
  const std::string lock = "l" + std::to_string(number);
  Say("races for " + lock);
  board_.racing.insert(this);
  const Result<Entry> made = co_await mount_->Make(parent, lock, S_IFDIR | 0755);
  board_.racing.erase(this);
  if (number != board_.lock_number) co_return;  // given up, as one who raced for it is dead
  if (made.status().code() == ErrorCode::kExists) co_return;
  if (!Ok(made.status())) co_return;
  if (board_.lock_holder != nullptr) {
    board_.Wrong(name_ + ": has " + lock + ", and so has " + board_.lock_holder->name());
    co_return;
  }
  board_.lock_holder = this;
  co_await Pause(300'000);
  Say("gives back " + lock);
  board_.racing.insert(this);
  if (board_.lock_holder == this) board_.lock_holder = nullptr;
  const Status removed = co_await mount_->Remove(parent, lock, true);
  board_.racing.erase(this);
  if (number == board_.lock_number) Ok(removed);
}

Task Actor::Audit() {
  Say("mounts for the audit");
  const Status mounted = co_await mount_->Mount();
  if (!Ok(mounted)) co_return;
  std::map<std::string, std::set<std::string>> names;
  for (Slot& slot : board_.slots) {
    co_await AuditSlot(slot, &names);
    if (!board_.wrong.empty()) co_return;
  }
  for (const auto& [directory, expected] : names) {
    InodeId inode;
    co_await FindDirectory(directory, &inode);
    if (inode.value == 0) co_return;
    Say("lists " + directory);
    const auto listed = co_await mount_->List(inode);
    if (!Ok(listed.status())) co_return;
    const std::set<std::string> found(listed->begin(), listed->end());
    if (found != expected)
      board_.Wrong("directory " + directory + " lists other names than it has");
  }
  Say("unmounts after the audit");
  const Status unmounted = co_await mount_->Unmount();
  Ok(unmounted);
  mount_->Crash();
}

Task Actor::AuditSlot(Slot& slot, std::map<std::string, std::set<std::string>>* names) {
  for (Slot::Place& place : slot.places) {
    InodeId parent;
    co_await FindOut(place, &parent);
    if (!board_.wrong.empty()) co_return;
    auto& listed = (*names)[place.directory];
    const uint64_t inode = place.inode.newest();
    if (inode == 0) continue;
    listed.insert(place.name);
    co_await AuditFile(InodeId(inode), board_.files.at(inode));
    if (!board_.wrong.empty()) co_return;
  }
}

Task Actor::AuditFile(InodeId inode, File file) {
  Say("audits inode " + std::to_string(inode.value));
  const FileHistory::Places floors = file->Floors();
  const auto opened = co_await mount_->Open(inode);
  if (!Ok(opened.status())) co_return;
  const client::HandlePtr& handle = *opened;
  const uint64_t length = FileHistory::kBlocks * kBlock;
  const Result<Bytes> bytes = co_await mount_->Read(handle, 0, length);
  if (!Ok(bytes.status())) co_return;
  std::string wrong = file->Check(0, length, *bytes, floors);
  if (wrong.empty()) wrong = file->CheckMode(handle->inode->attr().mode & 0777, floors);
  if (!wrong.empty()) board_.Wrong("at the end: " + wrong);
  const Status closed = co_await mount_->Close(handle);
  Ok(closed);
}

}  // namespace weir::crash
