// FormatOsd: makes a disk an OSD of a cluster; what `weir-osd --mkfs` and an embedded first start
// do.
//
// The order keeps a failure anywhere harmless: the disk is checked and formatted under a
// provisional identity, measured, announced to the MDS, and only then given the id and the cluster
// that the MDS answered. A disk left provisional by a failure may be formatted again without
// `force`, and with it the others of the same OSD.
//
// Threads: any; waits for disk and MDS.
// Errors:  those of MakeStore (kExists names what was found on the disk), ProfileDevice, and of the
//          MDS: kTimedOut or kUnreachable name its endpoint.
#pragma once

#include <cstdint>
#include <set>
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
  std::string osd_uuid;     // random; the same again when a format is taken up that was interrupted
  uint64_t token_rate = 0;  // bytes per second; 0: measure, which takes about a second
  bool force = false;       // overwrite whatever the disk holds
  StoreOptions store;
};

struct TierDevice {
  std::string name;  // empty: the OSD's only disk
  BlockDevice* device;
};
// Of several, the first is the default one; the OSD's token rate, with which promises are weighed,
// is that of the slowest. Returns the identity of the first.
Result<OsdIdentity> FormatOsd(const std::vector<TierDevice>& tiers, net::RpcClient& mds,
                              const FormatOsdOptions& options);

// The OSDs that a failure left unfinished on one of these disks at least.
std::set<std::string> UnfinishedOn(const std::vector<TierDevice>& tiers);

// Whether an identity is one that an unfinished FormatOsd left behind.
inline bool IsProvisional(const OsdIdentity& identity) {
  return identity.cluster_uuid.empty();
}

// A random (version 4) uuid from the kernel.
Result<std::string> NewUuid();

}  // namespace weir::osd
