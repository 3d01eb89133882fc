#include "mds/service/mds_store.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "common/disk/block_device.h"
#include "common/kv/rocks_kv_store.h"

namespace weir::mds {
namespace {

// A store together with the device it lies on.
class ImageStore final : public KvStore {
 public:
  ImageStore(std::unique_ptr<BlockDevice> device, std::unique_ptr<KvStore> store)
      : device_(std::move(device)), store_(std::move(store)) {}
  Result<std::string> Get(std::string_view key) override { return store_->Get(key); }
  Status Apply(const WriteBatch& batch, Durability durability) override {
    return store_->Apply(batch, durability);
  }
  bool HasRoom() override { return store_->HasRoom(); }
  bool AwaitRoom() override { return store_->AwaitRoom(); }
  std::unique_ptr<Iterator> NewIterator() override { return store_->NewIterator(); }
  std::unique_ptr<Iterator> NewIteratorBefore(std::string_view end) override {
    return store_->NewIteratorBefore(end);
  }

 private:
  std::unique_ptr<BlockDevice> device_;  // outlives the store
  std::unique_ptr<KvStore> store_;
};

// Under a name of its own until it is complete, so that a crash leaves no half of an image. Zeros
// are written once: a sync of a write into space that ext4 only reserved would have to journal.
Status MakeImage(const std::string& path, uint64_t bytes) {
  const std::string unfinished = path + ".new";
  std::error_code ignored;
  std::filesystem::remove(unfinished, ignored);
  WEIR_RETURN_IF_ERROR(CreateImage(unfinished, bytes));
  {
    WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<BlockDevice> device, OpenDevice(unfinished, {}));
    WEIR_RETURN_IF_ERROR(ZeroRange(*device, 0, bytes));
    WEIR_RETURN_IF_ERROR(FormatRawKv(*device, {0, bytes}));
    WEIR_RETURN_IF_ERROR(device->Flush());
  }
  std::error_code error;
  std::filesystem::rename(unfinished, path, error);
  if (error) return Status::FromErrno(error.value(), "renaming " + unfinished);
  return Status::Ok();
}

}  // namespace

std::string MdsImagePath(const std::string& directory) {
  return directory + "/mds.img";
}

Result<std::unique_ptr<KvStore>> OpenMdsStore(const std::string& directory,
                                              const MdsStoreOptions& options) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return Status::FromErrno(error.value(), "creating " + directory);
  const std::string path = MdsImagePath(directory);
  if (!std::filesystem::exists(path, error)) {
    WEIR_RETURN_IF_ERROR(MakeImage(path, options.image_bytes).Annotate("making " + path));
  }
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<BlockDevice> device, OpenDevice(path, {}));
  KvOptions kv;
  kv.cache_bytes = options.cache_bytes;
  kv.grows = true;
  auto store = OpenRawKvStore(*device, {0, device->size()}, kv);
  if (!store.ok()) return store.status().Annotate("opening " + path);
  return std::unique_ptr<KvStore>(
      std::make_unique<ImageStore>(std::move(device), *std::move(store)));
}

}  // namespace weir::mds
