// LeaseKeeper: gives leases on files back when the MDS asks for them, and has the kernel forget.
//
// From a recall on the MDS is asked for attributes. The kernel then writes what is dirty in its
// pages and drops them, so that mappings follow; and before the lease goes, for a kernel that
// drops pages also drops attributes it has just asked for, and whoever looks after the other
// mount's change was answered would miss it (fuse_reverse_inval_inode moves attr_version on). A
// lease for writing goes when besides all of it is on the OSDs and the MDS knows size and times.
//
// The kernel may hold a page until a write of this mount is answered, which waits for other mounts
// to forget, one of which may hold that page until its own write is answered. So while the kernel
// writes to a file here, a recall is obeyed as soon as the kernel waits for a page: it has dropped
// the attributes by then. When another recall comes before that wait ends, the kernel drops the
// attributes alone, and the recall is obeyed: whoever looks afterwards asks for them, and a new
// mtime has the kernel drop its pages. It is not told to drop pages once more when the wait ends:
// the writers may have ended too, and somebody be asking for the size. Pages that came to the
// kernel during the wait may be old and mapped: they are dropped a second later unless a look has
// done so. A reader beside such a writer may miss a change of another mount, as every write of its
// own has the kernel drop attributes, too.
//
// The kernel is asked by threads of their own, several, as one file's pages may take long: each is
// made when all others have something to do, and stays. Of a directory it forgets names besides,
// for which it may wait until operations there are over; those wait for other mounts, but never
// for leases on files here, which other threads give back.
// Threads: any. Until Stop has returned.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "client/vfs/file_leases.h"
#include "client/vfs/inode_table.h"
#include "common/base/time.h"

namespace weir::client {

class LeaseKeeper {
 public:
  struct Hooks {
    // The kernel forgets attributes and pages; dirty ones are written first. Empty: there is no
    // kernel, and no thread.
    std::function<void(InodeId)> forget_pages;
    // The kernel forgets attributes; waits for nobody. Needed with forget_pages.
    std::function<void(InodeId)> forget_attributes;
    // Whether that thread, which runs forget_pages, waits in the kernel. Empty: it does.
    std::function<bool(pid_t)> waits_for_page;
    // As forget_pages without a thread, at once; instead of that.
    std::function<void(InodeId)> forget_here;
    // Everything written is stored and reported.
    std::function<void(const InodePtr&, std::function<void()> done)> flush;
    // YIELD; `done` when it is answered, however.
    std::function<void(uint64_t epoch, uint64_t seq, const std::vector<InodeId>&,
                       std::function<void()> done)>
        yield;
  };
  LeaseKeeper(FileLeases& leases, InodeTable& inodes, Hooks hooks);
  ~LeaseKeeper();

  // A WATCH told that these are wanted back, by recalls up to `seq`. Known ones come again.
  void Recalled(uint64_t seq, const std::vector<InodeId>& recalled);
  // The session began anew, without leases: flushes what was written under one, and forgets what
  // was remembered of those that are open.
  void Lost(const std::vector<InodeId>& written, const std::vector<InodeId>& open);
  // The kernel writes to the file until that is destroyed, which may be after the keeper.
  std::shared_ptr<void> BeginKernelWrite(InodeId inode);
  // Several times a second.
  void Tick(TimePoint now);
  void Stop();

 private:
  class KernelWrites;
  // Of one file, until the MDS has answered the last YIELD for it.
  struct Work {
    InodePtr inode;
    uint64_t epoch = 0;
    uint64_t seq = 0;    // of the last recall; 0: nobody waits
    bool flush = false;  // something was written under a lease
    bool waits = true;   // in the queue, or is about to be
    bool forgetting = false;
    pid_t forgetter = 0;     // the thread
    uint64_t as_of = 0;      // of `seq`, when that began
    uint64_t fills = 0;      // of the kernel's pages, likewise
    bool overtaken = false;  // a later recall is obeyed before that ends
    bool hastening = false;  // attributes are being dropped for that
    bool flushing = false;
    uint64_t yielded = 0;
    uint32_t unanswered = 0;  // YIELDs
  };
  using Works = std::unordered_map<InodeId, Work>;
  // Pages that came while the kernel dropped pages, and may be old.
  struct Leftover {
    InodePtr inode;
    int64_t told = 0;  // of the inode
    TimePoint due;     // set by the first Tick
  };

  void Demand(const InodePtr& inode, bool flush, uint64_t epoch, uint64_t seq);
  void Start(InodeId inode, std::unique_lock<std::mutex>* lock);
  // These may release the lock.
  void GiveBack(Work* work, uint64_t seq, std::unique_lock<std::mutex>* lock);
  void Yield(InodeId inode, uint64_t seq, std::unique_lock<std::mutex>* lock);
  void YieldEarly(InodeId inode, std::unique_lock<std::mutex>* lock);
  void AwaitPageWait(InodeId inode, std::unique_lock<std::mutex>* lock);
  // What is to be done once more is, what is over is forgotten.
  void Settle(Works::iterator work, std::unique_lock<std::mutex>* lock);
  struct Queue {
    explicit Queue(size_t most_threads) : most(most_threads) {}
    const size_t most;
    std::deque<InodeId> inodes;
    std::condition_variable grew;
    size_t threads = 0;
    size_t idle = 0;  // of these
  };
  void Forget(Queue* queue);
  void Hasten(InodeId inode);
  void HastenYields();

  FileLeases& leases_;
  InodeTable& inodes_;
  const Hooks hooks_;
  const std::shared_ptr<KernelWrites> kernel_writes_;
  std::mutex mutex_;
  std::condition_variable hastened_;
  Works works_;
  Queue files_;
  Queue directories_;
  std::deque<InodeId> hasty_;  // the kernel writes to them, and is being asked to forget
  bool hastens_ = false;       // there is a thread for these
  std::vector<Leftover> leftovers_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace weir::client
