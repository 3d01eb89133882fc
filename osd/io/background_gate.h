// BackgroundGate: background I/O of the store as a class of the pipeline (system.compaction).
//
// A background thread asks Begin, which has the Dispatcher's loop queue a request of the class and
// waits until the scheduler lets it onto the device; the thread itself does the I/O and says End.
// Three ways out of the queue let the I/O go at once, counted as outside and not drained from the
// root (RULES.md §3.1: floors of system.* are booked beside G0):
//
//   floor   the class has got less than `floor` bytes per second since it asked
//   urgent  the foreground waits for the background, or soon will (SetUrgent, Io::urgent)
//   closed  the OSD stops
//
// Why there is no deadlock: a foreground write may hold a slot of the device's depth while RocksDB
// makes it wait for a flush. Were that flush to wait for a slot or for tokens, both would wait for
// ever. Begin returns after bytes / floor at the latest, however full the device and whatever the
// scheduler says, and holds no lock that the foreground takes.
//
// Units:   bytes, bytes per second. Threads: any; Begin and Close block, and are not called on the
//          loop while somebody asks. Close before the Dispatcher ends.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "common/base/ids.h"
#include "common/base/time.h"
#include "common/disk/io_meter.h"

namespace weir::osd {

class Dispatcher;

class BackgroundGate final : public IoMeter {
 public:
  // The clock is that of the condition variables, SystemClock, except in tests that never wait for
  // the floor.
  BackgroundGate(Dispatcher& dispatcher, Clock& clock, ClassId class_id, uint64_t floor);
  ~BackgroundGate() override;

  void* Begin(const Io& io) override;
  void End(void* ticket) override;
  void SetUrgent(bool urgent) override;

  void SetFloor(uint64_t bytes_per_s);
  [[nodiscard]] uint64_t floor();
  // Lets everything go, waits for what is under way, and knows no Dispatcher any more.
  void Close();

 private:
  struct Ticket;
  class Op;
  using Lock = std::unique_lock<std::mutex>;
  bool MustGo(const Io& io) const { return urgent_ || closed_ || io.urgent; }
  // Until the scheduler has let it go (true) or it must go.
  bool WaitForTurn(Lock& lock, const Ticket& ticket, const Io& io, TimePoint floor_at);
  // Takes it out of the queue. False: it was released meanwhile.
  bool Withdraw(Lock& lock, Ticket& ticket);

  Dispatcher& dispatcher_;
  Clock& clock_;
  const ClassId class_id_;

  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t floor_;
  TimePoint floor_paid_;  // by when the floor alone would have served all that has begun
  uint64_t asking_ = 0;   // between Begin and End
  bool urgent_ = false;
  bool closed_ = false;
};

}  // namespace weir::osd
