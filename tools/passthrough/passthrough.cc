// weir-passthrough DIR MNT [THREADS]: shows DIR at MNT through FUSE and does nothing else. What it
// reaches on a filesystem is the most that any FUSE filesystem of this shape can reach there, so
// tools/bench measures it beside WeirFS as a limit.
//
// It has the settings that WeirFS has: requests of up to 1 MiB, a kernel budget of 4096 requests,
// and opens with O_DIRECT bypass the page cache and may write in parallel. O_DIRECT is passed on,
// so "direct" means the disk below in every row of the benchmark.
//
// Payloads are never copied here. O_DIRECT needs aligned memory, and libfuse's own receive buffer
// is not aligned where the payload starts; so each thread receives into a buffer of its own that is
// placed such that the payload of a WRITE begins on a page (see ServeLoop).
//
// Left out, as no benchmark needs it: symlinks, hard links, xattrs, locks, and acting as the
// calling user (what is created belongs to the user who runs this, root).

#define FUSE_USE_VERSION 35

#include <dirent.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tools/passthrough/inode_table.h"

namespace weir::passthrough {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kMaxWrite = 1 << 20;
constexpr size_t kWriteHeaders = sizeof(fuse_in_header) + sizeof(fuse_write_in);
constexpr size_t kReceiveBytes = 2 * kMaxWrite;  // libfuse reads up to 1 MiB + one page.
constexpr unsigned kRequestBudget = 4096;
constexpr double kCacheSeconds = 1.0;
constexpr int kDefaultThreads = 4;

struct FreeDeleter {
  void operator()(void* memory) const { free(memory); }
};
using PageBuffer = std::unique_ptr<char, FreeDeleter>;

PageBuffer AllocatePages(size_t bytes) {
  return PageBuffer(static_cast<char*>(aligned_alloc(kPage, bytes)));
}

InodeTable* Table(fuse_req_t req) {
  return static_cast<InodeTable*>(fuse_req_userdata(req));
}
int PathFd(fuse_req_t req, fuse_ino_t ino) {
  return Table(req)->Get(ino)->fd;
}

// An O_PATH descriptor can't be opened or truncated itself, but its name in /proc can.
std::string ProcPath(int fd) {
  return "/proc/self/fd/" + std::to_string(fd);
}

// Answers with the errno of a failed call, or 0.
void ReplyStatus(fuse_req_t req, int result) {
  fuse_reply_err(req, result < 0 ? errno : 0);
}

// Fills `entry` for `name` in `parent` and counts the lookup. Returns 0 or an errno.
int FindEntry(fuse_req_t req, fuse_ino_t parent, const char* name, fuse_entry_param* entry) {
  *entry = {};
  entry->attr_timeout = entry->entry_timeout = kCacheSeconds;
  const int fd = openat(PathFd(req, parent), name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return errno;
  if (fstatat(fd, "", &entry->attr, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0) {
    const int error = errno;
    close(fd);
    return error;
  }
  entry->ino = Table(req)->Lookup(fd, entry->attr);
  return 0;
}

void ReplyEntry(fuse_req_t req, fuse_ino_t parent, const char* name) {
  fuse_entry_param entry;
  const int error = FindEntry(req, parent, name, &entry);
  if (error != 0) {
    fuse_reply_err(req, error);
  } else if (fuse_reply_entry(req, &entry) < 0) {
    Table(req)->Forget(entry.ino, 1);
  }
}

void Lookup(fuse_req_t req, fuse_ino_t parent, const char* name) {
  ReplyEntry(req, parent, name);
}

void Forget(fuse_req_t req, fuse_ino_t ino, uint64_t lookups) {
  Table(req)->Forget(ino, lookups);
  fuse_reply_none(req);
}

void ForgetMulti(fuse_req_t req, size_t count, fuse_forget_data* forgets) {
  for (size_t i = 0; i < count; ++i) Table(req)->Forget(forgets[i].ino, forgets[i].nlookup);
  fuse_reply_none(req);
}

void Mkdir(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode) {
  if (mkdirat(PathFd(req, parent), name, mode) < 0) return ReplyStatus(req, -1);
  ReplyEntry(req, parent, name);
}

void Create(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, fuse_file_info* fi) {
  const int fd =
      openat(PathFd(req, parent), name, (fi->flags | O_CREAT | O_CLOEXEC) & ~O_NOFOLLOW, mode);
  if (fd < 0) return ReplyStatus(req, -1);
  fuse_entry_param entry;
  const int error = FindEntry(req, parent, name, &entry);
  if (error != 0) {
    close(fd);
    fuse_reply_err(req, error);
    return;
  }
  fi->fh = static_cast<uint64_t>(fd);
  fi->direct_io = (fi->flags & O_DIRECT) != 0;  // Not parallel: extending writes never are.
  if (fuse_reply_create(req, &entry, fi) < 0) {
    close(fd);
    Table(req)->Forget(entry.ino, 1);
  }
}

void Unlink(fuse_req_t req, fuse_ino_t parent, const char* name) {
  ReplyStatus(req, unlinkat(PathFd(req, parent), name, 0));
}

void Rmdir(fuse_req_t req, fuse_ino_t parent, const char* name) {
  ReplyStatus(req, unlinkat(PathFd(req, parent), name, AT_REMOVEDIR));
}

void Rename(fuse_req_t req, fuse_ino_t parent, const char* name, fuse_ino_t new_parent,
            const char* new_name, unsigned flags) {
  ReplyStatus(req, renameat2(PathFd(req, parent), name, PathFd(req, new_parent), new_name, flags));
}

void GetAttr(fuse_req_t req, fuse_ino_t ino, fuse_file_info*) {
  struct stat attr;
  if (fstatat(PathFd(req, ino), "", &attr, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0) {
    return ReplyStatus(req, -1);
  }
  fuse_reply_attr(req, &attr, kCacheSeconds);
}

timespec TimeToSet(int to_set, int explicit_bit, int now_bit, const timespec& value) {
  if ((to_set & now_bit) != 0) return {0, UTIME_NOW};
  return (to_set & explicit_bit) != 0 ? value : timespec{0, UTIME_OMIT};
}

// Applies what `to_set` names; stops at the first failure and returns -1 with its errno.
int ApplyAttr(int fd, const struct stat& attr, int to_set) {
  const std::string path = ProcPath(fd);
  if ((to_set & FUSE_SET_ATTR_MODE) != 0 && chmod(path.c_str(), attr.st_mode) < 0) return -1;
  if ((to_set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) != 0) {
    const uid_t uid = (to_set & FUSE_SET_ATTR_UID) != 0 ? attr.st_uid : static_cast<uid_t>(-1);
    const gid_t gid = (to_set & FUSE_SET_ATTR_GID) != 0 ? attr.st_gid : static_cast<gid_t>(-1);
    if (fchownat(fd, "", uid, gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0) return -1;
  }
  if ((to_set & FUSE_SET_ATTR_SIZE) != 0 && truncate(path.c_str(), attr.st_size) < 0) return -1;
  if ((to_set & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME)) != 0) {
    const timespec times[2] = {
        TimeToSet(to_set, FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW, attr.st_atim),
        TimeToSet(to_set, FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW, attr.st_mtim)};
    if (utimensat(AT_FDCWD, path.c_str(), times, 0) < 0) return -1;
  }
  return 0;
}

void SetAttr(fuse_req_t req, fuse_ino_t ino, struct stat* attr, int to_set, fuse_file_info* fi) {
  if (ApplyAttr(PathFd(req, ino), *attr, to_set) < 0) return ReplyStatus(req, -1);
  GetAttr(req, ino, fi);
}

void StatFs(fuse_req_t req, fuse_ino_t ino) {
  struct statvfs stats;
  if (fstatvfs(PathFd(req, ino), &stats) < 0) return ReplyStatus(req, -1);
  fuse_reply_statfs(req, &stats);
}

void Open(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  const int flags = (fi->flags | O_CLOEXEC) & ~(O_NOFOLLOW | O_CREAT | O_EXCL);
  const int fd = open(ProcPath(PathFd(req, ino)).c_str(), flags);
  if (fd < 0) return ReplyStatus(req, -1);
  // Written by hand because this libfuse has no name for parallel direct writes.
  fuse_open_out reply{};
  reply.fh = static_cast<uint64_t>(fd);
  if ((fi->flags & O_DIRECT) != 0) {
    reply.open_flags = FOPEN_DIRECT_IO | FOPEN_PARALLEL_DIRECT_WRITES;
  }
  if (fuse_reply_buf(req, reinterpret_cast<const char*>(&reply), sizeof(reply)) < 0) close(fd);
}

int FileOf(const fuse_file_info* fi) {
  return static_cast<int>(fi->fh);
}

void Read(fuse_req_t req, fuse_ino_t, size_t size, off_t offset, fuse_file_info* fi) {
  thread_local const PageBuffer buffer = AllocatePages(kMaxWrite);
  const ssize_t got = pread(FileOf(fi), buffer.get(), std::min(size, kMaxWrite), offset);
  if (got < 0) return ReplyStatus(req, -1);
  fuse_reply_buf(req, buffer.get(), static_cast<size_t>(got));
}

void Write(fuse_req_t req, fuse_ino_t, const char* data, size_t size, off_t offset,
           fuse_file_info* fi) {
  const ssize_t put = pwrite(FileOf(fi), data, size, offset);
  if (put < 0) return ReplyStatus(req, -1);
  fuse_reply_write(req, static_cast<size_t>(put));
}

// Closing a duplicate lets the filesystem below report what it would report to a close().
void Flush(fuse_req_t req, fuse_ino_t, fuse_file_info* fi) {
  ReplyStatus(req, close(dup(FileOf(fi))));
}

void Fsync(fuse_req_t req, fuse_ino_t, int data_only, fuse_file_info* fi) {
  ReplyStatus(req, data_only != 0 ? fdatasync(FileOf(fi)) : fsync(FileOf(fi)));
}

void Release(fuse_req_t req, fuse_ino_t, fuse_file_info* fi) {
  close(FileOf(fi));
  fuse_reply_err(req, 0);
}

void OpenDir(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  const int fd = openat(PathFd(req, ino), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ReplyStatus(req, -1);
  DIR* dir = fdopendir(fd);
  if (dir == nullptr) {
    const int error = errno;
    close(fd);
    fuse_reply_err(req, error);
    return;
  }
  fi->fh = reinterpret_cast<uintptr_t>(dir);
  if (fuse_reply_open(req, fi) < 0) closedir(dir);
}

DIR* DirOf(const fuse_file_info* fi) {
  return reinterpret_cast<DIR*>(fi->fh);  // NOLINT(performance-no-int-to-ptr): made by OpenDir.
}

// The kernel reads one directory handle from one thread at a time.
void ReadDir(fuse_req_t req, fuse_ino_t, size_t size, off_t offset, fuse_file_info* fi) {
  DIR* dir = DirOf(fi);
  std::vector<char> reply(size);
  size_t used = 0;
  seekdir(dir, offset);
  errno = 0;
  while (const dirent* item = readdir(dir)) {
    struct stat attr {};
    attr.st_ino = item->d_ino;
    attr.st_mode = static_cast<mode_t>(item->d_type) << 12;
    const size_t needed =
        fuse_add_direntry(req, reply.data() + used, size - used, item->d_name, &attr, item->d_off);
    if (needed > size - used) break;
    used += needed;
  }
  if (errno != 0 && used == 0) return ReplyStatus(req, -1);
  fuse_reply_buf(req, reply.data(), used);
}

void ReleaseDir(fuse_req_t req, fuse_ino_t, fuse_file_info* fi) {
  closedir(DirOf(fi));
  fuse_reply_err(req, 0);
}

void Init(void*, fuse_conn_info* conn) {
  conn->max_write = kMaxWrite;
  conn->max_background = kRequestBudget;
  conn->congestion_threshold = kRequestBudget;
  conn->want &=
      ~static_cast<unsigned>(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
}

fuse_lowlevel_ops Operations() {
  fuse_lowlevel_ops ops{};
  ops.init = Init;
  ops.lookup = Lookup;
  ops.forget = Forget;
  ops.forget_multi = ForgetMulti;
  ops.getattr = GetAttr;
  ops.setattr = SetAttr;
  ops.mkdir = Mkdir;
  ops.unlink = Unlink;
  ops.rmdir = Rmdir;
  ops.rename = Rename;
  ops.create = Create;
  ops.open = Open;
  ops.read = Read;
  ops.write = Write;
  ops.flush = Flush;
  ops.release = Release;
  ops.fsync = Fsync;
  ops.opendir = OpenDir;
  ops.readdir = ReadDir;
  ops.releasedir = ReleaseDir;
  ops.statfs = StatFs;
  return ops;
}

// Serves requests until the filesystem is unmounted.
void ServeLoop(fuse_session* session) {
  const PageBuffer memory = AllocatePages(kPage + kReceiveBytes);
  fuse_buf request{};
  request.mem = memory.get() + kPage - kWriteHeaders;
  while (fuse_session_exited(session) == 0) {
    const int got = fuse_session_receive_buf(session, &request);
    if (got == -EINTR) continue;
    if (got <= 0) break;
    fuse_session_process_buf(session, &request);
  }
}

// SIGTERM and SIGINT unmount, which ends every ServeLoop.
void UnmountOnSignal(const std::string& mountpoint) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread([signals, mountpoint] {
    int number = 0;
    while (sigwait(&signals, &number) == 0) umount2(mountpoint.c_str(), MNT_DETACH);
  }).detach();
}

int Fail(const std::string& text) {
  fprintf(stderr, "weir-passthrough: %s\n", text.c_str());
  return 1;
}

// Every file that the kernel remembers costs a descriptor: take all we may have.
void AllowManyFiles() {
  rlimit files{1 << 20, 1 << 20};
  if (setrlimit(RLIMIT_NOFILE, &files) == 0) return;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

int Run(const char* directory, const char* mountpoint, int thread_count) {
  const int root = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return Fail(std::string("cannot open '") + directory + "': " + strerror(errno));
  InodeTable table(root);
  umask(0);  // The kernel applied the caller's.
  AllowManyFiles();

  char name[] = "weir-passthrough";
  char option[] = "-ofsname=passthrough,subtype=weir-passthrough,allow_other,default_permissions";
  char* argv[] = {name, option, nullptr};
  fuse_args args = FUSE_ARGS_INIT(2, argv);
  const fuse_lowlevel_ops ops = Operations();
  fuse_session* session = fuse_session_new(&args, &ops, sizeof(ops), &table);
  if (session == nullptr) return Fail("libfuse refused to start a session");
  if (fuse_session_mount(session, mountpoint) != 0) {
    fuse_session_destroy(session);
    return Fail(std::string("cannot mount on '") + mountpoint + "'");
  }
  UnmountOnSignal(mountpoint);
  std::vector<std::thread> threads(static_cast<size_t>(thread_count));
  for (std::thread& thread : threads) thread = std::thread(ServeLoop, session);
  for (std::thread& thread : threads) thread.join();
  fuse_session_destroy(session);
  return 0;
}

constexpr char kHelp[] =
    "usage: weir-passthrough DIR MNT [THREADS]\n"
    "Shows DIR at MNT through FUSE, as a limit for benchmarks. Stays in the foreground until MNT\n"
    "is unmounted or it gets SIGTERM. Each thread (default 4) serves one request at a time.\n"
    "example: weir-passthrough /mnt/ext4 /mnt/through 16\n";

}  // namespace
}  // namespace weir::passthrough

int main(int argc, char** argv) {
  using weir::passthrough::kHelp;
  if (argc == 2 && strcmp(argv[1], "--help") == 0) {
    fputs(kHelp, stdout);
    return 0;
  }
  const int threads = argc == 4 ? atoi(argv[3]) : weir::passthrough::kDefaultThreads;
  if (argc < 3 || argc > 4 || threads < 1 || threads > 256) {
    fputs(kHelp, stderr);
    return 2;
  }
  return weir::passthrough::Run(argv[1], argv[2], threads);
}
