// FairQueue: lets metadata operations begin in an order that is fair to their classes, so that one
// with a thousand of them waiting delays its neighbours by a few milliseconds and not by its whole
// queue.
//
// Up to `depth` operations are between their beginning and their durable end; beyond that they wait
// in a queue per class, and the one with the smallest start tag is next: start-time fair queueing
// with the weights of the classes, each operation at cost 1 (DSFQ without other servers). Below
// `depth` nothing waits and nothing is reordered. An operation that has to wait for something else
// than the disk of the MDS gives its turn back meanwhile.
//
// What answers from memory (looks, stats) ends as it begins: it holds no place, and waits only
// while others do.
//
// Threads: any. Work runs on the thread that submits it or other work, or on one that gives a turn
//          back; with no lock held. A thread runs so many of others at most, then hands over: a
//          flood of looks must not keep the commit thread from committing.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "common/base/ids.h"

namespace weir::mds {

class FairQueue {
 public:
  // Given back by its destruction, which must not happen under a lock that work takes.
  using Turn = std::shared_ptr<void>;
  using Work = std::function<void(Turn)>;

  // Runs its argument soon, on a thread that has the time.
  using Handover = std::function<void(std::function<void()>)>;
  static constexpr size_t kRunsForOthers = 128;

  // Without a handover whoever gives a turn back runs all that may begin.
  explicit FairQueue(size_t depth, Handover hand_over = nullptr)
      : depth_(depth), hand_over_(std::move(hand_over)) {}

  void Submit(ClassId class_id, double weight, Work work);
  // What waits is dropped; nothing begins any more.
  void Stop();

  struct Load {
    ClassId class_id;
    uint64_t operations = 0;  // since the start
    uint64_t queued = 0;
    uint64_t delayed = 0;  // of the operations, those that had to wait
  };
  [[nodiscard]] std::vector<Load> Loads() const;

 private:
  struct Waiting {
    double start;
    Work work;
  };
  struct Class {
    double finish = 0;  // tag of its last operation
    std::deque<Waiting> queue;
    uint64_t operations = 0;
    uint64_t delayed = 0;
  };
  void GiveBack();
  void Drain(std::unique_lock<std::mutex>* lock);
  Turn NewTurn();

  const size_t depth_;
  const Handover hand_over_;
  mutable std::mutex mutex_;
  double now_ = 0;  // virtual time: the start tag of what began last
  std::map<ClassId, Class> classes_;
  std::set<std::pair<double, ClassId>> heads_;  // start tags of the queues' first
  size_t begun_ = 0;                            // and not ended
  bool draining_ = false;
  bool handed_over_ = false;  // somebody will drain
  bool stopped_ = false;
};

}  // namespace weir::mds
