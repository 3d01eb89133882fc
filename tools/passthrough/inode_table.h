// InodeTable gives every file of the passed-through tree the number that the kernel knows it by.
//
// An Inode holds an O_PATH descriptor of its file, so the number stays good across renames and the
// file's own inode number cannot be reused below us while the kernel still knows it. It lives until
// the kernel has forgotten as many lookups as it was answered (fuse_lowlevel.h, "forget").
//
// Threads: all calls are safe from any thread. An Inode's fields never change, except `lookups`,
//          which belongs to the table; an Inode* is good as long as the kernel may name it, thus
//          for the whole of every request that does.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace weir::passthrough {

struct Inode {
  explicit Inode(int path_fd) : fd(path_fd) {}
  ~Inode();
  Inode(const Inode&) = delete;
  Inode& operator=(const Inode&) = delete;

  const int fd;  // O_PATH; owned.
  uint64_t lookups = 0;
};

class InodeTable {
 public:
  // `root_fd` is an O_PATH descriptor of the directory shown as the root; owned from now on.
  explicit InodeTable(int root_fd) : root_(root_fd) {}

  // The inode behind a number that the kernel sent.
  Inode* Get(uint64_t number);

  // Counts one lookup of the file that `path_fd` (O_PATH, owned from now on) and `stat` describe.
  // Returns its number, the same for every lookup of the same file.
  uint64_t Lookup(int path_fd, const struct stat& stat);

  // Takes `count` lookups back; the inode goes with the last one.
  void Forget(uint64_t number, uint64_t count);

 private:
  using Key = std::pair<dev_t, ino_t>;

  Inode root_;
  std::mutex mutex_;
  std::map<Key, std::unique_ptr<Inode>> inodes_;
  std::map<uint64_t, Key> keys_;  // Number to key, for Forget.
};

}  // namespace weir::passthrough
