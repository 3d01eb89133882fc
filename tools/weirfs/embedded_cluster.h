// EmbeddedCluster: an MDS and its OSDs inside this process, for `weirfs --data DIR`.
//
//   DIR/lock        held while we live; holds our pid and mountpoint
//   DIR/mds.img     the MDS's store, DIR/osd.N.img the OSDs' (or the raw disks of --disk)
//   DIR/owner.json  whose DIR is, and whether it is whole (common/disk/data_directory.h)
//   DIR/disks.json  which disks there are, in the order of their OSD ids (tools/cli/disk_list.h)
//   DIR/endpoint    ipc://DIR/mds.sock, for osdctl; the OSDs answer at DIR/osd.N.sock
//
// Inside, everybody talks over inproc://. The sockets are for the owner alone. When DIR's path is
// too long for a socket they lie in a directory of their own below /tmp.
//
// A first start notes what is to be there, makes it, and notes that all of it is; one that was cut
// short goes on with that. From then on nothing is made or formatted: what is missing or wrong is
// named, and no byte of a disk has changed. Each disk is opened on a ScratchDevice, and kept when
// all are.
//
// Threads: Start and Stop from one thread.
// Errors:  kBusy names the process that has DIR; kNoSpace says how much is free; kExists: DIR or a
//          disk is another's; kCorrupt: something is missing or damaged; kInvalid: the options
//          contradict what is there.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/disk/data_directory.h"
#include "common/reactor/reactor.h"
#include "osd/store/object_store.h"
#include "tools/cli/disk_list.h"
#include "tools/cli/files.h"

namespace weir::net {
class Network;
class RpcClient;
}  // namespace weir::net
namespace weir::mds {
class MdsServer;
class MdsStore;
}  // namespace weir::mds
namespace weir::osd {
class OsdDisks;
class OsdServer;
}  // namespace weir::osd

namespace weir::weirfs {

class EmbeddedCluster {
 public:
  struct Options {
    std::string dir;  // absolute
    std::string mountpoint;
    cli::DisksWanted disks;
    bool force = false;       // format named disks whatever they hold, at first use
    uint64_t token_rate = 0;  // 0: measured when a disk is formatted
  };

  // Refuses what a look can tell, and changes nothing; starts no thread.
  static Status Examine(const Options& options);
  // Everything serves when it returns: the MDS and the first OSD on `reactor`, each further OSD on
  // one of its own. Network and reactor outlive the cluster.
  static Result<std::unique_ptr<EmbeddedCluster>> Start(net::Network& network, Reactor& reactor,
                                                        const Options& options);
  ~EmbeddedCluster();  // stops
  // Serves what is under way, closes the stores. The first thing that failed.
  Status Stop();

  [[nodiscard]] static const char* MdsEndpoint() { return "inproc://mds"; }
  // Within this process.
  [[nodiscard]] std::vector<std::string> OsdEndpoints() const;

 private:
  struct Osd {
    std::string uuid;  // that it is to get, or has; empty: not known
    osd::OsdIdentity identity;
    std::unique_ptr<Reactor> own_reactor;  // outlives what follows; null: the cluster's
    Reactor* reactor = nullptr;
    std::unique_ptr<net::Network> network;
    std::unique_ptr<osd::OsdDisks> disks;
    std::unique_ptr<osd::OsdServer> server;
  };

  EmbeddedCluster(net::Network& network, Reactor& reactor, Options options, cli::LockFile lock);
  Status Run();
  Status ChooseSockets();
  Status PlanNew();
  Status MakeImages() const;
  Status OpenDisks();
  Status IdentifyOsds();
  Status CheckCluster() const;
  Status OpenMds();
  Status StartMds();
  Status OpenOsds();
  Status Keep();
  Result<std::unique_ptr<net::RpcClient>> ConnectToMds() const;
  Status FormatMissing();
  Status Format(Osd& osd);
  Status Serve(Osd& osd);
  Status NoteWhole();
  [[nodiscard]] bool is_whole() const { return record_.state == DataState::kWhole; }
  [[nodiscard]] std::string SocketOf(const std::string& name) const;

  net::Network& network_;  // on reactor_
  Reactor& reactor_;
  const Options options_;
  cli::LockFile lock_;
  std::string socket_dir_;
  DataRecord record_;
  cli::DiskList list_;
  std::unique_ptr<mds::MdsStore> mds_store_;
  std::unique_ptr<mds::MdsServer> mds_;
  std::vector<Osd> osds_;
};

}  // namespace weir::weirfs
