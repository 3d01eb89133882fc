#include "common/base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
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
  constexpr size_t kLargest = 64 << 20;
  constexpr size_t kPiece = 64 << 10;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat info {};
  if (fd < 0) {
    if (errno != ENOENT) return Status::FromErrno(errno, fmt::format("cannot open '{}'", path));
    if (lstat(path.c_str(), &info) != 0) {
      return {ErrorCode::kNotFound, fmt::format("there is no file '{}'", path)};
    }
    return {ErrorCode::kCorrupt, fmt::format("'{}' is a symbolic link to nothing", path)};
  }
  Status status;
  std::string text;
  if (fstat(fd, &info) != 0) status = Status::FromErrno(errno, path);
  if (!S_ISREG(info.st_mode)) {
    status = {ErrorCode::kCorrupt, fmt::format("'{}' is no regular file", path)};
  }
  for (size_t had = SIZE_MAX; status.ok() && text.size() != had;) {
    had = text.size();
    text.resize(had + kPiece);
    const ssize_t got = read(fd, text.data() + had, kPiece);
    if (got < 0) status = Status::FromErrno(errno, fmt::format("cannot read '{}'", path));
    text.resize(had + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (text.size() > kLargest) {
      status = {ErrorCode::kCorrupt, fmt::format("'{}' has more than {} bytes", path, kLargest)};
    }
  }
  close(fd);
  if (!status.ok()) return status;
  return text;
}

Status WriteFileAtomically(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".new";
  unlink(temporary.c_str());  // of one that was cut short; if it is a link, not what it leads to
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
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
