#include "client/fuse/process.h"

#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

namespace weir::client {
namespace {

std::string FileOf(pid_t pid, const char* name) {
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

}  // namespace

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

std::string ExecutableOf(pid_t pid, uid_t uid) {
  struct stat owner {};
  char path[PATH_MAX];
  if (stat(FileOf(pid, "").c_str(), &owner) != 0 || owner.st_uid != uid) return {};
  const ssize_t size = readlink(FileOf(pid, "exe").c_str(), path, sizeof(path));
  return size > 0 ? std::string(path, static_cast<size_t>(size)) : std::string();
}

}  // namespace weir::client
