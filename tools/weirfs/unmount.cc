#include "tools/weirfs/unmount.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>

#include "client/fuse/kernel_tuning.h"
#include "tools/cli/mounts.h"
#include "tools/cli/process.h"
#include "tools/cli/program.h"
#include "tools/weirfs/ending.h"

namespace weir::weirfs {
namespace {

// More than weirfs takes before it gives up (client::Mount::Options::unmount_timeout), and less
// than systemd gives an umount.
constexpr Duration kPatience = std::chrono::seconds(80);
constexpr const char* kTable = "/run/mount/utab";
constexpr const char* kListed = "x-weirfs.umount";
constexpr int kUnmountedNotStored = 64;
constexpr std::array kWithValue = {"-t", "-N"};

// What umount(8) says to a helper, understood.
struct Request {
  std::string target;
  bool waits = true;  // neither lazy nor forced: who says that waits for nobody
};

std::vector<std::string> CommandOf(const std::vector<std::string>& words) {
  std::vector<std::string> command = {"umount", "-i"};
  // What umount(8) names needs no look at it, and may not answer one. Only root may say so.
  if (geteuid() == 0) command.emplace_back("-c");
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

Request Parse(const std::vector<std::string>& words) {
  Request request;
  for (auto word = words.begin(); word != words.end(); ++word) {
    const bool has_value =
        std::find(kWithValue.begin(), kWithValue.end(), *word) != kWithValue.end();
    if (!word->starts_with('-')) {
      request.target = *word;
    } else if (has_value && word + 1 != words.end()) {
      ++word;
    } else if (word->find_first_of("lf") != std::string::npos) {
      request.waits = false;
    }
  }
  return request;
}

// An entry of the same mountpoint stays when its mount is not ended by umount(8).
bool IsListed(const std::string& mountpoint) {
  std::ifstream table(kTable);
  for (std::string line; std::getline(table, line);) {
    std::istringstream fields(line);
    bool is_there = false, is_ours = false;
    for (std::string field; fields >> field;) {
      is_there = is_there || client::UnescapeMount(field) == "TARGET=" + mountpoint;
      is_ours = is_ours || field == std::string("OPTS=") + kListed;
    }
    if (is_there && is_ours) return true;
  }
  return false;
}

}  // namespace

int Unmount(const std::vector<std::string>& words) {
  const Request request = Parse(words);
  const bool waits = request.waits && cli::IsWeirfsMount(request.target);
  const std::string device = waits ? client::DeviceOfMount(request.target) : "";
  if (device.empty()) return cli::RunAttached(CommandOf(words));
  EndingWait ending(device, cli::OwnerOfMount(request.target));
  const int code = cli::RunAttached(CommandOf(words));
  // It may be mounted elsewhere, too, in whatever namespace.
  if (code != 0 || client::KernelHas(device)) return code;
  ending.LookAgain();
  const Status status = ending.Wait(kPatience);
  if (status.ok()) return 0;
  cli::Say("umount.fuse.weirfs",
           fmt::format("'{}' is unmounted, but {}", request.target, status.message()));
  return kUnmountedNotStored;
}

void ListForUmount(const std::string& mountpoint) {
  if (geteuid() != 0 || IsListed(mountpoint)) return;
  // It neither mounts nor looks there. Not by its true source: up to 2.39, where mount(8) finds
  // that listed it lists nothing, and the options that it alone knows are lost.
  (void)cli::RunQuietly({"timeout", "-s", "KILL", "2", "mount", "-ifc", "-t", "fuse.weirfs", "-o",
                         kListed, "--", "weirfs", mountpoint});
}

}  // namespace weir::weirfs
