// LeaseKeeper: gives leases on files back when the MDS asks for them.
//
// A lease for reading goes at once: from then on the MDS is asked for attributes, and the kernel
// drops its pages when they have moved. What processes have mapped is dropped right after. A lease
// for writing goes when the kernel has sent what was stored through mappings, all of it is on the
// OSDs, and the MDS knows size and times.
//
// The kernel is told by a thread of its own: it answers only when no request holds the pages, some
// of which may wait for replies that other threads must give.
// Threads: any. Until Stop has returned.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <vector>

#include "client/vfs/file_leases.h"
#include "client/vfs/inode_table.h"

namespace weir::client {

class LeaseKeeper {
 public:
  struct Hooks {
    // The kernel forgets attributes and pages; dirty ones are written first. Empty: there is no
    // kernel, and no thread.
    std::function<void(InodeId)> forget_pages;
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
  void Stop();

 private:
  struct Task {
    InodePtr inode;
    bool flush = false;
    bool yields = false;
    uint64_t epoch = 0;
    uint64_t seq = 0;
  };
  void Run();
  void GiveBack(const Task& task);
  void Add(Task task);

  FileLeases& leases_;
  InodeTable& inodes_;
  const Hooks hooks_;
  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<Task> tasks_;
  std::unordered_set<InodeId> giving_back_;
  std::unordered_set<InodeId> forgets_;  // among the tasks, without a flush
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace weir::client
