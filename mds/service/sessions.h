// Sessions: who is connected, kept alive by anything they ask. In memory; a session unknown after a
// restart is told so by WATCH, and opens itself anew. Threads: any.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"
#include "common/posix/kernel_path.h"
#include "common/wire/map.pb.h"

namespace weir::mds {

class Sessions {
 public:
  Sessions(Clock& clock, Duration lease) : clock_(clock), lease_(lease) {}

  struct Opening {
    std::string client_name;
    std::string mount_class;
    bool exclusive = false;      // caches as if nobody else were there
    Duration ordered_within{0};  // takes answers with wire::Ordered, durable so soon; 0: takes none
    wire::Build build{};
  };
  // kBusy names the session that must be alone, or is in the way of one.
  Status Open(uint64_t session, const Opening& opening);
  // From now on its ordered_within is that.
  void SetOrdered(uint64_t session, Duration ordered_within);
  void Close(uint64_t session);
  // A sign of life. False: not open. `mount_class` and `client` get the session's.
  bool Touch(uint64_t session, std::string* mount_class = nullptr, std::string* client = nullptr);
  // What its mount says of itself.
  void SetPath(uint64_t session, KernelPath path);
  // Of the open ones, in the order of their names.
  struct Mount {
    std::string client;
    KernelPath path = KernelPath::kUnknown;
    uint64_t session = 0;
    wire::Build build{};
  };
  [[nodiscard]] std::vector<Mount> Mounts() const;
  // A session that asks without having opened itself (after our restart) may hold files as well, so
  // that it has a lease too. It stays unknown to WATCH.
  Opening TouchOrAdmit(uint64_t session);
  // Gives a session a lease if it has none.
  void Admit(uint64_t session);
  // Removes and returns those whose lease has run out.
  std::vector<uint64_t> TakeExpired();
  // Since its last sign of life; for ever when it is not known.
  [[nodiscard]] Duration SilentFor(uint64_t session) const;
  [[nodiscard]] bool Knows(uint64_t session) const;
  // Its name for people; "unknown" when it has not opened itself.
  [[nodiscard]] std::string ClientOf(uint64_t session) const;
  // Opened itself, with what it reclaimed.
  [[nodiscard]] bool IsOpen(uint64_t session) const;
  [[nodiscard]] size_t count() const;
  [[nodiscard]] Duration lease() const { return lease_; }

 private:
  struct Session {
    Opening opening;
    TimePoint last_seen;
    bool opened = false;
    KernelPath path = KernelPath::kUnknown;
  };
  Clock& clock_;
  const Duration lease_;
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, Session> sessions_;
};

}  // namespace weir::mds
