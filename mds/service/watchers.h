// Watchers: WATCH calls that are held back until the map or the tags are newer than the caller's,
// leases are wanted back, or their time is over; and administration calls that wait until every OSD
// obeys. Threads: any.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>

#include "common/base/ids.h"
#include "common/base/time.h"
#include "common/net/rpc.h"

namespace weir::mds {

class ClusterKeeper;
class DirLeases;
class FileLeases;

class Watchers {
 public:
  struct Sources {
    ClusterKeeper& keeper;
    DirLeases& leases;
    FileLeases& file_leases;
    std::function<uint64_t()> tag_epoch;
    std::function<uint64_t(uint64_t session)> lock_asked;  // of LockService
    std::function<uint64_t()> durable_order;               // of NamespaceDb
    uint64_t life;
    Clock& clock;
  };
  explicit Watchers(Sources sources) : sources_(std::move(sources)) {}

  struct Known {  // by the caller
    uint64_t epoch = 0;
    uint64_t tag_epoch = 0;
    uint64_t lease_seq = 0;
    uint64_t file_lease_seq = 0;
    uint64_t lock_seq = 0;
  };
  void Watch(std::shared_ptr<net::IncomingCall> call, const Known& known, Duration wait);
  // Answers what is due: after a change, and from time to time.
  void Flush();
  // And those that have had most of their time: they come again together, and end together.
  void FlushEarly();
  // Runs `answer` once every OSD that is up has `epoch`, or after `patience` with a warning in the
  // log.
  void WhenObeyed(Epoch epoch, Duration patience, std::function<void()> answer);
  void FlushObeyed();
  [[nodiscard]] bool AnyObeying() const;
  // When the first watch is answered although there is nothing new.
  [[nodiscard]] TimePoint FirstEnd() const;

 private:
  struct Held {
    std::shared_ptr<net::IncomingCall> call;
    Known known;
    TimePoint until;
    TimePoint nearly;  // most of its time is over
  };
  struct Obeying {
    Epoch epoch;
    TimePoint until;
    std::function<void()> answer;
  };
  void Answer(const Held& held) const;
  [[nodiscard]] bool Due(const Held& held) const;
  void FlushIf(const std::function<bool(const Held&)>& is_due);

  const Sources sources_;
  mutable std::mutex mutex_;
  std::list<Held> held_;
  std::list<Obeying> obeying_;
};

}  // namespace weir::mds
