#include "common/disk/loop_device.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>

namespace weir {
namespace {

namespace fs = std::filesystem;

// Empty: that block device is no loop device.
std::string FileBelow(const fs::path& block) {
  std::ifstream file(block / "loop/backing_file");
  std::string path;
  std::getline(file, path);
  return path;
}

}  // namespace

int OpenFileBelowLoop(const std::string& device) {
  struct stat info {};
  if (stat(device.c_str(), &info) != 0 || !S_ISBLK(info.st_mode)) return -1;
  const std::string path = FileBelow("/sys/dev/block/" + std::to_string(major(info.st_rdev)) + ":" +
                                     std::to_string(minor(info.st_rdev)));
  return path.empty() ? -1 : open(path.c_str(), O_RDONLY | O_CLOEXEC);
}

std::string LoopOverFile(const std::string& path) {
  std::error_code error;
  for (const auto& block : fs::directory_iterator("/sys/block", error)) {
    const std::string name = block.path().filename().string();
    if (!name.starts_with("loop")) continue;
    const std::string below = FileBelow(block.path());
    if (!below.empty() && fs::equivalent(below, path, error)) return "/dev/" + name;
  }
  return {};
}

}  // namespace weir
