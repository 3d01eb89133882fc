#include "common/placement/class_rules.h"

#include <algorithm>

#include "common/placement/cluster_map.h"

namespace weir {
namespace {

constexpr size_t kCgroupMax = 4096;

std::string_view Trimmed(std::string_view path) {
  // The kernel says so of a program that was replaced, and of a cgroup that was removed, meanwhile.
  constexpr std::string_view kDeleted = " (deleted)";
  return path.ends_with(kDeleted) ? path.substr(0, path.size() - kDeleted.size()) : path;
}

// Itself, or above it: "/a" is above "/a/b", and not above "/ab".
bool CgroupMatches(std::string_view wanted, std::string_view cgroup) {
  cgroup = Trimmed(cgroup);
  if (!cgroup.starts_with(wanted)) return false;
  return wanted.ends_with('/') || cgroup.size() == wanted.size() || cgroup[wanted.size()] == '/';
}

bool ExeMatches(std::string_view wanted, std::string_view exe) {
  exe = Trimmed(exe);
  if (exe.empty()) return false;
  if (wanted.find('/') != std::string_view::npos) return exe == wanted;
  const size_t slash = exe.rfind('/');
  return exe.substr(slash == std::string_view::npos ? 0 : slash + 1) == wanted;
}

bool ClientMatches(std::string_view wanted, std::string_view client) {
  return client == wanted || client.substr(0, client.rfind(':')) == wanted;
}

// The class of that name, or best-effort, and why.
ClassId Named(const ClusterMap& map, std::string_view name, std::string_view why,
              std::string_view whose, std::string* reason) {
  const ClassEntry* entry = map.FindClass(name);
  if (reason != nullptr) {
    const std::string known(name);
    *reason = entry != nullptr
                  ? known + " (" + std::string(why) + ")"
                  : "best-effort (" + std::string(whose) + " " + known + " does not exist)";
  }
  return entry != nullptr ? entry->spec.id : kBestEffort;
}

}  // namespace

bool Matches(const ClassRule& rule, const RuleSubject& who) {
  if (rule.uid.has_value() && *rule.uid != who.uid) return false;
  if (rule.gid.has_value() && *rule.gid != who.gid &&
      std::find(who.groups.begin(), who.groups.end(), *rule.gid) == who.groups.end()) {
    return false;
  }
  if (!rule.exe.empty() && !ExeMatches(rule.exe, who.exe)) return false;
  if (!rule.cgroup.empty() && !CgroupMatches(rule.cgroup, who.cgroup)) return false;
  return rule.client.empty() || ClientMatches(rule.client, who.client);
}

bool AnyRuleNamesAnExecutable(const std::vector<ClassRule>& rules) {
  return std::any_of(rules.begin(), rules.end(),
                     [](const ClassRule& rule) { return !rule.exe.empty(); });
}

bool AnyRuleNamesACgroup(const std::vector<ClassRule>& rules) {
  return std::any_of(rules.begin(), rules.end(),
                     [](const ClassRule& rule) { return !rule.cgroup.empty(); });
}

Status CheckCgroupPath(std::string_view path) {
  const std::string text(path.substr(0, kCgroupMax));
  const auto refuse = [&text](const std::string& why) {
    return Status(ErrorCode::kInvalid, "'" + text + "' is no path of a cgroup: " + why);
  };
  constexpr std::string_view kMounted = "/sys/fs/cgroup";
  const std::string_view behind = path.substr(std::min(path.size(), kMounted.size()));
  if (path.starts_with(kMounted) && (behind.empty() || behind.front() == '/')) {
    const std::string inside(behind.empty() ? "/" : behind);
    return refuse("leave out /sys/fs/cgroup, as in '" + inside + "'");
  }
  if (path.empty() || path.front() != '/') {
    return refuse("it begins with '/', as in /system.slice/cron.service (systemd-cgls prints all)");
  }
  if (path.size() > kCgroupMax) return refuse("it has at most 4096 bytes");
  if (path == "/") return Status::Ok();
  if (path.back() == '/') return refuse("leave out the '/' at its end");
  for (size_t begin = 1; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") {
      return refuse("each of its parts is a name, as in /user.slice/user-1000.slice");
    }
    begin = end + 1;
  }
  const auto is_control = [](char c) { return static_cast<uint8_t>(c) < ' ' || c == '\x7f'; };
  if (std::any_of(path.begin(), path.end(), is_control)) {
    return refuse("it has a control character (the names are those below /sys/fs/cgroup)");
  }
  const auto is_beyond_ascii = [](char c) { return static_cast<uint8_t>(c) >= 0x80; };
  if (std::any_of(path.begin(), path.end(), is_beyond_ascii)) {
    return refuse("write bytes beyond ASCII as mounts tell of them, \\xc3\\xa4 for a-umlaut");
  }
  return Status::Ok();
}

std::string DescribeRule(const ClassRule& rule) {
  std::string text;
  const auto add = [&text](std::string_view word, const std::string& value) {
    text.append(text.empty() ? "" : ", ").append(word).append(" ").append(value);
  };
  if (rule.uid.has_value()) add("uid", std::to_string(*rule.uid));
  if (rule.gid.has_value()) add("gid", std::to_string(*rule.gid));
  if (!rule.exe.empty()) add("exe", rule.exe);
  if (!rule.cgroup.empty()) add("cgroup", rule.cgroup);
  if (!rule.client.empty()) add("client", rule.client);
  return text;
}

ClassId UntaggedClass(const ClusterMap& map, const RuleSubject& who, std::string* reason) {
  for (const ClassRule& rule : map.rules) {
    if (!Matches(rule, who)) continue;
    if (reason == nullptr) return Named(map, rule.class_name, {}, {}, nullptr);
    const std::string number = "rule " + std::to_string(rule.number);
    return Named(map, rule.class_name, number + ": " + DescribeRule(rule), "class of " + number,
                 reason);
  }
  if (!who.mount_class.empty()) {
    return Named(map, who.mount_class, "mount default", "mount class", reason);
  }
  if (reason != nullptr) *reason = "best-effort (default)";
  return kBestEffort;
}

}  // namespace weir
