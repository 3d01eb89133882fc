// TierDisks: the disks of an OSD that has several, opened: what `weir-osd --tier-disk` and an
// embedded OSD hold while they serve.
//
// Threads: as BlockDevice and ObjectStore. Close the stores after the OsdServer has stopped.
// Errors:  kInvalid when the disks are not those of one OSD, all of them, under their names; what
//          opening one says.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/disk/block_device.h"
#include "common/disk/tier_spec.h"
#include "osd/service/osd_server.h"
#include "osd/store/object_store.h"

namespace weir::net {
class RpcClient;
}

namespace weir::osd {

struct FormatOsdOptions;

class TierDisks {
 public:
  // The devices, as named; nothing is read yet.
  static Result<TierDisks> Open(const std::vector<TierSpec>& tiers);

  // Whether one of them at least belongs to no OSD yet, or to one that was never completed.
  Result<bool> AreNew();
  Result<OsdIdentity> Format(net::RpcClient& mds, const FormatOsdOptions& options);
  // Opens the stores, in the order in which the OSD was formatted. The identity is the OSD's: its
  // token rate is that of the slowest.
  Result<OsdIdentity> OpenStores(const StoreOptions& options);
  Status CloseStores();

  [[nodiscard]] ObjectStore& first() { return *disks_.front().store; }
  [[nodiscard]] std::vector<OsdServer::Tier> tiers() const;

 private:
  struct Disk {
    std::string name;
    std::unique_ptr<BlockDevice> device;
    std::unique_ptr<ObjectStore> store;
    OsdIdentity identity;
  };
  Status ReadIdentities();

  std::vector<Disk> disks_;
};

}  // namespace weir::osd
