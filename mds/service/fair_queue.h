// FairQueue: lets operations on names begin in the order of ClassOrder, so that one class or user
// with a thousand of them waiting delays its neighbours by less than a millisecond, and not by its
// whole queue.
//
// What comes in one turn of a loop (`post_here`) is put into order before it begins: all but the
// first, which finds nobody before it. Then those that cost kCostInTurn begin, and the loop looks
// again for who has come. So those that are answered from memory are in order too, which
// end as they begin and would otherwise run as they are read off the connections.
//
// Up to `depth` operations are between their beginning and their durable end; beyond that only
// those of users with little begun begin, up to twice as many: whoever asks for little does not
// wait for the commit of others' floods. An operation that has to wait for something else than the
// disk of the MDS gives its turn back meanwhile.
//
// Threads: any. Work runs on the thread that submits it or other work, on one that gives a turn
//          back, or on that of Run; by one thread at a time, with no lock held. A thread that gives
//          a turn back runs kCostForOthers at most, then hands over: a flood of looks must not keep
//          the commit thread from committing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "common/base/ids.h"
#include "common/base/time.h"
#include "mds/service/class_order.h"

namespace weir::mds {

class FairQueue {
 public:
  // Given back by its destruction, which must not happen under a lock that work takes.
  using Turn = std::shared_ptr<void>;
  using Work = std::function<void(Turn)>;
  using Task = std::function<void()>;

  static constexpr size_t kCostForOthers = 128;
  static constexpr size_t kCostInTurn = 4;

  struct Options {
    size_t depth = 128;
    // Runs its argument soon, on a thread that has the time. Null: whoever gives a turn back runs
    // all that may begin.
    std::function<void(Task)> hand_over = nullptr;
    // As MdsOptions has it.
    std::function<bool(Task)> post_here = nullptr;
    // The limit of a class lets something begin sooner than NextAt said before: Run then. Called
    // with a lock.
    std::function<void()> on_sooner = nullptr;
  };

  // The clock outlives it.
  FairQueue(Clock& clock, Options options);
  ~FairQueue();

  void Submit(const ClassOrder::Request& request, Work work);
  // Begins what limits held back and may begin now.
  void Run();
  // For whoever calls Run: when the limit of a class lets its next one go.
  [[nodiscard]] TimePoint NextAt();
  // Terms have changed, maybe.
  void Renew(const std::function<ClassOrder::Terms(ClassId)>& terms_of);
  // What a session asked for that waits is dropped, but for its reports.
  void DropSession(uint64_t session);
  // What waits is dropped; nothing begins any more.
  void Stop();
  [[nodiscard]] std::vector<ClassOrder::Load> Loads() const;
  // The `most` users and openers of each class who ask for the most, of classes of whom something
  // began lately or waits. Under the lock only what ClassOrder::FlowsOf says is copied, of one
  // class at a time.
  struct FlowsOfClass {
    ClassId class_id;
    FlowMeter::Report report;
  };
  [[nodiscard]] std::vector<FlowsOfClass> Flows(size_t most);

 private:
  struct Operation : ClassOrder::Item {
    Work work;
    uint64_t came_in = 0;  // drains_ then
  };
  // What a posted task finds, should the queue be gone by then.
  struct Life {
    std::mutex mutex;
    FairQueue* queue = nullptr;  // null: gone
  };
  using Lock = std::unique_lock<std::mutex>;

  void GiveBack(Operation* operation);
  // False: it begins now or never.
  bool BeginLater();
  void BeginSome();
  [[nodiscard]] Operation* Next();
  void Begin(Operation* operation, Lock* lock);
  // By one thread at a time and never from within itself: work that ends at once gives its turn
  // back right here.
  // Ends when what has begun costs `most`.
  void Drain(Lock* lock, size_t most);
  void DrainOrHandOver(Lock* lock);
  void TellSooner();

  Clock& clock_;
  const Options options_;
  const std::shared_ptr<Life> life_ = std::make_shared<Life>();
  mutable std::mutex mutex_;
  ClassOrder order_;
  size_t begun_ = 0;  // and not ended
  uint64_t drains_ = 0;
  TimePoint told_at_ = TimePoint::Max();  // NextAt, as somebody knows it
  bool draining_ = false;
  bool posted_ = false;       // BeginSome will run
  bool handed_over_ = false;  // another thread will drain
  bool stopped_ = false;
};

}  // namespace weir::mds
