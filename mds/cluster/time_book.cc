#include "mds/cluster/time_book.h"

namespace weir::mds {
namespace {

constexpr Duration kShortestStep = std::chrono::milliseconds(400);

}  // namespace

template <typename Times>
void TimeBook::History<Times>::Add(const std::map<ClassId, Times>& sums, TimePoint now) {
  Step step{heard_, now, {}};
  for (const auto& [id, sum] : sums) {
    const auto [known, is_new] = sums_.try_emplace(id, sum);
    const bool restarted = sum.active_ns < known->second.active_ns;
    if (!is_new && !restarted) {
      Times grown = sum;
      grown -= known->second;
      if (grown != Times()) step.grown[id] = grown;
    }
    known->second = sum;
  }
  // After a silence nobody knows when what it added came to be.
  if (!known_ || now - heard_ >= kSilence) {
    steps_.clear();
  } else if (!steps_.empty() && now - steps_.back().from < kShortestStep) {
    steps_.back().to = now;
    for (const auto& [id, grown] : step.grown) steps_.back().grown[id] += grown;
  } else {
    steps_.push_back(std::move(step));
  }
  known_ = true;
  heard_ = now;
  while (!steps_.empty() && now - steps_.front().to >= kWindow) steps_.pop_front();
}

template <typename Times>
bool TimeBook::History<Times>::IsSilent(TimePoint now) const {
  return steps_.empty() || now - heard_ >= kSilence;
}

template <typename Times>
double TimeBook::History<Times>::Seconds() const {
  return steps_.empty() ? 0 : ToSeconds(steps_.back().to - steps_.front().from);
}

template <typename Times>
std::map<ClassId, Times> TimeBook::History<Times>::Lately() const {
  std::map<ClassId, Times> all;
  for (const Step& step : steps_) {
    for (const auto& [id, grown] : step.grown) all[id] += grown;
  }
  return all;
}

void TimeBook::OsdSaid(OsdId osd, const std::map<ClassId, OsdClassTimes>& sums, TimePoint now) {
  const std::lock_guard lock(mutex_);
  osds_[osd].Add(sums, now);
}

void TimeBook::MountSaid(uint64_t session, const std::string& client, KernelPath path,
                         const std::map<ClassId, MountClassTimes>& sums, TimePoint now) {
  const std::lock_guard lock(mutex_);
  Mount& mount = mounts_[session];
  mount.client = client;
  mount.path = path;
  mount.history.Add(sums, now);
}

void TimeBook::MountGone(uint64_t session) {
  const std::lock_guard lock(mutex_);
  mounts_.erase(session);
}

Lately TimeBook::Of(ClassId id, TimePoint now) const {
  const std::lock_guard lock(mutex_);
  Lately lately;
  for (const auto& [osd, history] : osds_) {
    if (history.IsSilent(now)) continue;
    OsdLately one{osd, history.Seconds(), history.Lately()};
    if (one.classes.contains(id)) lately.osds.push_back(std::move(one));
  }
  for (const auto& [session, mount] : mounts_) {
    if (mount.history.IsSilent(now)) continue;
    const auto classes = mount.history.Lately();
    const auto found = classes.find(id);
    if (found == classes.end()) continue;
    lately.mounts.push_back({mount.client, mount.history.Seconds(), found->second, mount.path});
  }
  return lately;
}

}  // namespace weir::mds
