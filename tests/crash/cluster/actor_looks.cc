// How a user looks at his own files and at what others do.
#include "tests/crash/cluster/actor.h"

namespace weir::crash {

Task Actor::ReadSome(client::HandlePtr handle, File file, FileHistory::Places floors) {
  const size_t block = world_.prng.Uniform(0, FileHistory::kBlocks - 1);
  const uint64_t length =
      world_.prng.Uniform(1, FileHistory::kBlocks - block) * FileHistory::kBlockBytes;
  Say("reads inode " + std::to_string(file->inode().value) + " block " + std::to_string(block) +
      ", " + std::to_string(length) + " bytes");
  const Result<Bytes> bytes =
      co_await mount_->Read(handle, block * FileHistory::kBlockBytes, length);
  // Whoever was cut off may have lost his session, and with it a file without a name.
  if (file->unlinked && board_.cuts > 0) co_return;
  if (!Ok(bytes.status())) co_return;
  const std::string wrong = file->Check(block, length, *bytes, floors);
  if (wrong.empty()) co_return;
  const std::string what = doing_;
  if (handle == open_.handle) {
    // What he wrote himself may be lost with his session, of which a sync tells.
    Say("syncs inode " + std::to_string(file->inode().value) + ", which reads wrong");
    const Status synced = co_await mount_->Sync(handle);
    if (!Ok(synced)) co_return;
  }
  board_.Wrong(name_ + ": " + what + ": " + wrong);
}

Task Actor::LookAt(Slot& slot) {
  Slot::Place& place = slot.places[world_.prng.Uniform(0, 1)];
  InodeId parent;
  co_await FindDirectory(place.directory, &parent);
  if (parent.value == 0) co_return;
  Say("looks at " + place.directory + "/" + place.name);
  const size_t floor = place.inode.floor();
  const TimePoint since = world_.clock.Now();
  const Result<Entry> entry = co_await mount_->Lookup(parent, place.name);
  if (!Ok(entry.status())) co_return;
  const uint64_t inode = entry->inode.value;
  const File file = inode == 0 ? nullptr : board_.FileOf(place, inode);
  board_.Saw(this, place.inode, inode, since);
  if (!place.inode.Allows(inode, std::min(floor, place.inode.floor()))) {
    board_.Wrong(name_ + ": " + doing_ + ": it is inode " + std::to_string(inode) + " and may be " +
                 place.inode.Describe(floor));
    co_return;
  }
  if (file == nullptr) co_return;
  if (world_.prng.Chance(0.5)) {
    co_await WatchSize(InodeId(inode), file);
    co_return;
  }
  Say("opens inode " + std::to_string(inode) + " to look");
  FileHistory::Places floors = file->Floors();
  const auto opened = co_await mount_->Open(InodeId(inode));
  if (!opened.ok() && file->unlinked) co_return;
  if (!Ok(opened.status())) co_return;
  const client::HandlePtr& handle = *opened;
  board_.ToldToOthers(this, *file);
  // Meanwhile somebody may have died, and lost what he had closed.
  floors = FileHistory::Lower(floors, file->Floors());
  const std::string wrong = file->CheckMode(handle->inode->attr().mode & 0777, floors);
  if (!wrong.empty()) board_.Wrong(name_ + ": " + doing_ + ": " + wrong);
  const uint64_t reads = world_.prng.Uniform(1, 4);
  for (uint64_t i = 0; i < reads && board_.wrong.empty(); ++i) {
    co_await ReadSome(handle, file, floors);
    co_await Pause(100'000);
  }
  Say("closes inode " + std::to_string(inode) + " after a look");
  const Status closed = co_await mount_->Close(handle);
  Ok(closed);
}

// As a process does that waits for a file to grow, without opening it.
Task Actor::WatchSize(InodeId inode, File file) {
  const uint64_t looks = world_.prng.Uniform(1, 12);
  for (uint64_t i = 0; i < looks; ++i) {
    Say("looks at the size of inode " + std::to_string(inode.value));
    const FileHistory::Places floors = file->Floors();
    const auto size = co_await mount_->SizeOf(inode);
    if (!size.ok() && file->unlinked) co_return;
    if (!Ok(size.status())) co_return;
    board_.ToldToOthers(this, *file);
    const std::string wrong = file->CheckSize(*size, FileHistory::Lower(floors, file->Floors()));
    if (!wrong.empty()) board_.Wrong(name_ + ": " + doing_ + ": " + wrong);
    if (!board_.wrong.empty()) co_return;
    co_await Pause(500'000);
  }
}

}  // namespace weir::crash
