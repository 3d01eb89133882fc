// How a user looks at his own files and at what others do, and how one looks at everything at the
// end.
#include <algorithm>

#include "tests/crash/cluster/actor.h"

namespace weir::crash {

namespace {

bool IsGone(const FileHistory& file, const Status& status) {
  const ErrorCode code = status.code();
  return file.unlinked && (code == ErrorCode::kNotFound || code == ErrorCode::kStale);
}

}  // namespace

Task Actor::ReadSome(client::HandlePtr handle, File file, FileHistory::Places floors) {
  const size_t block = world_.prng.Uniform(0, FileHistory::kBlocks - 1);
  const uint64_t length =
      world_.prng.Uniform(1, FileHistory::kBlocks - block) * FileHistory::kBlockBytes;
  Say("reads inode " + std::to_string(file->inode().value) + " block " + std::to_string(block) +
      ", " + std::to_string(length) + " bytes");
  const Result<Bytes> bytes =
      co_await mount_->Read(handle, block * FileHistory::kBlockBytes, length);
  // Whoever was evicted has lost his session, and with it a file without a name.
  if (file->unlinked && board_.IsFenced(mount_->session(), since_)) co_return;
  co_await Done(bytes.status());
  const std::string wrong = file->Check(block, length, *bytes, floors);
  if (wrong.empty()) co_return;
  const std::string what = doing_;
  if (handle == open_.handle) {
    // What he wrote himself may be lost with his session, of which a sync tells.
    Say("syncs inode " + std::to_string(file->inode().value) + ", which reads wrong");
    co_await Done(co_await mount_->Sync(handle));
  }
  co_await RightIn(what + ": " + wrong);
}

Task Actor::LookAt(Slot& slot) {
  InodeId parent;
  uint64_t inode = 0;
  co_await LookUp(slot.places[world_.prng.Uniform(0, 1)], &parent, &inode);
  if (inode == 0) co_return;
  const File file = board_.files.at(inode);
  if (world_.prng.Chance(0.5)) {
    co_await WatchSize(InodeId(inode), file);
  } else {
    co_await LookInto(InodeId(inode), file);
  }
}

Task Actor::LookAtRow() {
  constexpr size_t kLast = 8;
  const size_t made = board_.rows.size();
  if (made == 0) co_return;
  InodeId parent;
  uint64_t inode = 0;
  const size_t back = world_.prng.Uniform(1, std::min(made, kLast));
  co_await LookUp(board_.rows[made - back], &parent, &inode);
}

Task Actor::LookUp(Slot::Place& place, InodeId* parent, uint64_t* inode) {
  co_await FindDirectory(place.directory, parent);
  Say("looks at " + place.directory + "/" + place.name);
  const size_t floor = place.inode.floor();
  const TimePoint since = world_.clock.Now();
  const Result<Entry> entry = co_await mount_->Lookup(*parent, place.name);
  co_await Done(entry.status());
  *inode = entry->inode.value;
  if (*inode != 0) board_.FileOf(place, *inode);
  board_.Saw(this, place.inode, *inode, since);
  // Meanwhile somebody may have died, and what he did be undone.
  if (!place.inode.Allows(*inode, std::min(floor, place.inode.floor()))) {
    co_await Right("it is inode " + std::to_string(*inode) + " and may be " +
                   place.inode.Describe(floor));
  }
}

Task Actor::LookInto(InodeId inode, File file) {
  Say("opens inode " + std::to_string(inode.value) + " to look");
  FileHistory::Places floors = file->Floors();
  const auto opened = co_await mount_->Open(inode);
  if (IsGone(*file, opened.status())) co_return;
  co_await Done(opened.status());
  const client::HandlePtr& handle = *opened;
  Holds(file);
  board_.ToldToOthers(this, *file);
  // Meanwhile somebody may have died, and lost what he had closed.
  floors = FileHistory::Lower(floors, file->Floors());
  co_await RightIn(file->CheckMode(handle->inode->attr().mode & 0777, floors));
  const uint64_t reads = world_.prng.Uniform(1, 4);
  for (uint64_t i = 0; i < reads; ++i) {
    co_await ReadSome(handle, file, floors);
    co_await Pause(100'000);
  }
  Say("closes inode " + std::to_string(inode.value) + " after a look");
  co_await Done(co_await mount_->Close(handle));
  holds_ = false;
}

// As a process does that waits for a file to grow, without opening it.
Task Actor::WatchSize(InodeId inode, File file) {
  const uint64_t looks = world_.prng.Uniform(1, 12);
  for (uint64_t i = 0; i < looks; ++i) {
    Say("looks at the size of inode " + std::to_string(inode.value));
    const FileHistory::Places floors = file->Floors();
    const auto size = co_await mount_->SizeOf(inode);
    if (IsGone(*file, size.status())) co_return;
    co_await Done(size.status());
    board_.ToldToOthers(this, *file);
    co_await RightIn(file->CheckSize(*size, FileHistory::Lower(floors, file->Floors())));
    co_await Pause(500'000);
  }
}

Task Actor::Audit() {
  Say("mounts for the audit");
  co_await Done(co_await mount_->Mount());
  std::map<std::string, std::set<std::string>> names;
  for (Slot& slot : board_.slots) co_await AuditSlot(slot, &names);
  for (Slot::Place& place : board_.rows) {
    InodeId parent;
    uint64_t inode = 0;
    co_await LookUp(place, &parent, &inode);
    auto& listed = names[place.directory];
    if (inode != 0) listed.insert(place.name);
  }
  for (const auto& [directory, expected] : names) {
    InodeId inode;
    co_await FindDirectory(directory, &inode);
    Say("lists " + directory);
    const auto listed = co_await mount_->List(inode);
    co_await Done(listed.status());
    const std::set<std::string> found(listed->begin(), listed->end());
    co_await Right(found == expected, "there are other names than it has");
  }
  Say("unmounts after the audit");
  co_await Done(co_await mount_->Unmount());
  mount_->Crash();
}

Task Actor::AuditSlot(Slot& slot, std::map<std::string, std::set<std::string>>* names) {
  for (Slot::Place& place : slot.places) {
    InodeId parent;
    co_await FindOut(place, &parent);
    auto& listed = (*names)[place.directory];
    const uint64_t inode = place.inode.newest();
    if (inode == 0) continue;
    listed.insert(place.name);
    co_await AuditFile(InodeId(inode), board_.files.at(inode));
  }
}

Task Actor::AuditFile(InodeId inode, File file) {
  Say("audits inode " + std::to_string(inode.value));
  const FileHistory::Places floors = file->Floors();
  const auto opened = co_await mount_->Open(inode);
  co_await Done(opened.status());
  const client::HandlePtr& handle = *opened;
  const uint64_t length = FileHistory::kBlocks * FileHistory::kBlockBytes;
  const Result<Bytes> bytes = co_await mount_->Read(handle, 0, length);
  co_await Done(bytes.status());
  co_await Right(file->Check(0, length, *bytes, floors));
  co_await Right(file->CheckMode(handle->inode->attr().mode & 0777, floors));
  co_await Done(co_await mount_->Close(handle));
}

}  // namespace weir::crash
