// The real device: a descriptor, O_DIRECT, whose asynchronous requests a reactor takes to the disk.
//
// Requests of the reactor's own thread go there at once, those of other threads by
// way of its mailbox; all are completed on its thread. Synchronous ones are plain pread, pwrite and
// fdatasync in the calling thread: RocksDB's log needs one write and one flush in a row, and each
// hop would add two context switches.
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "common/base/check.h"
#include "common/disk/block_device.h"
#include "common/disk/loop_device.h"
#include "common/reactor/reactor.h"

namespace weir {
namespace {

constexpr size_t kReadAtOnce = 64 << 10;

class FileDevice final : public BlockDevice {
 public:
  struct Traits {
    bool rotational;
    bool image;
    bool cached;     // by the page cache, not O_DIRECT
    bool in_memory;  // on a tmpfs
  };
  // `below`: of the file below a loop device, locked; -1: none.
  FileDevice(int fd, int below, uint64_t size, std::string name, const Traits& traits)
      : fd_(fd), below_(below), size_(size), name_(std::move(name)), traits_(traits) {}

  ~FileDevice() override {
    own_.reset();
    close(fd_);
    if (below_ >= 0) close(below_);
  }

  // Null: a reactor of its own.
  Status Start(Reactor* reactor) {
    if (reactor == nullptr) {
      WEIR_ASSIGN_OR_RETURN(own_, Reactor::Create({.name = "disk"}));
      own_->Start();
      reactor = own_.get();
    }
    reactor_ = reactor;
    return {};
  }

  Status Grow(uint64_t size) override {
    if (!traits_.image) return BlockDevice::Grow(size);
    const uint64_t before = size_;
    if (size <= before) return {};
    int error = posix_fallocate(fd_, static_cast<off_t>(before), static_cast<off_t>(size - before));
    if (error == 0 && fsync(fd_) != 0) error = errno;
    if (error == 0) {
      size_ = size;
      return {};
    }
    (void)ftruncate(fd_, static_cast<off_t>(before));  // or it goes on with what it got
    return Status::FromErrno(error, name_ + ": cannot grow to " + std::to_string(size) + " bytes");
  }
  [[nodiscard]] uint64_t size() const override { return size_; }
  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] bool rotational() const override { return traits_.rotational; }
  [[nodiscard]] bool is_image() const override { return traits_.image; }

 protected:
  void DoRead(uint64_t offset, Buffer buffer, Done done) override {
    if (traits_.cached && ReadAtOnce(offset, buffer)) return done({});
    Submit(
        new Request(*this, DiskRequest::Kind::kRead, offset, std::move(buffer), std::move(done)));
  }
  void DoWrite(uint64_t offset, Buffer buffer, Done done) override {
    Submit(
        new Request(*this, DiskRequest::Kind::kWrite, offset, std::move(buffer), std::move(done)));
  }
  void DoFlush(Done done) override {
    Submit(new Request(*this, DiskRequest::Kind::kSync, 0, {}, std::move(done)));
  }

  Status DoDiscard(uint64_t offset, uint64_t length) override {
    if (traits_.image) {
      if (fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                    static_cast<off_t>(length)) != 0 &&
          errno != EOPNOTSUPP) {
        return Status::FromErrno(errno, name_ + ": cannot discard");
      }
      return {};
    }
    uint64_t range[2] = {offset, length};
    if (ioctl(fd_, BLKDISCARD, range) != 0 && errno != EOPNOTSUPP) {
      return Status::FromErrno(errno, name_ + ": cannot discard");
    }
    return {};
  }

  Status DoReadSync(uint64_t offset, Buffer buffer) override {
    return Loop(offset, buffer, "read", [this](uint8_t* at, size_t n, uint64_t from) {
      return pread(fd_, at, n, static_cast<off_t>(from));
    });
  }
  Status DoWriteSync(uint64_t offset, Buffer buffer) override {
    return Loop(offset, buffer, "write", [this](uint8_t* at, size_t n, uint64_t to) {
      return pwrite(fd_, at, n, static_cast<off_t>(to));
    });
  }
  Status DoFlushSync() override {
    if (fdatasync(fd_) != 0) return Status::FromErrno(errno, name_ + ": cannot flush");
    return {};
  }

 private:
  struct Request final : DiskRequest {
    Request(FileDevice& of, Kind what, uint64_t at, Buffer bytes, BlockDevice::Done then)
        : device(of), buffer(std::move(bytes)), done(std::move(then)) {
      kind = what;
      fd = of.fd_;
      offset = at;
      data = buffer.data();
      length = static_cast<uint32_t>(buffer.size());
    }
    void Done(int64_t result) override { device.Complete(this, result); }

    FileDevice& device;
    const Buffer buffer;
    const BlockDevice::Done done;
  };

  // What the page cache has takes less time to copy than to ask another thread for. A tmpfs has all
  // of it and knows no RWF_NOWAIT.
  bool ReadAtOnce(uint64_t offset, const Buffer& buffer) {
    if (buffer.size() > kReadAtOnce) return false;
    const iovec to{buffer.data(), buffer.size()};
    const int flags = traits_.in_memory ? 0 : RWF_NOWAIT;
    const ssize_t moved = preadv2(fd_, &to, 1, static_cast<off_t>(offset), flags);
    return moved == static_cast<ssize_t>(buffer.size());
  }

  template <typename Call>
  Status Loop(uint64_t offset, const Buffer& buffer, const char* verb, Call call) {
    size_t moved = 0;
    while (moved < buffer.size()) {
      const ssize_t n = call(buffer.data() + moved, buffer.size() - moved, offset + moved);
      if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (n <= 0) return Failure(n < 0 ? errno : EIO, verb, offset + moved);
      moved += static_cast<size_t>(n);
    }
    return {};
  }

  Status Failure(int error, std::string_view verb, uint64_t offset) const {
    Status status = Status::FromErrno(
        error, name_ + ": cannot " + std::string(verb) + " at " + std::to_string(offset));
    // Whatever errno a medium invents, to the callers it is the medium.
    return {ErrorCode::kIo, status.message()};
  }

  void Submit(Request* request) {
    WEIR_CHECK(reactor_ != nullptr, "a device without threads is asked to work behind one's back");
    if (reactor_->InLoop()) return reactor_->Submit(request);
    reactor_->Post([this, request] { reactor_->Submit(request); });
  }

  void Complete(Request* request, int64_t result) {
    if (result == -EAGAIN || result == -EINTR) return reactor_->Submit(request);
    const bool sync = request->kind == DiskRequest::Kind::kSync;
    if (result < 0 || (result == 0 && !sync)) {
      constexpr std::string_view kVerbs[] = {"read", "write", "flush"};
      const int error = result < 0 ? static_cast<int>(-result) : EIO;
      const Status failure =
          Failure(error, kVerbs[static_cast<size_t>(request->kind)], request->offset);
      const std::unique_ptr<Request> owned(request);
      return owned->done(failure);
    }
    if (!sync && result < request->length) {  // a short one: the rest
      request->offset += static_cast<uint64_t>(result);
      request->data += result;
      request->length -= static_cast<uint32_t>(result);
      return reactor_->Submit(request);
    }
    const std::unique_ptr<Request> owned(request);
    owned->done({});
  }

  const int fd_, below_;
  std::atomic<uint64_t> size_;
  const std::string name_;
  const Traits traits_;
  Reactor* reactor_ = nullptr;    // null: only synchronous calls
  std::unique_ptr<Reactor> own_;  // of nobody else
};

bool IsRotational(dev_t device) {
  std::ifstream file("/sys/dev/block/" + std::to_string(major(device)) + ":" +
                     std::to_string(minor(device)) + "/queue/rotational");
  int value = 0;
  return (file >> value) && value == 1;
}

// Nobody else has it, under this name or as what lies below or above. Sets the descriptor that
// holds the lock of what lies below a loop device.
Status LockWhole(int fd, const std::string& path, bool block, int* below) {
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return {ErrorCode::kBusy, path + ": in use by another process; stop that first"};
  }
  if (block) {
    *below = OpenFileBelowLoop(path);
    if (*below < 0 || flock(*below, LOCK_EX | LOCK_NB) == 0) return {};
    return {ErrorCode::kBusy,
            path + ": another process uses the file below this loop device; stop that first"};
  }
  const std::string loop = LoopOverFile(path);
  if (loop.empty()) return {};
  return {ErrorCode::kBusy,
          path + ": in use by " + loop + " (name that, or losetup -d " + loop + " first)"};
}

// Without a name, or under one of its own where the filesystem knows no such files.
class NewImage {
 public:
  explicit NewImage(const std::string& path) : path_(path) {}
  ~NewImage() {
    if (fd_ >= 0) close(fd_);
    if (!draft_.empty()) unlink(draft_.c_str());
  }
  NewImage(const NewImage&) = delete;
  NewImage& operator=(const NewImage&) = delete;

  Status Create(uint64_t size) {
    const std::string dir = std::filesystem::path(path_).parent_path().string();
    fd_ = open(dir.empty() ? "." : dir.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd_ < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
      const std::string draft = path_ + ".new";
      fd_ = open(draft.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
      if (fd_ < 0) return Status::FromErrno(errno, draft + ": cannot create");
      draft_ = draft;
    }
    if (fd_ < 0) return Status::FromErrno(errno, path_ + ": cannot create");
    int error = posix_fallocate(fd_, 0, static_cast<off_t>(size));
    if (error == 0 && fsync(fd_) != 0) error = errno;
    if (error == 0) return {};
    return Status::FromErrno(error, path_ + ": cannot allocate " + std::to_string(size) + " bytes");
  }
  [[nodiscard]] std::string place() const {
    return draft_.empty() ? "/proc/self/fd/" + std::to_string(fd_) : draft_;
  }
  Status Name() {
    if (linkat(AT_FDCWD, place().c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      return {};
    }
    return Status::FromErrno(errno, path_ + ": cannot create");
  }

 private:
  const std::string& path_;
  std::string draft_;
  int fd_ = -1;
};

}  // namespace

Result<std::unique_ptr<BlockDevice>> OpenDevice(const std::string& path,
                                                const OpenOptions& options) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return Status::FromErrno(errno, path);
  const bool block = S_ISBLK(info.st_mode);
  if (!block && !S_ISREG(info.st_mode)) {
    return {ErrorCode::kInvalid, path + ": neither a block device nor an image file"};
  }
  int flags = (options.read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC;
  if (options.direct) flags |= O_DIRECT;
  if (block && options.exclusive) flags |= O_EXCL;
  const int fd = open(path.c_str(), flags);
  if (fd < 0) {
    if (errno == EBUSY) {
      return {ErrorCode::kBusy,
              path + ": in use (mounted, or held by another process); release it first"};
    }
    const int error = errno;
    std::string hint;
    if (error == EACCES && block)
      hint = " (raw disks belong to the group disk, as udev gives them)";
    if (error == EROFS) hint = " (a service may write where ReadWritePaths= says, systemctl edit)";
    return Status::FromErrno(
        error, path + ": cannot open" + (options.direct ? " with O_DIRECT" : "") + hint);
  }
  int below = -1;
  const auto fail = [&](Status status) {
    close(fd);
    if (below >= 0) close(below);
    return status;
  };
  if (options.exclusive) {
    if (Status locked = LockWhole(fd, path, block, &below); !locked.ok()) return fail(locked);
  }
  uint64_t size = static_cast<uint64_t>(info.st_size);
  if (block && ioctl(fd, BLKGETSIZE64, &size) != 0) {
    return fail(Status::FromErrno(errno, path + ": cannot tell its size"));
  }
  if (size == 0) return fail({ErrorCode::kInvalid, path + ": is empty (0 bytes)"});
  if (!block && size % kBlockSize != 0) {
    return fail({ErrorCode::kInvalid, path + ": its size of " + std::to_string(size) +
                                          " bytes is not a multiple of 4096"});
  }
  size = size / kBlockSize * kBlockSize;  // a disk may end with a few odd sectors
  struct statfs home {};
  const bool in_memory = !block && fstatfs(fd, &home) == 0 && home.f_type == TMPFS_MAGIC;
  const FileDevice::Traits traits{.rotational = block && IsRotational(info.st_rdev),
                                  .image = !block,
                                  .cached = !options.direct,
                                  .in_memory = in_memory};
  auto device = std::make_unique<FileDevice>(fd, below, size, path, traits);
  if (options.threads) WEIR_RETURN_IF_ERROR(device->Start(options.reactor));
  return std::unique_ptr<BlockDevice>(std::move(device));
}

Status CreateImage(const std::string& path, uint64_t size,
                   const std::function<Status(const std::string& unnamed)>& fill) {
  if (size == 0 || size % kBlockSize != 0) {
    return {ErrorCode::kInvalid, path + ": the size of an image is a multiple of 4096 bytes"};
  }
  struct stat info {};
  if (lstat(path.c_str(), &info) == 0) {
    return {ErrorCode::kExists, path + ": cannot create: there is a file of that name"};
  }
  NewImage image(path);
  WEIR_RETURN_IF_ERROR(image.Create(size));
  if (fill) WEIR_RETURN_IF_ERROR(fill(image.place()).Annotate("making " + path));
  return image.Name();
}

}  // namespace weir
