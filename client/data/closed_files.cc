#include "client/data/closed_files.h"

namespace weir::client {

void ClosedFiles::Add(const Inode& inode) {
  const auto [file, added] = files_.try_emplace(inode.id());
  if (added) {
    nameless_.insert(inode.id());
  }
  std::optional<MadeName> name = inode.made_name();
  if (name == file->second.name) return;
  if (file->second.name.has_value()) named_.erase(*file->second.name);
  if (name.has_value()) {
    nameless_.erase(inode.id());
    named_.insert_or_assign(*name, inode.id());
  } else {
    nameless_.insert(inode.id());
  }
  file->second.name = std::move(name);
}

bool ClosedFiles::Wait(InodeId inode, std::function<void()>* then) {
  const auto file = files_.find(inode);
  if (file == files_.end()) return false;
  file->second.waiters.push_back(std::move(*then));
  return true;
}

ClosedFiles::Waiters ClosedFiles::Take(InodeId inode) {
  auto file = files_.extract(inode);
  if (file.empty()) return {};
  nameless_.erase(inode);
  if (const auto& name = file.mapped().name; name.has_value()) {
    const auto named = named_.find(*name);
    if (named != named_.end() && named->second == inode) named_.erase(named);
  }
  return std::move(file.mapped().waiters);
}

std::vector<ClosedFiles::Waiters> ClosedFiles::TakeAll() {
  std::vector<Waiters> all;
  for (auto& [id, file] : files_) all.push_back(std::move(file.waiters));
  files_.clear();
  named_.clear();
  nameless_.clear();
  return all;
}

std::vector<InodeId> ClosedFiles::MayHave(const MadeName& name) const {
  std::vector<InodeId> found(nameless_.begin(), nameless_.end());
  if (const auto named = named_.find(name); named != named_.end()) found.push_back(named->second);
  return found;
}

}  // namespace weir::client
