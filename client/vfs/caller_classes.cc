#include "client/vfs/caller_classes.h"

#include <algorithm>

namespace weir::client {
namespace {
constexpr int kVersionShift = 32;
}  // namespace

void CallerClasses::SetMap(std::shared_ptr<const ClusterMap> map) {
  std::lock_guard lock(mutex_);
  asks_exe_ = AnyRuleNamesAnExecutable(map->rules);
  asks_cgroup_ = AnyRuleNamesACgroup(map->rules);
  has_rules_ = !map->rules.empty();
  const auto any_class = [&classes = map->classes](auto holds) {
    return std::any_of(classes.begin(), classes.end(),
                       [&holds](const auto& one) { return holds(one.second); });
  };
  has_capacities_ = any_class([](const ClassEntry& entry) { return entry.capacity_bytes > 0; });
  cgroup_flows_ =
      any_class([](const ClassEntry& entry) { return entry.flow == FlowKind::kCgroup; });
  other_flows_ = any_class([](const ClassEntry& entry) { return entry.flow != FlowKind::kUser; });
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
  if (asks_cgroup_ || cgroup_flows_) (void)CgroupOf(*opener);
  return opener;
}

std::optional<std::string> Opener::exe() const {
  const std::lock_guard lock(mutex_);
  return exe_known_ ? std::optional(exe_) : std::nullopt;
}

std::optional<std::string> Opener::cgroup() const {
  const std::lock_guard lock(mutex_);
  return cgroup_ != nullptr ? std::optional(*cgroup_) : std::nullopt;
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
  if (former.cgroup.has_value()) {
    opener->cgroup_ = std::make_shared<const std::string>(*former.cgroup);
  }
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
  std::shared_ptr<const std::string> cgroup;
  if (AnyRuleNamesACgroup(map->rules)) {
    cgroup = CgroupOf(opener);
    who.cgroup = *cgroup;
  }
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

Flow CallerClasses::FlowOf(ClassId id, const Opener& opener) const {
  Flow flow{.uid = opener.uid_, .opener = opener.thread_group_};
  if (!other_flows_) return flow;
  {
    std::lock_guard lock(mutex_);
    const auto found = map_->classes.find(id);
    if (found != map_->classes.end()) flow.kind = found->second.flow;
  }
  if (flow.kind == FlowKind::kCgroup) flow.cgroup = CgroupOf(opener);
  return flow;
}

ClassId CallerClasses::OfCaller(uid_t uid, gid_t gid, const std::vector<gid_t>& groups,
                                const Program& program) const {
  if (!has_rules_) return ClassId(without_rules_);
  std::shared_ptr<const ClusterMap> map;
  {
    std::lock_guard lock(mutex_);
    map = map_;
  }
  return UntaggedClass(
      *map, {uid, gid, groups, program.exe, mount_.client, mount_.mount_class, program.cgroup});
}

CallerClasses::Program CallerClasses::ProgramOf(uid_t uid, pid_t pid) const {
  Program program;
  if (pid == 0) return program;
  if (asks_exe_) program.exe = read_exe_(pid, uid);
  if (asks_cgroup_ || cgroup_flows_) program.cgroup = read_cgroup_(pid, uid);
  return program;
}

std::string CallerClasses::ExeOf(const Opener& opener) const {
  std::lock_guard lock(opener.mutex_);
  if (!opener.exe_known_) {
    if (opener.pid_ != 0) opener.exe_ = read_exe_(opener.pid_, opener.uid_);
    opener.exe_known_ = true;
  }
  return opener.exe_;
}

std::shared_ptr<const std::string> CallerClasses::CgroupOf(const Opener& opener) const {
  std::lock_guard lock(opener.mutex_);
  if (opener.cgroup_ == nullptr) {
    opener.cgroup_ = std::make_shared<const std::string>(
        opener.pid_ != 0 ? read_cgroup_(opener.pid_, opener.uid_) : std::string());
  }
  return opener.cgroup_;
}

}  // namespace weir::client
