#include "mds/service/watchers.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/log.h"
#include "common/wire/mds.pb.h"
#include "mds/cluster/cluster_keeper.h"
#include "mds/ns/dir_leases.h"
#include "mds/ns/file_leases.h"

namespace weir::mds {

void Watchers::Watch(std::shared_ptr<net::IncomingCall> call, const Known& known, Duration wait) {
  const TimePoint now = sources_.clock.Now();
  Held held{std::move(call), known, now + wait, now + wait / 4 * 3};
  {
    const std::lock_guard lock(mutex_);
    // Asked under the lock: a change after this finds the call in the list.
    if (!Due(held)) {
      held_.push_back(std::move(held));
      return;
    }
  }
  Answer(held);
}

bool Watchers::Due(const Held& held) const {
  return sources_.keeper.map()->epoch.value > held.known.epoch ||
         sources_.tag_epoch() > held.known.tag_epoch ||
         sources_.leases.HasRecalls(held.call->session(), held.known.lease_seq) ||
         sources_.file_leases.HasRecalls(held.call->session(), held.known.file_lease_seq) ||
         sources_.lock_asked(held.call->session()) > held.known.lock_seq ||
         sources_.clock.Now() >= held.until;
}

void Watchers::Answer(const Held& held) const {
  const auto map = sources_.keeper.map();
  wire::WatchReply reply;
  reply.set_epoch(map->epoch.value);
  reply.set_tag_epoch(sources_.tag_epoch());
  if (map->epoch.value > held.known.epoch) {
    *reply.mutable_map() = ToWire(*map);
    reply.mutable_map()->set_tag_epoch(reply.tag_epoch());
  }
  const DirLeases::Recall recall = sources_.leases.RecallsOf(held.call->session());
  reply.set_lease_epoch(recall.epoch);
  reply.set_lease_seq(recall.seq);
  for (const uint64_t directory : recall.directories) reply.add_recalled(directory);
  for (const uint64_t file : recall.appends) reply.add_recalled_appends(file);
  const FileLeases::Recall files =
      sources_.file_leases.RecallsOf(held.call->session(), held.known.file_lease_seq);
  reply.set_file_lease_seq(files.seq);
  for (const uint64_t inode : files.inodes) reply.add_recalled_files(inode);
  reply.set_lock_seq(sources_.lock_asked(held.call->session()));
  reply.mutable_ordered()->set_durable(sources_.durable_order());
  reply.mutable_ordered()->set_life(sources_.life);
  held.call->Respond(reply.SerializeAsString());
}

void Watchers::Flush() {
  FlushIf([this](const Held& held) { return Due(held); });
}

void Watchers::FlushEarly() {
  const TimePoint now = sources_.clock.Now();
  FlushIf([now](const Held& held) { return now >= held.nearly; });
}

void Watchers::FlushIf(const std::function<bool(const Held&)>& is_due) {
  std::vector<Held> due;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = held_.begin(); it != held_.end();) {
      if (!is_due(*it)) {
        ++it;
        continue;
      }
      due.push_back(std::move(*it));
      it = held_.erase(it);
    }
  }
  for (const Held& held : due) Answer(held);
}

bool Watchers::AnyObeying() const {
  const std::lock_guard lock(mutex_);
  return !obeying_.empty();
}

TimePoint Watchers::FirstEnd() const {
  const std::lock_guard lock(mutex_);
  TimePoint first = TimePoint::Max();
  for (const Held& held : held_) first = std::min(first, held.until);
  return first;
}

void Watchers::WhenObeyed(Epoch epoch, Duration patience, std::function<void()> answer) {
  {
    const std::lock_guard lock(mutex_);
    obeying_.push_back({epoch, sources_.clock.Now() + patience, std::move(answer)});
  }
  FlushObeyed();
}

void Watchers::FlushObeyed() {
  std::vector<std::function<void()>> answers;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = obeying_.begin(); it != obeying_.end();) {
      const std::vector<std::string> late = sources_.keeper.NotObeying(it->epoch);
      if (!late.empty() && sources_.clock.Now() < it->until) {
        ++it;
        continue;
      }
      if (!late.empty()) {
        WEIR_LOG_WARN("{} and maybe others do not obey map epoch {} yet", late.front(),
                      it->epoch.value);
      }
      answers.push_back(std::move(it->answer));
      it = obeying_.erase(it);
    }
  }
  for (const auto& answer : answers) answer();
}

}  // namespace weir::mds
