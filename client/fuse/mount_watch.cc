#include "client/fuse/mount_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <utility>

namespace weir::client {
namespace {

constexpr char kTable[] = "/proc/self/mountinfo";

bool IsMounted(const std::string& device) {
  std::ifstream table(kTable);
  for (std::string line; std::getline(table, line);) {
    std::istringstream fields(line);
    std::string id, parent, number;
    fields >> id >> parent >> number;
    if (number == device) return true;
  }
  return !table.eof();  // what cannot be read says nothing
}

}  // namespace

MountWatch::MountWatch(std::string device)
    : device_(std::move(device)), table_(open(kTable, O_RDONLY | O_CLOEXEC)) {}

MountWatch::~MountWatch() {
  if (table_ >= 0) close(table_);
}

bool MountWatch::Ended() {
  const std::lock_guard lock(mutex_);
  if (ended_ || table_ < 0 || device_.empty()) return ended_;
  // proc(5): the open table polls as POLLPRI once after each change.
  pollfd changed{table_, POLLPRI, 0};
  if (poll(&changed, 1, 0) > 0) ended_ = !IsMounted(device_);
  return ended_;
}

}  // namespace weir::client
