// Class rules: who is charged to which class where no tag says so. They are part of the cluster
// map, in the order in which they are tried; the first that matches counts. Behind them come the
// class of the mount and best-effort. The same code answers in a mount, which charges by it, and in
// the MDS, which explains it. Pure. Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/result.h"

namespace weir {

struct ClusterMap;

// What is set must all match.
struct ClassRule {
  uint32_t number = 0;  // by which people name it; never given twice
  std::optional<uint32_t> uid;
  std::optional<uint32_t> gid;  // the caller's group or one of his others
  std::string exe;              // file name of the executable; with a slash: its whole path
  std::string client;           // name of a mount, or its part before the ':'
  std::string cgroup;           // path of a cgroup (v2) as systemd-cgls prints it: it and all below
  std::string class_name;
};

// For whom I/O is done. The texts are somebody else's and outlive it.
struct RuleSubject {
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::vector<uint32_t> groups;
  // Whole path; empty: unknown, or nobody's process, which no executable matches.
  std::string_view exe;
  std::string_view client;
  std::string_view mount_class;
  std::string_view cgroup = {};  // path; empty: unknown, which no cgroup of a rule matches
};

bool Matches(const ClassRule& rule, const RuleSubject& who);
// Whether the executable of a caller must be known.
bool AnyRuleNamesAnExecutable(const std::vector<ClassRule>& rules);
// Whether his cgroup must be.
bool AnyRuleNamesACgroup(const std::vector<ClassRule>& rules);
// kInvalid, with the way out, for what no process could be in.
Status CheckCgroupPath(std::string_view path);
// "uid 1001, exe rsync"
std::string DescribeRule(const ClassRule& rule);

// The class of what no tag covers. `reason`, if any: "web (rule 2: uid 1001)". A class that a rule
// or the mount names and that does not exist (any more) means best-effort.
ClassId UntaggedClass(const ClusterMap& map, const RuleSubject& who, std::string* reason = nullptr);

}  // namespace weir
