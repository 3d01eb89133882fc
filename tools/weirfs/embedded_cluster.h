// EmbeddedCluster: an MDS and its OSDs inside this process, for `weirfs --data DIR`.
//
//   DIR/lock        held while we live; holds our pid and mountpoint
//   DIR/mds.img     the MDS's store, DIR/osd.N.img the OSDs' (or the raw disks of --disk)
//   DIR/disks.json  which disks there are, in the order of their OSD ids
//   DIR/endpoint    ipc://DIR/mds.sock, for osdctl; the OSDs answer at DIR/osd.N.sock
//
// Inside, everybody talks over inproc://. The sockets are for the owner alone. When DIR's path is
// too long for a socket they lie in a directory of their own below /tmp.
//
// Threads: Start and Stop from one thread.
// Errors:  kBusy names the process that has DIR; kNoSpace says how much is free; what an OSD or the
//          MDS says of its disk.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/disk/tier_spec.h"
#include "tools/cli/files.h"

namespace weir {
class BlockDevice;
class KvStore;
}  // namespace weir
namespace weir::net {
class Network;
class RpcClient;
}  // namespace weir::net
namespace weir::mds {
class MdsServer;
}
namespace weir::osd {
class ObjectStore;
class OsdServer;
class TierDisks;
struct OsdIdentity;
}  // namespace weir::osd

namespace weir::weirfs {

class EmbeddedCluster {
 public:
  struct Options {
    std::string dir;  // absolute
    std::string mountpoint;
    size_t osds = 0;                 // image files; 0: one, unless disks are named
    uint64_t osd_size = 0;           // of an image file; 0: 8 GiB, or what fits
    std::vector<std::string> disks;  // as disk_spec.h has them, paths absolute
    std::vector<std::string> tiers;  // as tier_spec.h has them, paths absolute; one for each OSD
    uint64_t token_rate = 0;         // 0: measured when a disk is formatted
  };

  // Everything serves when it returns. The network outlives the cluster.
  static Result<std::unique_ptr<EmbeddedCluster>> Start(net::Network& network,
                                                        const Options& options);
  ~EmbeddedCluster();  // stops
  // Serves what is under way, closes the stores. The first thing that failed.
  Status Stop();

  [[nodiscard]] static const char* MdsEndpoint() { return "inproc://mds"; }
  // Within this process.
  [[nodiscard]] std::vector<std::string> OsdEndpoints() const;

 private:
  struct Osd {
    std::unique_ptr<BlockDevice> device;
    std::unique_ptr<osd::ObjectStore> store;
    std::unique_ptr<osd::TierDisks> tiers;  // instead of those two
    std::unique_ptr<osd::OsdServer> server;
  };
  struct Disk {
    std::string path;  // as disk_spec.h has it; of an image, relative to DIR
    bool is_image = false;
    std::vector<TierSpec> tiers;  // instead of a path; images within DIR are relative to it
  };

  EmbeddedCluster(net::Network& network, Options options, cli::LockFile lock);
  Status Run();
  Status ChooseSockets();
  Status PlanDisks();
  Status StartMds();
  Result<std::unique_ptr<net::RpcClient>> ConnectToMds() const;
  Result<osd::OsdIdentity> Format(BlockDevice& device);
  Status PlanTiers(const std::string& text);
  Status StartOsd(const Disk& disk);
  Status StartTiers(const Disk& disk);
  Status Serve(Osd& osd, osd::ObjectStore& store, const osd::OsdIdentity& identity,
               BlockDevice* device);
  Result<osd::OsdIdentity> OpenTiers(Osd& osd, const std::vector<TierSpec>& tiers);
  [[nodiscard]] std::string SocketOf(const std::string& name) const;

  net::Network& network_;
  const Options options_;
  cli::LockFile lock_;
  std::string socket_dir_;
  std::vector<Disk> disks_;
  std::unique_ptr<KvStore> mds_store_;
  std::unique_ptr<mds::MdsServer> mds_;
  std::vector<Osd> osds_;
};

}  // namespace weir::weirfs
