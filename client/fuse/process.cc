#include "client/fuse/process.h"

#include <fmt/format.h>

#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <vector>

namespace weir::client {
namespace {

// Those that decide about files.
constexpr uint64_t kCapabilities = uint64_t{1} << CAP_CHOWN | uint64_t{1} << CAP_DAC_OVERRIDE |
                                   uint64_t{1} << CAP_DAC_READ_SEARCH | uint64_t{1} << CAP_FOWNER |
                                   uint64_t{1} << CAP_FSETID | uint64_t{1} << CAP_SYS_ADMIN |
                                   uint64_t{1} << CAP_MKNOD | uint64_t{1} << CAP_SETFCAP;

// Whether its numbers of processes are ours.
bool ProcIsOurs() {
  static const bool ours = [] {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
      if (line.rfind("NSpid:", 0) != 0) continue;
      std::istringstream numbers(line.substr(6));
      pid_t outermost = 0, next = 0;
      return (numbers >> outermost) && outermost == getpid() && !(numbers >> next);
    }
    return false;
  }();
  return ours;
}

// Empty for whom weirfs cannot see: under his number it would find somebody else.
std::string FileOf(pid_t pid, const char* name) {
  if (!SeesProcess(pid)) return {};
  return "/proc/" + std::to_string(pid) + "/" + name;
}

// Fields of proc(5)'s stat behind the name, which may hold anything: 3 is the first of them.
constexpr size_t kState = 3 - 3;
constexpr size_t kFlags = 9 - 3;
constexpr size_t kExitCode = 52 - 3;  // 0 for those who may not know
constexpr uint64_t kExiting = 4;      // PF_EXITING

// Empty when there is no such process.
std::vector<std::string> StatOf(pid_t pid) {
  std::ifstream file(FileOf(pid, "stat"));
  std::string text;
  std::getline(file, text);
  const size_t name_ends = text.rfind(')');
  if (name_ends == std::string::npos) return {};
  std::istringstream rest(text.substr(name_ends + 1));
  std::vector<std::string> fields;
  for (std::string field; rest >> field;) fields.push_back(field);
  if (fields.size() <= kExitCode) return {};
  return fields;
}

uint64_t NumberIn(const std::vector<std::string>& stat, size_t field) {
  return std::strtoull(stat[field].c_str(), nullptr, 10);
}

std::string TextOf(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Of "Uid:" and "Gid:": real, effective, saved, and by which files are accessed.
bool ActsAs(std::istringstream& numbers, uint32_t id) {
  uint32_t real = 0, effective = 0, saved = 0, of_files = 0;
  return (numbers >> real >> effective >> saved >> of_files) && of_files == id;
}

// Ranges out here that a namespace maps; none: all there are.
std::vector<IdRange> ParseMap(const std::string& text) {
  std::vector<IdRange> ranges;
  std::istringstream lines(text);
  for (uint32_t inside = 0, first = 0, count = 0; lines >> inside >> first >> count;) {
    if (first == 0 && count == UINT32_MAX) return {};
    ranges.push_back({first, count});
  }
  if (ranges.empty()) ranges.push_back({0, 0});  // nothing
  return ranges;
}

}  // namespace

bool SeesProcess(pid_t pid) {
  return pid != 0 && ProcIsOurs();
}

bool IsBeingKilled(pid_t pid) {
  constexpr uint64_t kSigKill = uint64_t{1} << 8;
  std::ifstream status(FileOf(pid, "status"));
  std::string line;
  while (std::getline(status, line)) {
    if (line.rfind("SigPnd:", 0) != 0 && line.rfind("ShdPnd:", 0) != 0) continue;
    if ((std::strtoull(line.c_str() + 7, nullptr, 16) & kSigKill) != 0) return true;
  }
  return false;
}

bool IsSignalled(pid_t thread) {
  uint64_t pending = 0, passed_over = 0;
  std::ifstream status(FileOf(thread, "status"));
  for (std::string line; std::getline(status, line);) {
    const uint64_t set =
        std::strtoull(line.c_str() + std::min<size_t>(7, line.size()), nullptr, 16);
    if (line.rfind("SigPnd:", 0) == 0 || line.rfind("ShdPnd:", 0) == 0) pending |= set;
    if (line.rfind("SigBlk:", 0) == 0 || line.rfind("SigIgn:", 0) == 0) passed_over |= set;
  }
  return (pending & ~passed_over) != 0;
}

bool IsEndedBySignal(pid_t pid) {
  constexpr uint64_t kSignal = 0x7f;
  const std::vector<std::string> stat = StatOf(pid);
  return !stat.empty() && (NumberIn(stat, kFlags) & kExiting) != 0 &&
         (NumberIn(stat, kExitCode) & kSignal) != 0;
}

bool IsOtherLivingProcess(pid_t thread, pid_t than) {
  const std::string siblings = FileOf(than, "task");
  if (access(siblings.c_str(), F_OK) != 0) return false;
  if (access((siblings + "/" + std::to_string(thread)).c_str(), F_OK) == 0) return false;
  const std::vector<std::string> stat = StatOf(thread);
  return !stat.empty() && stat[kState] != "Z" && (NumberIn(stat, kFlags) & kExiting) == 0;
}

std::optional<CallerRights> ParseRights(const CallerId& caller, const std::string& status,
                                        const std::string& uid_map, const std::string& gid_map) {
  CallerRights rights;
  bool acts_as_uid = false, acts_as_gid = false, has_groups = false, has_capabilities = false;
  std::istringstream lines(status);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string name = line.substr(0, colon);
    std::istringstream rest(line.substr(colon + 1));
    if (name == "Uid") acts_as_uid = ActsAs(rest, caller.uid);
    if (name == "Gid") acts_as_gid = ActsAs(rest, caller.gid);
    if (name == "Groups") {
      has_groups = true;
      for (gid_t group = 0; rest >> group;) rights.groups.push_back(group);
    } else if (name == "CapEff") {
      has_capabilities = static_cast<bool>(rest >> std::hex >> rights.capabilities);
    }
  }
  if (!acts_as_uid || !acts_as_gid || !has_groups || !has_capabilities) return std::nullopt;
  rights.capabilities &= kCapabilities;
  if (rights.capabilities == 0) return rights;
  rights.uids = ParseMap(uid_map);
  rights.gids = ParseMap(gid_map);
  return rights;
}

std::optional<CallerRights> RightsOf(const CallerId& caller) {
  const std::string status = TextOf(FileOf(caller.pid, "status"));
  auto plain = ParseRights(caller, status, {}, {});
  if (!plain.has_value() || plain->capabilities == 0) return plain;
  return ParseRights(caller, status, TextOf(FileOf(caller.pid, "uid_map")),
                     TextOf(FileOf(caller.pid, "gid_map")));
}

bool WaitsInKernel(pid_t thread) {
  const std::vector<std::string> stat = StatOf(thread);
  return stat.empty() || stat[kState] == "D";
}

pid_t ThreadGroupOf(pid_t thread) {
  if (!SeesProcess(thread)) return 0;
  // A descriptor is given out of a process only, by the number of its first thread: with most
  // callers that says it, much sooner than /proc.
  const auto process = static_cast<int>(syscall(SYS_pidfd_open, thread, 0));
  if (process >= 0) {
    (void)close(process);
    return thread;
  }
  std::ifstream status(FileOf(thread, "status"));
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("Tgid:", 0) == 0) return static_cast<pid_t>(std::atoi(line.c_str() + 5));
  }
  return 0;
}

std::string ExecutableOf(pid_t pid, uid_t uid) {
  struct stat owner {};
  char path[PATH_MAX];
  if (stat(FileOf(pid, "").c_str(), &owner) != 0 || owner.st_uid != uid) return {};
  const ssize_t size = readlink(FileOf(pid, "exe").c_str(), path, sizeof(path));
  return size > 0 ? std::string(path, static_cast<size_t>(size)) : std::string();
}

namespace {

// Names of cgroups may be of any bytes, what goes over the wire and to terminals may not.
std::string Escaped(const std::string& path) {
  std::string text;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte >= 0x20 && byte < 0x7f;
    text += plain ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  return text;
}

}  // namespace

std::string ParseCgroup(const std::string& text) {
  constexpr std::string_view kVersion2 = "0::";
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kVersion2)) return Escaped(line.substr(kVersion2.size()));
  }
  return {};
}

// Not by the owner of /proc/PID: that of a process that has changed its ids is root, until it
// executes a program.
std::string CgroupOf(pid_t pid, uid_t uid) {
  std::ifstream status(FileOf(pid, "status"));
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("Uid:")) continue;
    std::istringstream numbers(line.substr(4));
    return ActsAs(numbers, uid) ? ParseCgroup(TextOf(FileOf(pid, "cgroup"))) : std::string();
  }
  return {};
}

}  // namespace weir::client
