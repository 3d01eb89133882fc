#include "client/fuse/mount_flags.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <sstream>
#include <utility>
#include <vector>

#include "client/fuse/kernel_tuning.h"

namespace weir::client {
namespace {

using Rule = AccessTimes::Rule;

bool HasWord(const std::string& list, std::string_view word) {
  return ("," + list + ",").find("," + std::string(word) + ",") != std::string::npos;
}

// `options` of the mount, `super` of the filesystem.
AccessTimes::Rules RulesOf(const std::string& options, const std::string& super) {
  if (HasWord(options, "ro") || HasWord(super, "ro") || HasWord(options, "noatime")) {
    return {Rule::kNever, Rule::kNever};
  }
  const Rule rule = HasWord(options, "relatime") ? Rule::kRelative : Rule::kStrict;
  return {rule, HasWord(options, "nodiratime") ? Rule::kNever : rule};
}

}  // namespace

MountFlags::MountFlags(std::string mountpoint, AccessTimes::Rules wanted)
    : mountpoint_(std::move(mountpoint)),
      table_(open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC)),
      rules_(wanted),
      in_table_(wanted) {}

MountFlags::~MountFlags() {
  if (table_ >= 0) close(table_);
}

std::optional<AccessTimes::Rules> MountFlags::Find(std::string_view table, std::string_view device,
                                                   std::string_view mountpoint) {
  std::optional<AccessTimes::Rules> here, elsewhere;
  std::istringstream lines{std::string(table)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string id, parent, number, root, where, options, word, type, source, super;
    fields >> id >> parent >> number >> root >> where >> options;
    if (number != device) continue;
    while (fields >> word && word != "-") {
    }
    fields >> type >> source >> super;
    auto& found = UnescapeMount(where) == mountpoint ? here : elsewhere;
    found = RulesOf(options, super);  // the last one lies on top
  }
  return here.has_value() ? here : elsewhere;
}

// The kernel tells each open table of a change once, by poll.
bool MountFlags::HasChanged() const {
  pollfd look{table_, POLLPRI, 0};
  return poll(&look, 1, 0) > 0 && (look.revents & (POLLPRI | POLLERR)) != 0;
}

std::optional<AccessTimes::Rules> MountFlags::Read() const {
  std::string text;
  std::vector<char> piece(1 << 16);
  if (lseek(table_, 0, SEEK_SET) != 0) return std::nullopt;
  for (;;) {
    const ssize_t got = read(table_, piece.data(), piece.size());
    if (got <= 0) break;
    text.append(piece.data(), static_cast<size_t>(got));
  }
  return Find(text, device_, mountpoint_);
}

void MountFlags::Mounted(const std::string& device, bool told) {
  std::lock_guard lock(mutex_);
  device_ = device;
  if (table_ < 0 || device.empty()) return;
  (void)HasChanged();
  in_table_ = Read().value_or(in_table_);
  if (told) rules_ = in_table_;
}

AccessTimes::Rules MountFlags::Now() {
  std::lock_guard lock(mutex_);
  if (table_ < 0 || device_.empty() || !HasChanged()) return rules_;
  const AccessTimes::Rules now = Read().value_or(in_table_);
  if (now != std::exchange(in_table_, now)) rules_ = now;
  return rules_;
}

bool SetAtimeFlags(const std::string& mountpoint, bool noatime, bool nodiratime, bool strictatime) {
  mount_attr wanted{};
  wanted.attr_clr = MOUNT_ATTR__ATIME;
  wanted.attr_set = MOUNT_ATTR_RELATIME;
  if (strictatime) wanted.attr_set = MOUNT_ATTR_STRICTATIME;
  if (noatime) wanted.attr_set = MOUNT_ATTR_NOATIME;
  if (nodiratime) wanted.attr_set |= MOUNT_ATTR_NODIRATIME;
  return syscall(SYS_mount_setattr, AT_FDCWD, mountpoint.c_str(), 0, &wanted, sizeof(wanted)) == 0;
}

}  // namespace weir::client
