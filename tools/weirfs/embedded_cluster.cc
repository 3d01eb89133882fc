#include "tools/weirfs/embedded_cluster.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/base/file_clock.h"
#include "common/base/log.h"
#include "common/base/time.h"
#include "common/base/units.h"
#include "common/disk/block_device.h"
#include "common/disk/disk_spec.h"
#include "common/kv/kv_store.h"
#include "common/net/rpc.h"
#include "common/net/transport.h"
#include "mds/service/mds_server.h"
#include "mds/service/mds_store.h"
#include "osd/service/format_osd.h"
#include "osd/service/osd_server.h"
#include "osd/service/tier_disks.h"
#include "osd/store/object_store.h"
#include "tools/cli/mounts.h"
#include "tools/cli/process.h"

namespace weir::weirfs {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

constexpr uint64_t kDefaultOsdSize = 8ull << 30;
constexpr uint64_t kSmallestOsdSize = 256ull << 20;
constexpr uint64_t kMdsImageSize = 1ull << 30;
constexpr uint64_t kSmallMdsImageSize = 256ull << 20;
constexpr Duration kEndingPatience = seconds(30);

// Waits for a predecessor whose mount is gone already: it only has to close its stores.
Result<cli::LockFile> TakeLock(const std::string& dir) {
  const std::string path = dir + "/lock";
  auto lock = cli::LockFile::Take(path);
  if (lock.ok() || lock.code() != ErrorCode::kBusy) return lock;
  pid_t pid = 0;
  std::string mountpoint;
  if (const auto text = cli::ReadFile(path); text.ok()) {
    std::istringstream words(*text);
    words >> pid >> std::ws;
    std::getline(words, mountpoint);
  }
  const bool ending =
      !mountpoint.empty() && cli::StateOfMount(mountpoint) != cli::MountState::kAlive;
  if (ending && cli::WaitUntilGone(cli::Identify(pid), kEndingPatience)) {
    return cli::LockFile::Take(path);
  }
  return {ErrorCode::kBusy,
          fmt::format("'{}' is in use: process {} has it mounted on '{}' (umount that first)", dir,
                      pid, mountpoint)};
}

Result<uint64_t> FreeBytes(const std::string& dir) {
  struct statvfs info {};
  if (statvfs(dir.c_str(), &info) != 0) {
    return Status::FromErrno(errno, fmt::format("cannot look at '{}'", dir));
  }
  return uint64_t{info.f_bavail} * info.f_frsize;
}

// What each image file gets, when the MDS's is made too: as asked, or what fits into half of what
// is free.
Result<uint64_t> ImageSize(const EmbeddedCluster::Options& options, uint64_t images) {
  WEIR_ASSIGN_OR_RETURN(const uint64_t free, FreeBytes(options.dir));
  const uint64_t needed = options.osd_size * images + kSmallMdsImageSize;
  if (options.osd_size > 0 && needed <= free) return options.osd_size;
  const uint64_t share = images == 0 ? 0 : free / 2 / images / (1 << 20) * (1 << 20);
  const uint64_t size = std::min(kDefaultOsdSize, share);
  if (options.osd_size > 0 || size < kSmallestOsdSize) {
    return {ErrorCode::kNoSpace,
            fmt::format("no room in '{}' for {} OSD images of {}: {} free there (name a smaller "
                        "--osd-size, a raw --disk, or another --data)",
                        options.dir, images,
                        FormatSize(options.osd_size > 0 ? options.osd_size : kSmallestOsdSize),
                        FormatSize(free))};
  }
  return size;
}

Status MakeImage(const std::string& path, uint64_t size) {
  std::error_code ignored;
  fs::remove(path, ignored);  // of a first start that was interrupted before it was noted
  return CreateImage(path, size);
}

}  // namespace

EmbeddedCluster::EmbeddedCluster(net::Network& network, Options options, cli::LockFile lock)
    : network_(network), options_(std::move(options)), lock_(std::move(lock)) {}

EmbeddedCluster::~EmbeddedCluster() {
  if (const Status status = Stop(); !status.ok()) WEIR_LOG_ERROR("ending: {}", status.message());
}

Result<std::unique_ptr<EmbeddedCluster>> EmbeddedCluster::Start(net::Network& network,
                                                                const Options& options) {
  std::error_code error;
  fs::create_directories(options.dir, error);
  if (error) {
    return Status::FromErrno(error.value(), fmt::format("cannot make '{}'", options.dir));
  }
  WEIR_ASSIGN_OR_RETURN(cli::LockFile lock, TakeLock(options.dir));
  std::unique_ptr<EmbeddedCluster> cluster(new EmbeddedCluster(network, options, std::move(lock)));
  cluster->lock_.Write(fmt::format("{} {}\n", getpid(), options.mountpoint));
  WEIR_RETURN_IF_ERROR(cluster->Run());
  return cluster;
}

Status EmbeddedCluster::Run() {
  WEIR_RETURN_IF_ERROR(ChooseSockets());
  WEIR_RETURN_IF_ERROR(PlanDisks());
  WEIR_RETURN_IF_ERROR(StartMds());
  for (const Disk& disk : disks_) WEIR_RETURN_IF_ERROR(StartOsd(disk));
  return cli::WriteFileAtomically(options_.dir + "/endpoint", "ipc://" + SocketOf("mds") + "\n");
}

std::string EmbeddedCluster::SocketOf(const std::string& name) const {
  return fmt::format("{}/{}.sock", socket_dir_, name);
}

Status EmbeddedCluster::ChooseSockets() {
  constexpr size_t kLongestName = sizeof "/osd.999.sock";
  if (options_.dir.size() + kLongestName < sizeof(sockaddr_un{}.sun_path)) {
    socket_dir_ = options_.dir;
    return Status::Ok();
  }
  std::string pattern = "/tmp/weirfs.XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) {
    return Status::FromErrno(errno, "cannot make a directory for sockets below /tmp");
  }
  socket_dir_ = pattern;
  return Status::Ok();
}

// Which disks there are: as noted at first use, or as asked for now.
Status EmbeddedCluster::PlanDisks() {
  const std::string path = options_.dir + "/disks.json";
  if (const auto text = cli::ReadFile(path); text.ok()) {
    const auto json = nlohmann::json::parse(*text, nullptr, false);
    if (json.is_discarded()) return {ErrorCode::kCorrupt, fmt::format("'{}' is damaged", path)};
    for (const auto& disk : json["disks"]) {
      Disk& known = disks_.emplace_back();
      known.path = disk["path"].get<std::string>();
      known.is_image = disk["is_image"].get<bool>();
      for (const auto& tier : disk.value("tiers", nlohmann::json::array())) {
        known.tiers.push_back({tier["name"].get<std::string>(), tier["disk"].get<std::string>()});
      }
    }
    const size_t asked = options_.osds + options_.disks.size() + options_.tiers.size();
    if (asked > 0 && asked != disks_.size()) {
      return {ErrorCode::kInvalid,
              fmt::format("'{}' has {} OSDs already: leave out --osds, --disk and --tier-disk, or "
                          "take another --data",
                          options_.dir, disks_.size())};
    }
    return Status::Ok();
  }
  const bool named = !options_.disks.empty() || !options_.tiers.empty();
  const size_t images = options_.osds > 0 || named ? options_.osds : 1;
  for (size_t i = 0; i < images; ++i) {
    // Named within DIR, so that DIR can be moved.
    disks_.push_back({fmt::format("osd.{}.img", i), true, {}});
  }
  for (const std::string& disk : options_.disks) {
    WEIR_ASSIGN_OR_RETURN(const DiskSpec spec, ParseDiskSpec(disk));
    if (!spec.path.empty()) {
      disks_.push_back({disk, false, {}});
      continue;
    }
    const std::string image = fmt::format("osd.{}.img", disks_.size());
    WEIR_RETURN_IF_ERROR(MakeImage(options_.dir + "/" + image, spec.image_size));
    disks_.push_back({WithPath(disk, image), true, {}});
  }
  for (const std::string& tiers : options_.tiers) WEIR_RETURN_IF_ERROR(PlanTiers(tiers));
  nlohmann::ordered_json json = {{"version", 1}, {"disks", nlohmann::ordered_json::array()}};
  for (const Disk& disk : disks_) {
    json["disks"].push_back({{"path", disk.path}, {"is_image", disk.is_image}});
    for (const TierSpec& tier : disk.tiers) {
      json["disks"].back()["tiers"].push_back({{"name", tier.name}, {"disk", tier.disk}});
    }
  }
  if (images > 0) {
    WEIR_ASSIGN_OR_RETURN(const uint64_t size, ImageSize(options_, images));
    for (size_t i = 0; i < images; ++i) {
      WEIR_RETURN_IF_ERROR(MakeImage(options_.dir + "/" + disks_[i].path, size));
    }
  }
  return cli::WriteFileAtomically(path, json.dump() + "\n");
}

Status EmbeddedCluster::PlanTiers(const std::string& text) {
  WEIR_ASSIGN_OR_RETURN(std::vector<TierSpec> tiers, ParseTierDisks(text));
  for (TierSpec& tier : tiers) {
    WEIR_ASSIGN_OR_RETURN(const DiskSpec spec, ParseDiskSpec(tier.disk));
    if (!spec.path.empty()) continue;
    const std::string image = fmt::format("osd.{}.{}.img", disks_.size(), tier.name);
    WEIR_RETURN_IF_ERROR(MakeImage(options_.dir + "/" + image, spec.image_size));
    tier.disk = WithPath(tier.disk, image);
  }
  disks_.push_back({"", false, std::move(tiers)});
  return Status::Ok();
}

Status EmbeddedCluster::StartMds() {
  WEIR_ASSIGN_OR_RETURN(const uint64_t free, FreeBytes(options_.dir));
  mds::MdsStoreOptions store;
  store.image_bytes = free > 4 * kMdsImageSize ? kMdsImageSize : kSmallMdsImageSize;
  WEIR_ASSIGN_OR_RETURN(mds_store_, mds::OpenMdsStore(options_.dir, store));
  const std::string socket = SocketOf("mds");
  mds::MdsOptions options;
  options.ns.commit_here = net::AnswerHere::Afterwards;
  WEIR_ASSIGN_OR_RETURN(mds_, mds::MdsServer::Start(*mds_store_, network_, FileClock::Get(),
                                                    {MdsEndpoint(), "ipc://" + socket}, options));
  return Status::Ok();
}

Result<std::unique_ptr<net::RpcClient>> EmbeddedCluster::ConnectToMds() const {
  WEIR_ASSIGN_OR_RETURN(const std::string unique, osd::NewUuid());
  net::RpcClient::Options client;
  client.session = std::hash<std::string>()(unique);
  return net::RpcClient::Connect(network_, SystemClock::Get(), MdsEndpoint(), client);
}

Result<osd::OsdIdentity> EmbeddedCluster::Format(BlockDevice& device) {
  osd::FormatOsdOptions format;
  format.token_rate = options_.token_rate;
  WEIR_ASSIGN_OR_RETURN(format.osd_uuid, osd::NewUuid());
  WEIR_ASSIGN_OR_RETURN(const auto mds, ConnectToMds());
  WEIR_ASSIGN_OR_RETURN(const osd::OsdIdentity identity, osd::FormatOsd(device, *mds, format));
  WEIR_LOG_INFO("formatted {} as osd.{}, token rate {}", device.name(), identity.osd_id,
                FormatRate(identity.token_rate));
  return identity;
}

Result<osd::OsdIdentity> EmbeddedCluster::OpenTiers(Osd& osd, const std::vector<TierSpec>& tiers) {
  WEIR_ASSIGN_OR_RETURN(osd::TierDisks disks, osd::TierDisks::Open(tiers));
  osd.tiers = std::make_unique<osd::TierDisks>(std::move(disks));
  WEIR_ASSIGN_OR_RETURN(const bool is_new, osd.tiers->AreNew());
  if (is_new) {
    osd::FormatOsdOptions format;
    format.token_rate = options_.token_rate;
    WEIR_ASSIGN_OR_RETURN(format.osd_uuid, osd::NewUuid());
    WEIR_ASSIGN_OR_RETURN(const auto mds, ConnectToMds());
    WEIR_RETURN_IF_ERROR(osd.tiers->Format(*mds, format).status());
  }
  return osd.tiers->OpenStores({});
}

Status EmbeddedCluster::StartTiers(const Disk& disk) {
  std::vector<TierSpec> tiers = disk.tiers;
  for (TierSpec& tier : tiers) {
    WEIR_ASSIGN_OR_RETURN(const DiskSpec spec, ParseDiskSpec(tier.disk));
    if (spec.path.starts_with('/')) continue;
    tier.disk = WithPath(tier.disk, options_.dir + "/" + spec.path);
  }
  Osd& osd = osds_.emplace_back();
  WEIR_ASSIGN_OR_RETURN(const osd::OsdIdentity identity, OpenTiers(osd, tiers));
  return Serve(osd, osd.tiers->first(), identity, osd.tiers->tiers().front().device);
}

Status EmbeddedCluster::StartOsd(const Disk& disk) {
  if (!disk.tiers.empty()) return StartTiers(disk);
  WEIR_ASSIGN_OR_RETURN(const DiskSpec spec, ParseDiskSpec(disk.path));
  const std::string path =
      disk.is_image ? WithPath(disk.path, options_.dir + "/" + spec.path) : disk.path;
  Osd& osd = osds_.emplace_back();
  WEIR_ASSIGN_OR_RETURN(osd.device, OpenDisk(path));
  auto identity = osd::ReadIdentity(*osd.device);
  const bool is_new =
      identity.ok() ? osd::IsProvisional(*identity) : identity.code() == ErrorCode::kInvalid;
  if (is_new) identity = Format(*osd.device);
  if (!identity.ok()) return identity.status();

  WEIR_ASSIGN_OR_RETURN(osd.store, osd::OpenStore(*osd.device, {}));
  return Serve(osd, *osd.store, *identity, osd.device.get());
}

Status EmbeddedCluster::Serve(Osd& osd, osd::ObjectStore& store, const osd::OsdIdentity& identity,
                              BlockDevice* device) {
  const std::string name = fmt::format("osd.{}", identity.osd_id);
  osd::OsdServer::Options server;
  if (osd.tiers != nullptr) server.tiers = osd.tiers->tiers();
  server.listen = {"inproc://" + name, "ipc://" + SocketOf(name)};
  server.mds = MdsEndpoint();
  server.device = device;
  server.watch_processors = true;
  server.report = [name](const std::string& line) { WEIR_LOG_INFO("{}: {}", name, line); };
  WEIR_ASSIGN_OR_RETURN(osd.server, osd::OsdServer::Start(store, identity, network_,
                                                          SystemClock::Get(), std::move(server)));
  return osd.server->WaitRegistered();
}

std::vector<std::string> EmbeddedCluster::OsdEndpoints() const {
  std::vector<std::string> endpoints;
  for (const Osd& osd : osds_) endpoints.push_back(osd.server->endpoints().front());
  return endpoints;
}

Status EmbeddedCluster::Stop() {
  Status first_error;
  mds_.reset();
  for (Osd& osd : osds_) {
    if (osd.server != nullptr) osd.server->Stop();
    osd.server.reset();
    if (osd.tiers != nullptr) {
      if (Status status = osd.tiers->CloseStores(); first_error.ok()) first_error = status;
    }
    if (osd.store == nullptr) continue;
    if (Status status = osd.store->Close(); first_error.ok()) first_error = status;
    osd.store.reset();
  }
  osds_.clear();
  mds_store_.reset();
  if (!socket_dir_.empty() && socket_dir_ != options_.dir) {
    std::error_code ignored;
    fs::remove_all(socket_dir_, ignored);
    socket_dir_.clear();
  }
  return first_error;
}

}  // namespace weir::weirfs
