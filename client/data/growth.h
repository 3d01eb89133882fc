// Growth: writes beyond the end of files whose class has a capacity wait here until the MDS says
// how far the file may grow. It says more than was asked for, so that few writes wait; those of one
// file ask one after the other.
//
// What the MDS allowed is kept with the inode (Inode::Allow). Threads: any; `ready` runs on an RPC
// thread, or on that of DropAbandoned. Errors: kQuota, or what the MDS or its connection has.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <unordered_map>

#include "client/remote/object_sender.h"
#include "client/vfs/inode_table.h"
#include "common/base/ids.h"
#include "common/base/result.h"

namespace weir::client {

class Growth {
 public:
  struct Question {
    InodeId inode;
    ClassId class_id;
    uint64_t end = 0;
  };
  using Answer = std::function<void(Result<uint64_t>)>;
  using Ask = std::function<void(const Question&, Answer)>;
  using Ready = std::function<void(const Status&)>;

  explicit Growth(Ask ask) : ask_(std::move(ask)) {}

  // `ready` when the file may reach `end`, or with the reason why not.
  void Await(const InodePtr& inode, ClassId class_id, uint64_t end, Ready ready,
             Abandoned abandoned = nullptr);
  // Ends with kCancelled what nobody waits for any more.
  void DropAbandoned();

 private:
  struct Waiter {
    ClassId class_id;
    uint64_t end;
    Ready ready;
    Abandoned abandoned;
  };
  struct File {
    InodePtr inode;
    std::deque<Waiter> waiting;  // the first has been asked for
  };
  void AskFor(const Question& question);
  void Answered(const Question& question, const Result<uint64_t>& end);

  const Ask ask_;
  std::mutex mutex_;
  std::unordered_map<InodeId, File> files_;
};

}  // namespace weir::client
