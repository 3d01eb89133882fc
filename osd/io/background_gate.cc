#include "osd/io/background_gate.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "osd/io/dispatcher.h"

namespace weir::osd {

// One piece of I/O between Begin and End; guarded by the gate's mutex.
struct BackgroundGate::Ticket {
  ObjectOp* op = nullptr;  // the Dispatcher's; null: it has left the queue, outside
  bool released = false;
};

class BackgroundGate::Op final : public ObjectOp {
 public:
  Op(BackgroundGate* gate, Ticket* ticket) : gate_(gate), ticket_(ticket) {}
  void MayGo() override {
    const std::lock_guard lock(gate_->mutex_);
    ticket_->released = true;
    gate_->changed_.notify_all();
  }
  void Done(ObjectOpResult) override {}

 private:
  BackgroundGate* const gate_;
  Ticket* const ticket_;
};

BackgroundGate::BackgroundGate(Dispatcher& dispatcher, Clock& clock, ClassId class_id,
                               uint64_t floor)
    : dispatcher_(dispatcher), clock_(clock), class_id_(class_id), floor_(floor) {}

BackgroundGate::~BackgroundGate() {
  Close();
}

bool BackgroundGate::WaitForTurn(Lock& lock, const Ticket& ticket, const Io& io,
                                 TimePoint floor_at) {
  const std::chrono::steady_clock::time_point until{Duration(floor_at.ns)};
  changed_.wait_until(lock, until, [&] { return ticket.released || MustGo(io); });
  return ticket.released;
}

bool BackgroundGate::Withdraw(Lock& lock, Ticket& ticket) {
  bool asked = false;
  lock.unlock();
  dispatcher_.loop().Post([&, op = ticket.op] {
    const bool withdrawn = dispatcher_.ServeOutside(op);
    const std::lock_guard answer(mutex_);
    if (withdrawn) ticket.op = nullptr;
    asked = true;
    changed_.notify_all();
  });
  lock.lock();
  // Not withdrawn: it was released before.
  changed_.wait(lock, [&] { return asked; });
  return ticket.op == nullptr;
}

void* BackgroundGate::Begin(const Io& io) {
  Lock lock(mutex_);
  if (closed_) return nullptr;
  ++asking_;
  const TimePoint now = clock_.Now();
  const Duration alone = FromSeconds(static_cast<double>(io.bytes) /
                                     static_cast<double>(std::max<uint64_t>(floor_, 1)));
  const TimePoint floor_at = std::max(now, floor_paid_) + alone;
  floor_paid_ = floor_at;

  auto* ticket = new Ticket;  // until End
  auto* op = new Op(this, ticket);
  op->kind = io.write ? ObjectOpKind::kBackgroundWrite : ObjectOpKind::kBackgroundRead;
  op->class_id = class_id_;
  op->length = io.bytes;
  op->offset = io.offset;
  ticket->op = op;
  lock.unlock();
  dispatcher_.loop().Post([this, op] { dispatcher_.Submit(std::unique_ptr<ObjectOp>(op)); });
  lock.lock();
  if (!WaitForTurn(lock, *ticket, io, floor_at)) Withdraw(lock, *ticket);
  // Served before the floor would have, in its turn or because it was urgent: the floor has that
  // much less to make up for, or the next would wait for what is long served.
  floor_paid_ = std::max(now, floor_paid_ - std::max(Duration(0), floor_at - clock_.Now()));
  return ticket;
}

void BackgroundGate::End(void* ended) {
  if (ended == nullptr) return;
  const std::unique_ptr<Ticket> ticket(static_cast<Ticket*>(ended));
  const auto leave = [this] {
    const std::lock_guard lock(mutex_);
    if (--asking_ == 0) changed_.notify_all();
  };
  if (ticket->op == nullptr) return leave();
  dispatcher_.loop().Post([this, leave, op = ticket->op] {
    dispatcher_.Ended(op);
    leave();
  });
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
