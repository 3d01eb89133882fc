// Scrubber: reads every object of a running store and so verifies every checksum, as requests of
// class system.scrub: they queue with everybody else's, and the scheduler says how fast it goes.
//
// What is damaged is reported block by block, counted by the store like any read that fails
// (StoreStats::checksum_errors, which `osdctl status` turns into exit 7), and left as it is.
// Threads: calls from any thread; one of its own while it runs, with one request under way.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "osd/io/dispatcher.h"
#include "osd/store/object_store.h"

namespace weir::net {
class IncomingCall;
}

namespace weir::osd {

struct ScrubProgress {
  bool running = false;
  uint64_t runs = 0;  // that reached the end
  // Of the run under way, or of the last one.
  uint64_t objects = 0, objects_total = 0, bytes = 0, damaged_blocks = 0;
  std::string error;  // why it ended before the end
};

class Scrubber {
 public:
  struct Disk {
    Dispatcher* dispatcher = nullptr;
    ObjectStore* store = nullptr;
  };
  // All of them outlive it; a Dispatcher completes what is submitted, also while it drains.
  Scrubber(std::vector<Disk> disks, std::function<void(const std::string&)> report)
      : disks_(std::move(disks)), report_(std::move(report)) {}
  ~Scrubber() { End(); }

  // From the first object on; nothing when it runs already, or after End.
  void Start();
  // It ends after the request under way.
  void Stop();
  // Until no run is under way.
  void Wait();
  // Stops for good and waits.
  void End();
  ScrubProgress Progress();

  // OSD_SCRUB.
  void Handle(net::IncomingCall& call, uint32_t osd_id);

 private:
  static constexpr uint64_t kPieceBytes = 512 << 10;

  void Run();
  // False: it was told to stop.
  Result<bool> CheckDisk(const Disk& disk);
  Status CheckObject(const Disk& disk, ObjectId id);
  Status CheckPiece(const Disk& disk, ObjectId id, uint64_t offset, bool* end);
  Result<Buffer> Read(const Disk& disk, ObjectId id, uint64_t offset, uint64_t length);
  [[nodiscard]] bool stopping();

  const std::vector<Disk> disks_;  // of an OSD with tiers more than one
  const std::function<void(const std::string&)> report_;

  std::mutex starting_;  // taken before mutex_
  std::mutex mutex_;     // short
  ScrubProgress progress_;
  bool stop_ = false, ended_ = false;
  std::thread thread_;
};

}  // namespace weir::osd
