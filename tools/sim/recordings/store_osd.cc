#include "tools/sim/recordings/store_osd.h"

#include <algorithm>
#include <utility>

#include "common/qos/lane.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;
using model::DiskIo;
using osd::qos::OpKind;

constexpr Duration kCancelsAfter = 5ms;

}  // namespace

StoreOsd::StoreOsd(const SchedulerConfig& config, const MakeDisk& disk,
                   osd::qos::DecisionRecorder* recorder)
    : disk_(disk(&events_)), scheduler_(config, events_.now(), recorder) {
  governor_.Choose(config.processor_pressure / 100.0);
  ArmWake(scheduler_.NextTick());
}

void StoreOsd::At(Duration when, std::function<void()> action) {
  events_.At(TimePoint{0} + when, std::move(action));
}

void StoreOsd::Start(const Client& client) {
  Loop* loop = &loops_.emplace_back(Loop{client, client.start});
  for (int i = 0; i < client.threads; ++i) Send(loop);
  Pump();
}

void StoreOsd::ArmWake(TimePoint when) {
  if (when >= wakes_at_) return;
  wakes_at_ = when;
  events_.At(when, [this, when] {
    if (wakes_at_ == when) Wake();
  });
}

void StoreOsd::Wake() {
  const TimePoint now = events_.now();
  wakes_at_ = TimePoint::Max();
  waited_ += FromSeconds(ToSeconds(now - std::exchange(looked_at_, now)) * pressure_);
  if (now >= governor_.LookAt()) governor_.Look(waited_, scheduler_.State(now).bulk_taken, now);
  if (now >= scheduler_.NextTick()) scheduler_.Tick(now);
  Pump();
}

void StoreOsd::Send(Loop* loop) {
  const Client& client = loop->client;
  Op* op = free_.empty() ? &ops_.emplace_back() : free_.back();
  if (!free_.empty()) free_.pop_back();
  op->loop = loop;
  op->request = {};
  op->request.class_id = client.class_id;
  op->request.op = client.op;
  op->request.bytes = client.bytes;
  op->request.context = op;
  if (!client.sequential) {
    loop->next = client.start + prng_.Uniform(0, client.span / client.bytes - 1) * client.bytes;
  } else if (loop->next + client.bytes > client.start + client.span) {
    loop->next = client.start;
  }
  op->request.lba = std::exchange(loop->next, loop->next + client.bytes);
  scheduler_.Enqueue(&op->request, events_.now());
  if (!prng_.Chance(client.cancels)) return;
  const uint64_t sequence = op->request.sequence;
  events_.After(kCancelsAfter, [this, op, sequence] { CancelIfQueued(op, sequence); });
}

// Unless the op has been used for another request since.
void StoreOsd::CancelIfQueued(Op* op, uint64_t sequence) {
  if (op->request.sequence != sequence || op->request.stage == osd::qos::Request::Stage::kOutside) {
    return;
  }
  if (!scheduler_.Cancel(&op->request, events_.now())) return;
  Free(op);
  Pump();
}

void StoreOsd::Free(Op* op) {
  Loop* loop = op->loop;
  free_.push_back(op);
  if (loop->client.think == 0ms) return Send(loop);
  events_.After(loop->client.think, [this, loop] {
    Send(loop);
    Pump();
  });
}

void StoreOsd::Govern() {
  const TimePoint now = events_.now();
  governor_.Guarded(scheduler_.guarded_until(), now);
  const uint64_t cap = governor_.rate();
  if (std::exchange(bulk_cap_, cap) != cap) scheduler_.SetBulkCap(cap, now);
}

void StoreOsd::Pump() {
  Govern();
  for (;;) {
    const osd::qos::PullResult pulled = scheduler_.Pull(events_.now());
    if (pulled.request != nullptr) {
      Submit(static_cast<Op*>(pulled.request->context));
      continue;
    }
    const TimePoint timer = std::min(scheduler_.NextTick(), governor_.LookAt());
    ArmWake(std::min(pulled.wake_at.value_or(TimePoint::Max()), timer));
    return;
  }
}

void StoreOsd::Submit(Op* op) {
  const bool writes = op->request.op == OpKind::kWrite;
  disk_->Submit(
      {writes ? DiskIo::Kind::kWrite : DiskIo::Kind::kRead, op->request.lba, op->request.bytes},
      [this, op, writes](Duration) { writes ? Land(op) : Done(op); });
}

void StoreOsd::Land(Op* op) {
  const TimePoint now = events_.now();
  Duration patience{0};
  if (LaneOf(op->request.bytes) == Lane::kBulk && scheduler_.Advise(now).landing_frees) {
    patience = scheduler_.Landed(&op->request, now).value_or(patience);
  }
  landed_.push_back({op, now + patience});
  events_.At(now + patience, [this] { Commit(); });
  Pump();
}

void StoreOsd::Commit() {
  const auto due = [this](const LandedOp& one) { return one.commit_by <= events_.now(); };
  if (committing_ || !std::any_of(landed_.begin(), landed_.end(), due)) return;
  committing_ = true;
  const auto group = std::make_shared<std::vector<LandedOp>>(std::exchange(landed_, {}));
  disk_->Submit({DiskIo::Kind::kFlush}, [this, group](Duration) {
    constexpr uint64_t kRecord = 8192;
    journal_ += kRecord;
    disk_->Submit({DiskIo::Kind::kWrite, journal_, kRecord}, [this, group](Duration) {
      disk_->Submit({DiskIo::Kind::kFlush}, [this, group](Duration) {
        committing_ = false;
        for (const LandedOp& one : *group) Done(one.op);
        Commit();
      });
    });
  });
}

void StoreOsd::Done(Op* op) {
  scheduler_.Completed(&op->request, events_.now());
  Free(op);
  Pump();
}

}  // namespace weir::sim
