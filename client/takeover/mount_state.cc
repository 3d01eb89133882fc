#include "client/takeover/mount_state.h"

#include <fcntl.h>

#include <algorithm>

#include "client/takeover/takeover.pb.h"

namespace weir::client {
namespace {

OpenedFile FromRecord(const takeover::Handle& handle) {
  OpenedFile file;
  file.number = handle.number();
  file.inode = InodeId(handle.inode());
  file.request = handle.unique();
  file.flags = static_cast<int>(handle.flags());
  file.uid = handle.uid();
  file.gid = handle.gid();
  file.groups.assign(handle.groups().begin(), handle.groups().end());
  file.pid = handle.pid();
  if (handle.has_exe()) file.exe = handle.exe();
  if (handle.has_cgroup()) file.cgroup = handle.cgroup();
  file.fenced = handle.fenced();
  file.lost = handle.lost();
  return file;
}

LockAsk FromRecord(const takeover::Lock& lock) {
  LockAsk ask;
  ask.inode = InodeId(lock.inode());
  ask.handle = lock.handle();
  ask.flock = lock.flock();
  ask.type = static_cast<LockAsk::Type>(lock.type());
  ask.first = lock.first();
  ask.last = lock.last();
  ask.owner = lock.owner();
  ask.pid = lock.pid();
  return ask;
}

takeover::Record InodesRecord(const std::set<uint64_t>& inodes) {
  takeover::Record record;
  for (const uint64_t inode : inodes) record.mutable_unreleased()->add_inodes(inode);
  return record;
}

}  // namespace

takeover::Record OpenedRecord(const OpenedFile& file) {
  takeover::Record record;
  takeover::Handle& handle = *record.mutable_opened();
  handle.set_number(file.number);
  handle.set_inode(file.inode.value);
  handle.set_unique(file.request);
  handle.set_flags(static_cast<uint32_t>(file.flags));
  handle.set_uid(file.uid);
  handle.set_gid(file.gid);
  for (const uint32_t group : file.groups) handle.add_groups(group);
  handle.set_pid(file.pid);
  if (file.exe.has_value()) handle.set_exe(*file.exe);
  if (file.cgroup.has_value()) handle.set_cgroup(*file.cgroup);
  handle.set_fenced(file.fenced);
  handle.set_lost(file.lost);
  return record;
}

takeover::Record LockedRecord(const LockAsk& ask) {
  takeover::Record record;
  takeover::Lock& lock = *record.mutable_locked();
  lock.set_inode(ask.inode.value);
  lock.set_handle(ask.handle);
  lock.set_flock(ask.flock);
  lock.set_type(static_cast<uint32_t>(ask.type));
  lock.set_first(ask.first);
  lock.set_last(ask.last);
  lock.set_owner(ask.owner);
  lock.set_pid(ask.pid);
  return record;
}

void MountState::BeginLife() {
  ++lives;
  for (auto& [number, file] : handles) {
    const bool writes = (file.flags & O_ACCMODE) != O_RDONLY;
    if (writes && dirty.contains(file.inode.value)) file.lost = true;
  }
  dirty.clear();
}

bool MountState::Apply(const takeover::Record& record) {
  using What = takeover::Record::WhatCase;
  switch (record.what_case()) {
    case What::kBegin:
      session = record.begin().session();
      lives = record.begin().lives();
      last_handle = record.begin().last_handle();
      fenced = record.begin().fenced();
      init = record.begin().init();
      generation = record.begin().generation();
      return true;
    case What::kOpened: {
      OpenedFile file = FromRecord(record.opened());
      unreleased.erase(file.inode.value);
      last_handle = std::max(last_handle, file.number);
      handles[file.number] = std::move(file);
      return true;
    }
    case What::kClosed:
      handles.erase(record.closed().number());
      unreleased.insert(record.closed().inode());
      return true;
    case What::kReleased:
      for (const uint64_t inode : record.released().inodes()) unreleased.erase(inode);
      return true;
    case What::kUnreleased:
      unreleased.insert(record.unreleased().inodes().begin(), record.unreleased().inodes().end());
      return true;
    case What::kDirty:
      dirty.insert(record.dirty());
      return true;
    case What::kClean:
      dirty.erase(record.clean());
      return true;
    case What::kLocked:
      ApplyLock(FromRecord(record.locked()));
      return true;
    case What::kLocksLost:
      locks.erase(record.locks_lost());
      return true;
    case What::kChangeBegins:
      changes[record.change_begins().unique()] = record.change_begins().request_id();
      return true;
    case What::kAppendBegins:
      appends[record.append_begins().unique()] = record.append_begins().offset();
      return true;
    case What::kChangeEnds:
      changes.erase(record.change_ends());
      appends.erase(record.change_ends());
      return true;
    case What::kFenced:
      fenced = record.fenced();
      for (auto& [number, file] : handles) file.fenced = true;
      return true;
    case What::kInit:
      init = record.init();
      return true;
    case What::kGeneration:
      generation = record.generation();
      return true;
    case What::kTold:
      if (const auto told = handles.find(record.told()); told != handles.end()) {
        told->second.lost = false;
      }
      return true;
    case What::WHAT_NOT_SET:
      break;
  }
  return false;
}

void MountState::ApplyLock(const LockAsk& ask) {
  Locks& file = locks[ask.inode.value];
  LockSet& set = file.Of(ask.flock);
  const std::tuple<uint64_t, uint64_t, bool> locker(ask.inode.value, ask.owner, ask.flock);
  if (ask.type == LockAsk::Type::kNone) {
    set.Clear({0, ask.owner}, ask.first, ask.last);
    if (!set.Holds({0, ask.owner})) lockers.erase(locker);
  } else {
    set.Set({.owner = {0, ask.owner},
             .first = ask.first,
             .last = ask.last,
             .write = ask.type == LockAsk::Type::kWrite,
             .pid = ask.pid});
    lockers[locker] = ask.handle;
  }
  if (file.empty()) locks.erase(ask.inode.value);
}

std::vector<LockAsk> MountState::HeldLocks() const {
  std::vector<LockAsk> all;
  for (const auto& [inode, file] : locks) {
    for (const bool flock : {false, true}) {
      for (const FileLock& held : (flock ? file.whole : file.ranges).All()) {
        LockAsk ask = AskFor(InodeId(inode), flock, held);
        const auto locker = lockers.find({inode, held.owner.id, flock});
        if (locker != lockers.end()) ask.handle = locker->second;
        all.push_back(ask);
      }
    }
  }
  return all;
}

std::vector<std::string> MountState::Snapshot() const {
  std::vector<std::string> out;
  takeover::Record record;
  takeover::Begin& begin = *record.mutable_begin();
  begin.set_session(session);
  begin.set_lives(lives);
  begin.set_last_handle(last_handle);
  begin.set_fenced(fenced);
  begin.set_init(init);
  begin.set_generation(generation);
  out.push_back(record.SerializeAsString());
  for (const auto& [number, file] : handles) out.push_back(OpenedRecord(file).SerializeAsString());
  if (!unreleased.empty()) out.push_back(InodesRecord(unreleased).SerializeAsString());
  for (const uint64_t inode : dirty) {
    record.set_dirty(inode);
    out.push_back(record.SerializeAsString());
  }
  for (const auto& [unique, id] : changes) {
    record.mutable_change_begins()->set_unique(unique);
    record.mutable_change_begins()->set_request_id(id);
    out.push_back(record.SerializeAsString());
  }
  for (const auto& [unique, offset] : appends) {
    record.mutable_append_begins()->set_unique(unique);
    record.mutable_append_begins()->set_offset(offset);
    out.push_back(record.SerializeAsString());
  }
  for (const LockAsk& ask : HeldLocks()) out.push_back(LockedRecord(ask).SerializeAsString());
  return out;
}

}  // namespace weir::client
