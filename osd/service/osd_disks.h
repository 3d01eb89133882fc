// OsdDisks: the disk of an OSD, or its disks when it has several tiers, opened: what weir-osd and
// an embedded OSD hold while they serve. A list of disks is one without a name, or the tiers.
//
// Nothing is written to a disk before Keep or Format: an OSD that is refused for whatever reason
// leaves its disks as they were.
//
// Threads: as BlockDevice and ObjectStore. Close the stores after the OsdServer has stopped.
// Errors:  kBusy: somebody has a disk. kExists: a disk that is to be formatted holds something.
//          kInvalid: the disks are not those of one OSD, all of them, under their names, completely
//          formatted. What opening one says.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/disk/block_device.h"
#include "common/disk/scratch_device.h"
#include "common/disk/tier_spec.h"
#include "osd/service/osd_server.h"
#include "osd/store/object_store.h"

namespace weir::net {
class RpcClient;
}

namespace weir::osd {

struct FormatOsdOptions;
struct TierDevice;

class OsdDisks {
 public:
  // For Identify and CheckFree only: of disks that may be in use; starts no thread.
  static Result<OsdDisks> Look(const std::vector<TierSpec>& disks);
  // Locks them; nothing is read yet. `reactor`: takes requests to the disks, and is where the
  // stores call back; it outlives them. Null: devices and stores have threads of their own.
  static Result<OsdDisks> Open(const std::vector<TierSpec>& disks, Reactor* reactor = nullptr);

  // Of an OSD, its token rate being that of the slowest disk.
  Result<OsdIdentity> Identify();
  // Whether all of them may be formatted: they are large enough (else kNoSpace) and hold nothing,
  // or a format that was not finished.
  Status CheckFree();
  Result<OsdIdentity> Format(net::RpcClient& mds, const FormatOsdOptions& options);
  // Opens the stores, in the order in which the OSD was formatted.
  Result<OsdIdentity> OpenStores(const StoreOptions& options);
  // What opening wanted to write is written; from now on everything is.
  Status Keep();
  Status CloseStores();

  [[nodiscard]] ObjectStore& first() { return *disks_.front().store; }
  [[nodiscard]] BlockDevice& first_device() { return *disks_.front().device; }
  // None of an OSD with one disk.
  [[nodiscard]] std::vector<OsdServer::Tier> tiers() const;

 private:
  struct Disk {
    std::string name;
    std::string path;  // of the device or image
    std::unique_ptr<BlockDevice> device;
    std::unique_ptr<ScratchDevice> scratch;
    std::unique_ptr<ObjectStore> store;
    OsdIdentity identity;
  };
  Status CheckIdentities() const;
  [[nodiscard]] std::vector<TierDevice> Devices() const;
  [[nodiscard]] OsdIdentity Whole() const;

  std::vector<Disk> disks_;
  Reactor* reactor_ = nullptr;
};

}  // namespace weir::osd
