// FormatOsd: makes a disk an OSD of a cluster; what `weir-osd --mkfs` and an embedded first start
// do.
//
// The order keeps a failure anywhere harmless: the disk is checked and formatted under a
// provisional identity, measured, announced to the MDS, and only then given the id and the cluster
// that the MDS answered. A disk left provisional by a failure may be formatted again without
// `force`.
//
// Threads: any; waits for disk and MDS.
// Errors:  those of MakeStore (kExists names what was found on the disk), ProfileDevice, and of the
//          MDS: kTimedOut or kUnreachable name its endpoint.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "osd/store/object_store.h"

namespace weir {
class BlockDevice;
}
namespace weir::net {
class RpcClient;
}

namespace weir::osd {

struct FormatOsdOptions {
  std::string osd_uuid;     // random and new
  uint64_t token_rate = 0;  // bytes per second; 0: measure, which takes about a second
  bool force = false;       // overwrite whatever the disk holds
  StoreOptions store;
};

Result<OsdIdentity> FormatOsd(BlockDevice& device, net::RpcClient& mds,
                              const FormatOsdOptions& options);

// The same for an OSD of several disks. The first is the default one; the OSD's token rate, with
// which promises are weighed, is that of the slowest. Returns the identity of the first.
struct TierDevice {
  std::string name;
  BlockDevice* device;
};
Result<OsdIdentity> FormatTiers(const std::vector<TierDevice>& tiers, net::RpcClient& mds,
                                const FormatOsdOptions& options);

// Whether an identity is one that an unfinished FormatOsd left behind.
inline bool IsProvisional(const OsdIdentity& identity) {
  return identity.cluster_uuid.empty();
}

// A random (version 4) uuid from the kernel.
Result<std::string> NewUuid();

}  // namespace weir::osd
