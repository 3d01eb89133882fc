#include "common/placement/class_rules.h"

#include <algorithm>

#include "common/placement/cluster_map.h"

namespace weir {
namespace {

std::string_view Trimmed(std::string_view exe) {
  // The kernel says so of a program that was replaced while it runs.
  constexpr std::string_view kDeleted = " (deleted)";
  return exe.ends_with(kDeleted) ? exe.substr(0, exe.size() - kDeleted.size()) : exe;
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
  return rule.client.empty() || ClientMatches(rule.client, who.client);
}

bool AnyRuleNamesAnExecutable(const std::vector<ClassRule>& rules) {
  return std::any_of(rules.begin(), rules.end(),
                     [](const ClassRule& rule) { return !rule.exe.empty(); });
}

std::string DescribeRule(const ClassRule& rule) {
  std::string text;
  const auto add = [&text](std::string_view word, const std::string& value) {
    text.append(text.empty() ? "" : ", ").append(word).append(" ").append(value);
  };
  if (rule.uid.has_value()) add("uid", std::to_string(*rule.uid));
  if (rule.gid.has_value()) add("gid", std::to_string(*rule.gid));
  if (!rule.exe.empty()) add("exe", rule.exe);
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
