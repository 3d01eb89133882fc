// KernelCache: makes the kernel write back and forget pages of files, on a thread of its own: while
// it does, it asks this mount to write, which the threads that serve it must be free for.
//
// That thread, made with the first order, tells the kernel and runs nothing else; what follows runs
// on a loop. Where the disks are in this process, a write of somebody else may be submitted to
// io_uring by whichever thread comes along, and io_uring ends it on the thread that submitted it:
// never, if that one waits in the kernel for pages to be written, and the write is theirs.
//
// Threads: any; `then` runs on the reactor of Start. Lifetime: Stop before the session ends, while
//          the reactor runs.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "client/fuse/fuse_api.h"
#include "common/reactor/reactor.h"

namespace weir::client {

class KernelCache {
 public:
  KernelCache() = default;
  ~KernelCache() { Stop(); }
  KernelCache(const KernelCache&) = delete;
  KernelCache& operator=(const KernelCache&) = delete;

  void Start(fuse_session* session, Reactor& follower);
  // Runs what was asked for first, without the kernel if that is gone.
  void Stop();
  // All pages of the file; those that were changed have been written when `then` runs.
  void Drop(fuse_ino_t number, std::function<void()> then);

  // The first and the last page: reads there ask this mount, once. Requires: nobody has the file
  // open for writing, or a write of his may be waited for.
  void DropEnds(fuse_ino_t number, uint64_t size, std::function<void()> then);
  // The attributes alone, soon: waits for nobody but for orders that were given before.
  void AskAttributesAgain(fuse_ino_t number);
  // `then` when the kernel has been told of all that was asked for before; at once, if it has.
  void WhenTold(std::function<void()> then);

  // The kernel asks for those names again. Waits until operations of this mount in the directory
  // are over, so not for a thread that submits to a disk.
  void AskAgain(fuse_ino_t directory, const std::vector<std::string>& names);
  // The same, soon.
  void AskAgainSoon(fuse_ino_t directory, const std::string& name);
  // It forgets the name soon, and with it the place that a directory has there.
  void ForgetPlaceSoon(fuse_ino_t directory, const std::string& name);
  // Every name at once, without waiting; what is mounted on a directory may come off, and files
  // that are open look as if they had been removed.
  void AskAllAgain();

 private:
  struct Order {
    fuse_ino_t number;
    std::function<void()> then;
    std::vector<std::string> names;  // to be asked for again; none: pages
    uint64_t ends_of = 0;            // only the ends of a file of that size; 0: all
    bool forgets = false;            // the names
    bool attributes = false;         // instead of pages; of number 0: nothing
  };
  void Give(Order order);
  void NeedTellerLocked();
  void Obey(const Order& order);
  void Tell();

  fuse_session* session_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Order> orders_;
  bool telling_ = false;  // what was taken off them
  bool started_ = false;
  bool stopping_ = false;
  Reactor* follower_ = nullptr;
  std::thread teller_;  // made under mutex_
};

}  // namespace weir::client
