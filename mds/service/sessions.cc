#include "mds/service/sessions.h"

#include <algorithm>

#include "common/base/log.h"

namespace weir::mds {

Status Sessions::Open(uint64_t session, const Opening& opening) {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, other] : sessions_) {
    if (id == session || !other.opened) continue;
    if (opening.exclusive || other.opening.exclusive) {
      return {ErrorCode::kBusy, "'" + other.opening.client_name +
                                    "' has it mounted, and an embedded cluster serves one mount; "
                                    "several mounts need daemons of their own (weir-dev up)"};
    }
  }
  sessions_[session] = {opening, clock_.Now(), true, KernelPath::kUnknown};
  return Status::Ok();
}

void Sessions::SetOrdered(uint64_t session, Duration ordered_within) {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(session);
  if (found != sessions_.end()) found->second.opening.ordered_within = ordered_within;
}

void Sessions::Close(uint64_t session) {
  const std::lock_guard lock(mutex_);
  sessions_.erase(session);
}

bool Sessions::Touch(uint64_t session, std::string* mount_class, std::string* client) {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return false;
  found->second.last_seen = clock_.Now();
  if (mount_class != nullptr) *mount_class = found->second.opening.mount_class;
  if (client != nullptr) *client = found->second.opening.client_name;
  return found->second.opened;
}

void Sessions::SetPath(uint64_t session, KernelPath path) {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(session);
  if (found != sessions_.end()) found->second.path = path;
}

std::vector<Sessions::Mount> Sessions::Mounts() const {
  std::vector<Mount> mounts;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, session] : sessions_) {
      if (!session.opened) continue;
      mounts.push_back({session.opening.client_name, session.path, id, session.opening.build});
    }
  }
  std::sort(mounts.begin(), mounts.end(),
            [](const Mount& a, const Mount& b) { return a.client < b.client; });
  return mounts;
}

Sessions::Opening Sessions::TouchOrAdmit(uint64_t session) {
  const std::lock_guard lock(mutex_);
  Session& found = sessions_[session];
  found.last_seen = clock_.Now();
  return found.opening;
}

void Sessions::Admit(uint64_t session) {
  const std::lock_guard lock(mutex_);
  sessions_.try_emplace(session, Session{{}, clock_.Now()});
}

std::vector<uint64_t> Sessions::TakeExpired() {
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_.Now();
  std::vector<uint64_t> expired;
  for (auto it = sessions_.begin(); it != sessions_.end();) {
    if (now - it->second.last_seen <= lease_) {
      ++it;
      continue;
    }
    if (it->second.opened) {
      WEIR_LOG_WARN("mount '{}' (session {:x}) is silent for its lease: its open files are closed",
                    LogClient(it->second.opening.client_name), it->first);
    }
    expired.push_back(it->first);
    it = sessions_.erase(it);
  }
  return expired;
}

Duration Sessions::SilentFor(uint64_t session) const {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? Duration::max() : clock_.Now() - found->second.last_seen;
}

std::string Sessions::ClientOf(uint64_t session) const {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(session);
  const bool named = found != sessions_.end() && !found->second.opening.client_name.empty();
  return named ? found->second.opening.client_name : "unknown";
}

bool Sessions::Knows(uint64_t session) const {
  const std::lock_guard lock(mutex_);
  return sessions_.contains(session);
}

bool Sessions::IsOpen(uint64_t session) const {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(session);
  return found != sessions_.end() && found->second.opened;
}

size_t Sessions::count() const {
  const std::lock_guard lock(mutex_);
  size_t opened = 0;
  for (const auto& [id, session] : sessions_) opened += session.opened ? 1 : 0;
  return opened;
}

}  // namespace weir::mds
