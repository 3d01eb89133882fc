// Temporary: what a verification makes on a running cluster, and takes away again: two classes, and
// the data of one file that is unlinked as soon as it is made, so that the MDS removes the data
// even if this process is killed.
//
// Threads: one, but for the ObjectIo.
// Errors:  kExists when the classes are there: another verification runs, or one was killed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/remote/object_io.h"
#include "client/remote/osd_client.h"
#include "common/net/transport.h"
#include "common/wire/map.pb.h"
#include "tools/cli/cluster_link.h"

namespace weir::osdctl {

class Temporary {
 public:
  static constexpr char kVictim[] = "verify.victim";
  static constexpr char kAggressor[] = "verify.aggressor";
  static constexpr uint64_t kObjectBytes = 4 << 20;
  static constexpr size_t kObjectsPerOsd = 4;  // of each class

  // On these OSDs, or on all that are up.
  static Result<std::unique_ptr<Temporary>> Make(cli::ClusterLink& link,
                                                 const std::vector<uint32_t>& osds);
  ~Temporary();

  [[nodiscard]] client::ObjectIo& io() { return *io_; }
  [[nodiscard]] ClassId victim() const { return ids_[0]; }
  [[nodiscard]] ClassId aggressor() const { return ids_[1]; }
  [[nodiscard]] PoolId pool() const { return pool_; }
  [[nodiscard]] const std::vector<uint32_t>& osds() const { return osds_; }
  [[nodiscard]] const std::vector<ObjectId>& victim_objects() const { return objects_[0]; }
  [[nodiscard]] const std::vector<ObjectId>& aggressor_objects() const { return objects_[1]; }
  // To be called every few seconds, or the MDS takes us for dead.
  void KeepAlive();
  // Removes all of it; the destructor does, too, but says nothing.
  Status Remove();

 private:
  explicit Temporary(cli::ClusterLink& link) : link_(link) {}
  Status ChooseOsds(const wire::ClusterMap& map, const std::vector<uint32_t>& osds);
  Status ChoosePool(const ClusterMap& map);
  Status MakeClasses();
  Status MakeFile();
  Status ChooseObjects(const ClusterMap& map);

  cli::ClusterLink& link_;
  std::vector<uint32_t> osds_;
  PoolId pool_;
  std::string pool_name_;
  std::vector<ClassId> ids_;
  uint64_t inode_ = 0;  // 0: none yet
  std::vector<ObjectId> objects_[2];
  std::unique_ptr<net::Network> network_;
  std::unique_ptr<client::ReactorNetworks> networks_;
  std::unique_ptr<client::OsdClient> osd_client_;
  std::unique_ptr<client::ObjectIo> io_;
};

}  // namespace weir::osdctl
