#include "osd/io/background_gate.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "osd/io/dispatcher.h"

namespace weir::osd {
namespace {

// What Begin returns when there is nothing for the Dispatcher to be told in the end.
char outside_ticket = 0;

}  // namespace

class BackgroundGate::Op final : public ObjectOp {
 public:
  explicit Op(BackgroundGate* gate) : gate_(gate) {}
  void MayGo() override {
    const std::lock_guard lock(gate_->mutex_);
    released_ = true;
    gate_->changed_.notify_all();
  }
  void Done(ObjectOpResult) override {}
  [[nodiscard]] bool released() const { return released_; }

 private:
  BackgroundGate* const gate_;
  bool released_ = false;  // guarded by the gate's mutex
};

BackgroundGate::BackgroundGate(Dispatcher& dispatcher, Clock& clock, ClassId class_id,
                               uint64_t floor)
    : dispatcher_(dispatcher), clock_(clock), class_id_(class_id), floor_(floor) {}

BackgroundGate::~BackgroundGate() {
  Close();
}

bool BackgroundGate::WaitForTurn(Lock& lock, const Op& op, const Io& io, TimePoint floor_at) {
  const std::chrono::steady_clock::time_point until{Duration(floor_at.ns)};
  changed_.wait_until(lock, until, [&] { return op.released() || MustGo(io); });
  return op.released();
}

void* BackgroundGate::Begin(const Io& io) {
  // The Dispatcher may start other people's operations on this thread.
  const BackgroundThread foreground(false);
  Lock lock(mutex_);
  if (closed_) return nullptr;
  ++asking_;
  const TimePoint now = clock_.Now();
  const Duration alone = FromSeconds(static_cast<double>(io.bytes) /
                                     static_cast<double>(std::max<uint64_t>(floor_, 1)));
  const TimePoint floor_at = std::max(now, floor_paid_) + alone;
  floor_paid_ = floor_at;

  auto owned = std::make_unique<Op>(this);
  Op* op = owned.get();
  op->kind = io.write ? ObjectOpKind::kBackgroundWrite : ObjectOpKind::kBackgroundRead;
  op->class_id = class_id_;
  op->length = io.bytes;
  op->offset = io.offset;
  lock.unlock();
  dispatcher_.Submit(std::move(owned));  // may call MayGo
  lock.lock();
  bool withdrawn = false;
  if (!WaitForTurn(lock, *op, io, floor_at)) {
    lock.unlock();
    withdrawn = dispatcher_.ServeOutside(op);
    lock.lock();
    // Not withdrawn: on its way out of the scheduler at this moment.
    changed_.wait(lock, [&] { return withdrawn || op->released(); });
  }
  // Served before the floor would have, in its turn or because it was urgent: the floor has that
  // much less to make up for, or the next would wait for what is long served.
  floor_paid_ = std::max(now, floor_paid_ - std::max(Duration(0), floor_at - clock_.Now()));
  return withdrawn ? static_cast<void*>(&outside_ticket) : op;
}

void BackgroundGate::End(void* ticket) {
  if (ticket == nullptr) return;
  const BackgroundThread foreground(false);
  if (ticket != &outside_ticket) dispatcher_.Ended(static_cast<Op*>(ticket));
  const std::lock_guard lock(mutex_);
  if (--asking_ == 0) changed_.notify_all();
}

void BackgroundGate::SetUrgent(bool urgent) {
  const std::lock_guard lock(mutex_);
  urgent_ = urgent;
  changed_.notify_all();
}

void BackgroundGate::SetFloor(uint64_t bytes_per_s) {
  const std::lock_guard lock(mutex_);
  floor_ = bytes_per_s;
}

uint64_t BackgroundGate::floor() {
  const std::lock_guard lock(mutex_);
  return floor_;
}

void BackgroundGate::Close() {
  Lock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return asking_ == 0; });
}

}  // namespace weir::osd
