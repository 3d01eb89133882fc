#include "client/vfs/caller_classes.h"

#include <algorithm>

namespace weir::client {
namespace {
constexpr int kVersionShift = 32;
}  // namespace

void CallerClasses::SetMap(std::shared_ptr<const ClusterMap> map) {
  std::lock_guard lock(mutex_);
  asks_exe_ = AnyRuleNamesAnExecutable(map->rules);
  has_rules_ = !map->rules.empty();
  has_capacities_ = std::any_of(map->classes.begin(), map->classes.end(),
                                [](const auto& one) { return one.second.capacity_bytes > 0; });
  const ClassEntry* entry = map->FindClass(mount_.mount_class);
  without_rules_ = entry == nullptr ? kBestEffort.value : entry->spec.id.value;
  map_ = std::move(map);
  // After wrapping around an answer of 2^32 maps ago would count again.
  version_.fetch_add(1, std::memory_order_release);
}

OpenerPtr CallerClasses::Open(uid_t uid, gid_t gid, std::vector<gid_t> groups, pid_t pid,
                              uint64_t thread_group) const {
  Abandoned fenced;
  {
    std::lock_guard lock(mutex_);
    fenced = fenced_;
  }
  auto opener =
      std::make_shared<Opener>(uid, gid, std::move(groups), pid, std::move(fenced), thread_group);
  if (asks_exe_) (void)ExeOf(*opener);
  return opener;
}

std::optional<std::string> Opener::exe() const {
  const std::lock_guard lock(mutex_);
  return exe_known_ ? std::optional(exe_) : std::nullopt;
}

OpenerPtr CallerClasses::Restore(const Former& former) const {
  Abandoned fenced = std::make_shared<std::atomic<bool>>(true);
  if (!former.fenced) {
    std::lock_guard lock(mutex_);
    fenced = fenced_;
  }
  auto opener = std::make_shared<Opener>(former.uid, former.gid, former.groups, former.pid,
                                         std::move(fenced), former.thread_group);
  opener->exe_known_ = former.exe.has_value();
  opener->exe_ = former.exe.value_or("");
  return opener;
}

void CallerClasses::Fence() {
  std::lock_guard lock(mutex_);
  *fenced_ = true;
  fenced_ = std::make_shared<std::atomic<bool>>(false);
}

ClassId CallerClasses::Of(const Opener& opener) const {
  const uint64_t known = opener.answer_.load(std::memory_order_relaxed);
  const uint32_t version = version_.load(std::memory_order_acquire);
  if (version == 0) return kBestEffort;
  if (known >> kVersionShift == version) return ClassId(static_cast<uint32_t>(known));
  std::shared_ptr<const ClusterMap> map;
  uint64_t newer = 0;
  {
    std::lock_guard lock(mutex_);
    map = map_;
    newer = version_.load();
  }
  RuleSubject who{opener.uid_, opener.gid_, opener.groups_, {}, mount_.client, mount_.mount_class};
  const std::string exe = AnyRuleNamesAnExecutable(map->rules) ? ExeOf(opener) : std::string();
  who.exe = exe;
  const ClassId id = UntaggedClass(*map, who);
  opener.answer_.store(newer << kVersionShift | id.value, std::memory_order_relaxed);
  return id;
}

ClassId CallerClasses::Of(const Inode& inode, const Opener& opener) const {
  const std::optional<ClassId> tagged = inode.tag_class();
  return tagged.has_value() ? *tagged : Of(opener);
}

bool CallerClasses::HasCapacity(ClassId id) const {
  if (!has_capacities_) return false;
  std::lock_guard lock(mutex_);
  const auto found = map_->classes.find(id);
  return found != map_->classes.end() && found->second.capacity_bytes > 0;
}

ClassId CallerClasses::OfCaller(uid_t uid, gid_t gid, const std::vector<gid_t>& groups,
                                const std::string& exe) const {
  if (!has_rules_) return ClassId(without_rules_);
  std::shared_ptr<const ClusterMap> map;
  {
    std::lock_guard lock(mutex_);
    map = map_;
  }
  return UntaggedClass(*map, {uid, gid, groups, exe, mount_.client, mount_.mount_class});
}

std::string CallerClasses::ExeOf(uid_t uid, pid_t pid) const {
  return asks_exe_ && pid != 0 ? read_exe_(pid, uid) : std::string();
}

std::string CallerClasses::ExeOf(const Opener& opener) const {
  std::lock_guard lock(opener.mutex_);
  if (!opener.exe_known_) {
    if (opener.pid_ != 0) opener.exe_ = read_exe_(opener.pid_, opener.uid_);
    opener.exe_known_ = true;
  }
  return opener.exe_;
}

}  // namespace weir::client
