#include "mds/service/mds_store.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "common/disk/block_device.h"
#include "common/disk/scratch_device.h"
#include "common/kv/rocks_kv_store.h"
#include "mds/format/ns_keys_format.h"
#include "mds/format/ns_values_format.h"

namespace weir::mds {
namespace {

// A store together with the device it lies on.
class ImageStore final : public MdsStore {
 public:
  explicit ImageStore(std::unique_ptr<BlockDevice> device)
      : device_(std::move(device)), scratch_(*device_) {}

  Status Open(const MdsStoreOptions& options) {
    KvOptions kv;
    kv.cache_bytes = options.cache_bytes;
    kv.grows = true;
    WEIR_ASSIGN_OR_RETURN(store_, OpenRawKvStore(scratch_, {0, scratch_.size()}, kv));
    const Result<std::string> stored = store_->Get(kClusterKey);
    if (stored.code() == ErrorCode::kNotFound) return CheckCluster(options);
    WEIR_RETURN_IF_ERROR(stored.status());
    WEIR_ASSIGN_OR_RETURN(const ClusterRecord record, DecodeValue<ClusterRecord>(*stored));
    cluster_.uuid = record.map().cluster_uuid();
    for (const wire::OsdInfo& osd : record.map().osds()) cluster_.osds[osd.id()].uuid = osd.uuid();
    for (const uint32_t id : record.joined_osds()) cluster_.osds[id].joined = true;
    return CheckCluster(options);
  }

  [[nodiscard]] const Cluster& cluster() const override { return cluster_; }
  Status Keep() override { return scratch_.Keep(); }

  Result<std::string> Get(std::string_view key) override { return store_->Get(key); }
  Result<std::string> GetInMemory(std::string_view key) override {
    return store_->GetInMemory(key);
  }
  Status Apply(const WriteBatch& batch, Durability durability) override {
    return store_->Apply(batch, durability);
  }
  bool HasRoom() override { return store_->HasRoom(); }
  bool AwaitRoom() override { return store_->AwaitRoom(); }
  std::unique_ptr<Iterator> NewIterator() override { return store_->NewIterator(); }
  std::unique_ptr<Iterator> NewIteratorBefore(std::string_view end) override {
    return store_->NewIteratorBefore(end);
  }
  std::unique_ptr<Iterator> NewIteratorInMemory(std::string_view end) override {
    return store_->NewIteratorInMemory(end);
  }

 private:
  [[nodiscard]] Status CheckCluster(const MdsStoreOptions& options) const {
    if (cluster_.uuid.empty()) {
      if (options.make) return Status::Ok();
      return {ErrorCode::kCorrupt,
              fmt::format("'{}' holds no cluster, although the directory was in use (put back a "
                          "copy)",
                          device_->name())};
    }
    if (options.cluster.empty() || options.cluster == cluster_.uuid) return Status::Ok();
    return {ErrorCode::kCorrupt,
            fmt::format("'{}' is of cluster {}, and the directory of cluster {} (put back its own)",
                        device_->name(), cluster_.uuid, options.cluster)};
  }

  std::unique_ptr<BlockDevice> device_;  // outlives the store
  ScratchDevice scratch_;
  std::unique_ptr<KvStore> store_;
  Cluster cluster_;
};

// Zeros are written once: a sync of a write into space that ext4 only reserved would have to
// journal.
Status MakeImage(const std::string& path, uint64_t bytes) {
  return CreateImage(path, bytes, [bytes](const std::string& unnamed) -> Status {
    WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<BlockDevice> device, OpenDevice(unnamed, {}));
    WEIR_RETURN_IF_ERROR(ZeroRange(*device, 0, bytes));
    WEIR_RETURN_IF_ERROR(FormatRawKv(*device, {0, bytes}));
    return device->Flush();
  });
}

}  // namespace

std::string MdsImagePath(const std::string& directory) {
  return directory + "/mds.img";
}

Status CheckMdsImage(const std::string& directory) {
  std::error_code error;
  if (std::filesystem::exists(MdsImagePath(directory), error)) return Status::Ok();
  return {ErrorCode::kCorrupt,
          fmt::format("'{}' is missing: it holds all names of the file system, and without it the "
                      "data of the OSDs means nothing (put it back)",
                      MdsImagePath(directory))};
}

Result<std::unique_ptr<MdsStore>> OpenMdsStore(const std::string& directory,
                                               const MdsStoreOptions& options) {
  const std::string path = MdsImagePath(directory);
  const Status there = CheckMdsImage(directory);
  if (!there.ok()) {
    if (!options.make) return there;
    WEIR_RETURN_IF_ERROR(MakeImage(path, options.image_bytes));
  }
  auto device = OpenDevice(path, {.threads = false});  // RocksDB's calls wait
  // What kind of file it is was nobody's wish.
  if (device.code() == ErrorCode::kInvalid) {
    return {ErrorCode::kCorrupt, device.status().message() + " (put back a copy of it)"};
  }
  WEIR_RETURN_IF_ERROR(device.status());
  auto store = std::make_unique<ImageStore>(*std::move(device));
  WEIR_RETURN_IF_ERROR(store->Open(options).Annotate("opening " + path));
  return std::unique_ptr<MdsStore>(std::move(store));
}

}  // namespace weir::mds
