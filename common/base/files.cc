#include "common/base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

namespace weir {
namespace {

// Makes names in the directory of `path` durable.
int SyncDirectoryOf(const std::string& path) {
  const std::string dir = std::filesystem::path(path).parent_path().string();
  const int fd = open(dir.empty() ? "." : dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
  close(fd);
  return error;
}

}  // namespace

Result<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return {ErrorCode::kNotFound, fmt::format("there is no readable file '{}'", path)};
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Status WriteFileAtomically(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".new";
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return Status::FromErrno(errno, fmt::format("cannot create '{}'", temporary));
  const bool written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  int error = written && fsync(fd) == 0 ? 0 : errno;
  close(fd);
  if (error == 0 && rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) error = SyncDirectoryOf(path);
  if (error == 0) return Status::Ok();
  return Status::FromErrno(error, fmt::format("cannot write '{}'", path));
}

Result<LockFile> LockFile::Take(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return Status::FromErrno(errno, fmt::format("cannot open '{}'", path));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    std::string holder = ReadFile(path).ok() ? *ReadFile(path) : "";
    holder.erase(holder.find_last_not_of('\n') + 1);
    close(fd);
    return {ErrorCode::kBusy,
            fmt::format("in use by process {}", holder.empty() ? "(unknown)" : holder)};
  }
  LockFile lock(fd);
  lock.Write(std::to_string(getpid()) + "\n");
  return lock;
}

LockFile::LockFile(LockFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

LockFile& LockFile::operator=(LockFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

LockFile::~LockFile() {
  if (fd_ >= 0) close(fd_);
}

void LockFile::Write(const std::string& text) const {
  if (ftruncate(fd_, 0) != 0 ||
      pwrite(fd_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return;  // It only serves a message; the lock is what counts.
  }
}

}  // namespace weir
