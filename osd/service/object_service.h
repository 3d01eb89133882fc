// ObjectService: what the OSD answers. Checks a request, sends it through the Dispatcher, and turns
// the result into a reply; knows nothing of sockets.
//
// Threads: the Dispatcher's loop; nothing blocks but EndBackground and the destructor, which are
// not
//          called there while something is under way.
// Errors:  kWrongCluster; kBadMessage for a body that does not parse, a payload that is not as long
//          as it says or fails its crc32c (the sender sends it anew, under a new request id);
//          kInvalid for a range outside of an object; kBusy beyond twice the window; kStale for a
//          change by an evicted session; kStaleEpoch, with the newer chain in the reply, for a
//          request under an older chain than the map's. What the store answers comes back with the
//          operation and the object in front.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/result.h"
#include "common/base/tier_name.h"
#include "common/base/time.h"
#include "common/qos/profile_pattern.h"
#include "osd/io/dispatcher.h"
#include "osd/service/newer_chains.h"
#include "osd/service/scrubber.h"
#include "osd/service/session_fences.h"
#include "osd/service/session_windows.h"
#include "osd/store/object_store.h"

namespace weir::net {
class IncomingCall;
}
namespace weir::wire {
class ClassStats;
class ObjectRequest;
class OsdStatsReply;
class OsdStatsRequest;
}  // namespace weir::wire

namespace weir::osd {

struct DiskProfile {
  uint64_t proposed_bytes_per_s = 0;
  uint64_t mean_bytes_per_s = 0;
  Duration alone_p99{0};  // of reads of 4 KiB, one after the other
};

class ObjectService {
 public:
  struct Options {
    SessionWindows::Options windows;
    // One line about something that went wrong with an object, for the log. Any thread.
    std::function<void(const std::string&)> report;
    // Measures the disk, taking its time; empty: OSD_PROFILE is not supported.
    std::function<Result<DiskProfile>(const ProfilePattern&)> profile;
    // What background I/O is sure to get, for the statistics; empty: unknown.
    std::function<uint64_t()> background_floor;
    // Of an OSD with tiers: where operations go instead of the Dispatcher, by the tier of the
    // request, and what it adds to the statistics (tier_stats.h). Empty: one disk.
    std::function<void(std::unique_ptr<ObjectOp>, TierName)> submit;
    std::function<void(const DispatcherStats&, const wire::OsdStatsRequest&, wire::OsdStatsReply*)>
        add_stats;
    std::vector<Scrubber::Disk> further_disks;
    // Of all its disks together, and of the one where a tier's operations go; empty: of the store.
    std::function<uint64_t()> used_bytes;
    std::function<uint64_t(TierName)> free_bytes;
    // Nothing is changed before a map has come (session_fences.h).
    bool await_map = false;
  };
  // All of them must outlive the service.
  ObjectService(Dispatcher& dispatcher, ObjectStore& store, Clock& clock,
                const OsdIdentity& identity, Options options);
  ~ObjectService();  // waits for a running profile; requires the Dispatcher to be idle

  // Answers every call, sooner or later.
  void Handle(std::shared_ptr<net::IncomingCall> call);

  // From now on requests are kept unanswered until the service goes: their senders send them again
  // to whoever serves this disk next.
  void StopAccepting();
  // Waits for a measurement of the disk and for a scrub. Before the store is closed, and while the
  // Dispatcher still completes what it has.
  void EndBackground();

  // The epoch that the Dispatcher obeys, for the statistics.
  void SetEpoch(uint64_t epoch) { epoch_ = epoch; }

  [[nodiscard]] uint64_t io_errors() const { return io_errors_; }
  [[nodiscard]] NewerChains& chains() { return chains_; }
  [[nodiscard]] SessionFences& fences() { return fences_; }
  [[nodiscard]] const SessionWindows& windows() const { return windows_; }

 private:
  class Op;
  struct Deletes;

  void HandleObject(std::shared_ptr<net::IncomingCall> call);
  void HandleDeletes(const std::shared_ptr<net::IncomingCall>& call,
                     const wire::ObjectRequest& request);
  bool RefuseStaleChain(Op& op) const;
  void Begin(std::unique_ptr<Op> op, Status status);
  static void Join(const Op& op, const Status& status, uint64_t next_index);
  void HandleStats(net::IncomingCall& call);
  void HandleProfile(std::shared_ptr<net::IncomingCall> call);
  [[nodiscard]] Status CheckRequest(const wire::ObjectRequest& request,
                                    const net::IncomingCall& call) const;
  void Answer(Op& op, ObjectOpResult result);
  void ReportFailure(const Status& status);

  Dispatcher& dispatcher_;
  ObjectStore& store_;
  Clock& clock_;
  const OsdIdentity identity_;
  const uint64_t cluster_hash_;
  const Options options_;
  SessionWindows windows_;
  SessionFences fences_;
  NewerChains chains_;
  uint64_t epoch_ = 0;
  std::atomic<uint64_t> io_errors_{0};
  bool accepting_ = true;
  std::vector<std::shared_ptr<net::IncomingCall>> parked_;
  Scrubber scrubber_;
  std::atomic<bool> profiling_{false};
  std::atomic<Duration> alone_p99_{Duration(0)};  // of the last profile
  std::thread profiler_;
};

// One row of the statistics.
void FillClassStats(const DispatcherClassStats& one, wire::ClassStats* row);

}  // namespace weir::osd
