// StoreOsd: a scheduler over a modelled disk below a store that commits in groups (data, flush,
// journal, flush), driven by closed loops: large writes land before they are complete, some
// requests are cancelled while they wait, and processors are waited for.
//
// Threads: one. Ownership: the recorder outlives it.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "common/base/prng.h"
#include "common/disk/model/disk_model.h"
#include "osd/qos/control/bulk_governor.h"
#include "osd/qos/scheduler.h"

namespace weir::sim {

class StoreOsd {
 public:
  using MakeDisk = std::function<std::unique_ptr<model::DiskModel>(model::EventQueue*)>;
  struct Client {
    ClassId class_id;
    osd::qos::OpKind op = osd::qos::OpKind::kRead;
    uint64_t bytes = 4096;
    int threads = 1;
    Duration think{0};
    bool sequential = false;
    uint64_t start = 0, span = 1ull << 30;  // where on the disk
    double cancels = 0;                     // chance that a request is taken back after 5 ms
  };

  StoreOsd(const SchedulerConfig& config, const MakeDisk& disk,
           osd::qos::DecisionRecorder* recorder);
  StoreOsd(const StoreOsd&) = delete;
  StoreOsd& operator=(const StoreOsd&) = delete;

  void Start(const Client& client);
  // Of time, in which somebody waits for a processor.
  void SetPressure(double part) { pressure_ = part; }
  void At(Duration when, std::function<void()> action);
  void RunTo(Duration end) { events_.RunTo(TimePoint{0} + end); }

  osd::qos::Scheduler& scheduler() { return scheduler_; }
  [[nodiscard]] TimePoint now() const { return events_.now(); }
  // After the scheduler was changed from outside.
  void Pump();

 private:
  struct Loop {
    Client client;
    uint64_t next = 0;  // address
  };
  struct Op {
    osd::qos::Request request;  // its context points back here
    Loop* loop = nullptr;
  };
  struct LandedOp {
    Op* op;
    TimePoint commit_by;
  };

  void Send(Loop* loop);
  void Submit(Op* op);
  void CancelIfQueued(Op* op, uint64_t sequence);
  void Land(Op* op);
  void Commit();
  void Done(Op* op);
  void Free(Op* op);
  void Wake();
  void ArmWake(TimePoint when);
  void Govern();

  model::EventQueue events_;
  const std::unique_ptr<model::DiskModel> disk_;
  osd::qos::Scheduler scheduler_;
  osd::qos::BulkGovernor governor_;
  Prng prng_{1};
  std::deque<Loop> loops_;
  std::deque<Op> ops_;
  std::vector<Op*> free_;
  std::vector<LandedOp> landed_;
  bool committing_ = false;
  uint64_t journal_ = 16 << 20;
  double pressure_ = 0;
  TimePoint wakes_at_ = TimePoint::Max();
  TimePoint looked_at_;
  Duration waited_{0};
  uint64_t bulk_cap_ = 0;
};

}  // namespace weir::sim
