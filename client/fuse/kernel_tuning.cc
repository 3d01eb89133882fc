#include "client/fuse/kernel_tuning.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace weir::client {
namespace {

bool WriteTo(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  return file.good();
}

std::string ConnectionFolder(const std::string& device) {
  return "/sys/fs/fuse/connections/" + device.substr(device.find(':') + 1) + "/";
}

}  // namespace

// Blanks and backslashes are \ooo there.
std::string UnescapeMount(const std::string& escaped) {
  std::string out;
  for (size_t i = 0; i < escaped.size(); ++i) {
    if (escaped[i] == '\\' && i + 3 < escaped.size()) {
      out.push_back(static_cast<char>(std::strtol(escaped.substr(i + 1, 3).c_str(), nullptr, 8)));
      i += 3;
    } else {
      out.push_back(escaped[i]);
    }
  }
  return out;
}

std::string DeviceOfMount(const std::string& mountpoint) {
  std::ifstream table("/proc/self/mountinfo");
  std::string line;
  std::string device;
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::string id, parent, number, root, where;
    fields >> id >> parent >> number >> root >> where;
    if (UnescapeMount(where) == mountpoint) device = number;  // the last one lies on top
  }
  return device;
}

bool KernelHas(const std::string& device) {
  return access(("/sys/class/bdi/" + device).c_str(), F_OK) == 0;
}

bool RaiseReadAhead(const std::string& device, uint64_t kib) {
  return !device.empty() &&
         WriteTo("/sys/class/bdi/" + device + "/read_ahead_kb", std::to_string(kib));
}

bool RaiseQueueLimits(const std::string& device, uint32_t requests) {
  if (device.empty()) return false;
  const std::string folder = ConnectionFolder(device);
  return WriteTo(folder + "max_background", std::to_string(requests)) &&
         WriteTo(folder + "congestion_threshold", std::to_string(requests));
}

bool AbortConnection(const std::string& device) {
  return !device.empty() && WriteTo(ConnectionFolder(device) + "abort", "1");
}

}  // namespace weir::client
