// How a user takes his turn at a file.
#include <algorithm>

#include "tests/crash/cluster/actor.h"

namespace weir::crash {
namespace {

constexpr uint64_t kBlock = FileHistory::kBlockBytes;

}  // namespace

Task Actor::TakeTurn(Slot& slot) {
  slot.taken_by = this;
  open_ = {};
  const uint64_t since = mount_->epoch();
  for (size_t k = 0; k < 2; ++k) co_await FindOut(slot.places[k], &open_.parents[k]);
  const bool both = slot.places[0].inode.newest() != 0 && slot.places[1].inode.newest() != 0;
  if (both && board_.IsFenced(mount_->session(), since)) {
    co_await Evicted();  // one he has seen before a rename of his was lost, the other behind that
  }
  co_await Right(!both, "both names are there of " + slot.places[0].directory);
  co_await Obtain(slot);
  co_await WorkOn();
  co_await LeaveIt(slot);
  slot.taken_by = nullptr;
}

// Nobody else changes that name now: what is seen is certain from here on.
Task Actor::FindOut(Slot::Place& place, InodeId* parent) {
  uint64_t inode = 0;
  co_await LookUp(place, parent, &inode);
  board_.FoundOut(this, place.inode, inode);
}

Task Actor::Obtain(Slot& slot) {
  const uint64_t inodes[2] = {slot.places[0].inode.newest(), slot.places[1].inode.newest()};
  const bool make = inodes[0] == 0 && inodes[1] == 0;
  const size_t k = make ? world_.prng.Uniform(0, 1) : inodes[0] != 0 ? 0U : 1U;
  open_.place = &slot.places[k];
  if (make) {
    co_await Make(slot, k);
  } else {
    co_await OpenOwn(InodeId(inodes[k]));
  }
  const FileHistory::Places before = open_.file->Floors();
  const client::Inode& inode = *open_.handle->inode;
  co_await RightIn(open_.file->SeeSize(inode.size(), &open_.floors));
  co_await RightIn(open_.file->SeeMode(inode.attr().mode & 0777, &open_.floors));
  // He sees it, and it is not stored yet.
  if (board_.HasClosed(this, *open_.file) || board_.lost.contains({this, open_.file.get()})) {
    board_.closed.push_back({this, open_.file, before, open_.file->Floors()});
  }
}

Task Actor::Make(Slot& slot, size_t k) {
  Slot::Place& place = slot.places[k];
  Say("creates " + place.directory + "/" + place.name);
  const size_t at = board_.Begins(this, place.inode, Board::kMaking);
  const auto made = co_await mount_->Create(open_.parents[k], place.name, true);
  co_await Done(made.status());
  open_.handle = *made;
  const uint64_t inode = open_.handle->inode->id().value;
  open_.file = board_.FileOf(place, inode);
  const bool is_new = open_.file != nullptr && place.inode.at(at) == inode;
  co_await Right(is_new, "it has the inode " + std::to_string(inode) + " of another");
  board_.Told(this);
  Holds(open_.file);
  open_.floors = open_.file->Floors();
}

Task Actor::OpenOwn(InodeId inode) {
  Say("opens inode " + std::to_string(inode.value));
  open_.file = board_.files.at(inode.value);
  open_.floors = open_.file->Floors();
  const auto opened = co_await mount_->Open(inode);
  co_await Done(opened.status());
  open_.handle = *opened;
  Holds(open_.file);
  board_.ToldToOthers(this, *open_.file);
  open_.floors = FileHistory::Lower(open_.floors, open_.file->Floors());
}

Task Actor::WorkOn() {
  const uint64_t steps = world_.prng.Uniform(1, 12);
  for (uint64_t step = 0; step < steps; ++step) {
    co_await Pause(world_.prng.Chance(0.1) ? 3'000'000U : 30'000U);
    const uint64_t choice = world_.prng.Uniform(0, 10);
    if (choice == 10) {
      co_await SetMode();
    } else if (choice < 6) {
      co_await WriteSome();
    } else if (choice < 7) {
      co_await SyncIt();
    } else if (choice < 9) {
      co_await ReadSome(open_.handle, open_.file, open_.floors);
    } else {
      co_await CutSome();
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
  co_await Done(co_await mount_->Write(open_.handle, block * kBlock, bytes));
  Raise(&open_.floors, block, block + count);
}

Task Actor::SyncIt() {
  Say("syncs inode " + std::to_string(open_.file->inode().value));
  co_await Done(co_await mount_->Sync(open_.handle));
  open_.file->Settle(open_.floors);
  board_.Synced(this, open_.file.get());
  board_.lost.erase({this, open_.file.get()});  // there is nothing to be told any more
}

Task Actor::CutSome() {
  const size_t blocks = world_.prng.Uniform(0, FileHistory::kBlocks - 1);
  Say("truncates inode " + std::to_string(open_.file->inode().value) + " to " +
      std::to_string(blocks * kBlock));
  open_.file->BeginTruncate(blocks);
  // Growing cuts nothing off, not even what a dead user has left behind the end.
  const bool cuts = open_.handle->inode->size() >= blocks * kBlock;
  co_await Done(co_await mount_->Truncate(open_.handle, blocks * kBlock));
  // Not what was written before: the next sync or close may tell that it is lost.
  FileHistory::Places certain = open_.file->Floors();
  for (FileHistory::Places* places : {&open_.floors, &certain}) {
    Raise(places, blocks, cuts ? FileHistory::kBlocks : blocks);
  }
  open_.file->Settle(certain);
}

Task Actor::SetMode() {
  const auto mode = static_cast<uint32_t>(world_.prng.Uniform(0, 0777));
  Say("sets the mode of inode " + std::to_string(open_.file->inode().value) + " to " +
      std::to_string(mode));
  open_.file->BeginMode(mode);
  co_await Done(co_await mount_->SetMode(open_.handle, mode));
  open_.floors.mode = open_.file->Newest().mode;
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
    co_await ReadSome(open_.handle, open_.file, open_.floors);
    co_await WriteSome();
  }
  Say("closes inode " + std::to_string(open_.file->inode().value));
  co_await Done(co_await mount_->Close(open_.handle));
  board_.Closed(this, open_.file, open_.floors, since_);
  // By its name, while the mount may still count it as open.
  if (choice > 7) co_await SetMode();
  open_.handle = nullptr;
  holds_ = false;
  if (choice == 1 || choice == 2) co_await Unlink();
  if (choice < 3 || choice > 5) co_return;
  const size_t from = open_.place == &slot.places[0] ? 0 : 1;
  Slot::Place& target = slot.places[1 - from];
  Say("renames " + open_.place->directory + "/" + open_.place->name + " to " + target.directory);
  board_.Begins(this, open_.place->inode, 0);
  board_.Begins(this, target.inode, open_.file->inode().value);
  co_await Done(co_await mount_->Rename(open_.parents[from], open_.place->name,
                                        open_.parents[1 - from], target.name));
  board_.Told(this);
}

Task Actor::Unlink() {
  Say("unlinks " + open_.place->directory + "/" + open_.place->name);
  open_.file->unlinked = true;
  board_.Begins(this, open_.place->inode, 0);
  const InodeId parent = open_.place->directory == "x" ? open_.parents[1] : open_.parents[0];
  co_await Done(co_await mount_->Remove(parent, open_.place->name, false));
  board_.Told(this);
}

}  // namespace weir::crash
