// KernelCache: makes the kernel write back and forget pages of files, on a thread of its own: while
// it does, it asks this mount to write, which the threads that serve it must be free for.
//
// Threads: any; `then` runs on the thread of this object. Lifetime: Stop before the session ends.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "client/fuse/fuse_api.h"

namespace weir::client {

class KernelCache {
 public:
  KernelCache() = default;
  ~KernelCache() { Stop(); }
  KernelCache(const KernelCache&) = delete;
  KernelCache& operator=(const KernelCache&) = delete;

  void Start(fuse_session* session);
  // Runs what was asked for, without the kernel if that is gone.
  void Stop();
  // All pages of the file; those that were changed have been written when `then` runs.
  void Drop(fuse_ino_t number, std::function<void()> then);

  // The kernel asks for those names again. Waits until operations of this mount in the directory
  // are over.
  void AskAgain(fuse_ino_t directory, const std::vector<std::string>& names);
  // The same, soon.
  void AskAgainSoon(fuse_ino_t directory, const std::string& name);
  // Every name at once, without waiting; what is mounted on a directory may come off, and files
  // that are open look as if they had been removed.
  void AskAllAgain();

 private:
  struct Order {
    fuse_ino_t number;
    std::function<void()> then;
    std::vector<std::string> names;  // to be asked for again; none: pages
  };
  void Loop();

  fuse_session* session_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Order> orders_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace weir::client
