#include "tools/weirfs/embedded_cluster.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <set>
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
#include "osd/service/osd_disks.h"
#include "osd/service/osd_server.h"
#include "tools/cli/mounts.h"
#include "tools/cli/process.h"

namespace weir::weirfs {
namespace {

namespace fs = std::filesystem;
using cli::DiskList;
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
  if (mountpoint.empty()) {  // who has just taken it
    return {ErrorCode::kBusy, fmt::format("'{}' is in use: another start works on it", dir)};
  }
  return {ErrorCode::kBusy,
          fmt::format("'{}' is in use: process {} has it mounted on '{}' (umount that first)", dir,
                      pid, mountpoint)};
}

bool IsLocked(const std::string& dir) {
  const int fd = open((dir + "/lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool locked = flock(fd, LOCK_EX | LOCK_NB) != 0;
  close(fd);
  return locked;
}

// What an image file gets whose size nobody said: what fits into half of what is free.
Result<uint64_t> ImageSize(const std::string& dir, uint64_t images) {
  WEIR_ASSIGN_OR_RETURN(const uint64_t free, cli::FreeBytes(dir));
  const uint64_t size = std::min(kDefaultOsdSize, free / 2 / images / (1 << 20) * (1 << 20));
  if (size >= kSmallestOsdSize) return size;
  return {ErrorCode::kNoSpace,
          fmt::format("no room in '{}' for {} OSD images of {}: {} free there (name a smaller "
                      "--osd-size, a raw --disk, or another --data)",
                      dir, images, FormatSize(kSmallestOsdSize), FormatSize(free))};
}

Status ChooseSizes(const std::string& dir, DiskList* list) {
  for (DiskList::Image& image : list->images) {
    if (image.size > 0) continue;
    WEIR_ASSIGN_OR_RETURN(image.size, ImageSize(dir, list->images.size()));
  }
  return cli::CheckRoom(dir, *list, kSmallMdsImageSize);
}

Result<DataRecord> Look(const EmbeddedCluster::Options& options) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> named, cli::NamedPaths(options.disks));
  return LookAtDirectory(options.dir, DataOwner::kWeirfs, named);
}

// The recorded disks, which must not contradict what is asked for; of a first start that came to
// nothing there may be none yet.
Result<DiskList> KnownDisks(const EmbeddedCluster::Options& options, const DataRecord& record) {
  auto list = cli::LoadDiskList(options.dir);
  if (list.code() == ErrorCode::kNotFound) {
    if (record.state != DataState::kWhole) return DiskList();
    return {ErrorCode::kCorrupt,
            fmt::format("'{}' is missing: it says which disks '{}' has (put it back)",
                        cli::DiskListPath(options.dir), options.dir)};
  }
  WEIR_RETURN_IF_ERROR(list.status());
  const Status same = cli::CheckSameDisks(options.dir, *list, options.disks);
  if (same.ok()) return list;
  if (record.state == DataState::kWhole) return same;
  return {same.code(), same.message() + fmt::format(" (or remove '{}', whose first start was never "
                                                    "finished)",
                                                    options.dir)};
}

// What is wrong with a disk is not what was typed.
Status Damaged(const std::string& dir, const Status& status) {
  switch (status.code()) {
    case ErrorCode::kInvalid:
    case ErrorCode::kNotFound:
    case ErrorCode::kNotSupported:
    case ErrorCode::kCorrupt:
      return {ErrorCode::kCorrupt, fmt::format("a disk of '{}' is missing, damaged or another: {}",
                                               dir, status.message())};
    default:
      return status;
  }
}

Status CheckRate(const osd::OsdIdentity& identity, uint64_t wanted) {
  if (wanted == 0 || wanted == identity.token_rate) return Status::Ok();
  return {ErrorCode::kInvalid,
          fmt::format("--token-rate {} contradicts osd.{}, which was formatted with {}: leave it "
                      "out (osdctl osd set {} --token-rate changes it)",
                      FormatRate(wanted), identity.osd_id, FormatRate(identity.token_rate),
                      identity.osd_id)};
}

// Of one cluster, each another OSD, and the one that is recorded.
class IdentityCheck {
 public:
  explicit IdentityCheck(const EmbeddedCluster::Options& options, const DataRecord& record)
      : options_(options), cluster_(record.cluster) {}

  Status Add(const std::string& disk, const std::string& uuid, const osd::OsdIdentity& identity) {
    if (cluster_.empty()) cluster_ = identity.cluster_uuid;
    if (identity.cluster_uuid != cluster_) {
      return Wrong(disk, fmt::format("is osd.{} of cluster {}, and the directory of cluster {}",
                                     identity.osd_id, identity.cluster_uuid, cluster_));
    }
    if (!uuid.empty() && identity.osd_uuid != uuid) {
      return Wrong(disk, fmt::format("is OSD {}, where OSD {} was", identity.osd_uuid, uuid));
    }
    if (!uuids_.insert(identity.osd_uuid).second) {
      return Wrong(
          disk, fmt::format("is osd.{}, which another of the disks is as well", identity.osd_id));
    }
    return CheckRate(identity, options_.token_rate);
  }

 private:
  [[nodiscard]] Status Wrong(const std::string& disk, const std::string& what) const {
    return {ErrorCode::kCorrupt,
            fmt::format("a disk of '{}' is another: '{}' {} (put back the right one)", options_.dir,
                        disk, what)};
  }
  const EmbeddedCluster::Options& options_;
  std::string cluster_;
  std::set<std::string> uuids_;
};

std::string NameOf(const DiskList::Disk& disk) {
  return disk.tiers.empty() ? disk.path : FormatTierDisks(disk.tiers);
}

Status MayFormat(osd::OsdDisks& disks, const EmbeddedCluster::Options& options) {
  if (options.force) return Status::Ok();
  Status free = disks.CheckFree();
  if (free.code() != ErrorCode::kExists) return free;
  return {free.code(), free.message() + " (name another disk; --force destroys what is there)"};
}

Status ExamineWhole(const EmbeddedCluster::Options& options, const DataRecord& record,
                    const DiskList& list) {
  WEIR_RETURN_IF_ERROR(mds::CheckMdsImage(options.dir));
  IdentityCheck check(options, record);
  for (const DiskList::Disk& disk : list.disks) {
    WEIR_ASSIGN_OR_RETURN(const auto parts, cli::PartsOf(options.dir, disk));
    auto seen = osd::OsdDisks::Look(parts);
    if (!seen.ok()) return Damaged(options.dir, seen.status());
    const auto identity = seen->Identify();
    if (!identity.ok()) return Damaged(options.dir, identity.status());
    WEIR_RETURN_IF_ERROR(check.Add(NameOf(disk), disk.uuid, *identity));
  }
  return Status::Ok();
}

// Disks that are to be formatted.
Status ExamineNamed(const EmbeddedCluster::Options& options, const DiskList& list) {
  for (const DiskList::Disk& disk : list.disks) {
    WEIR_ASSIGN_OR_RETURN(std::vector<TierSpec> parts, cli::PartsOf(options.dir, disk));
    std::erase_if(parts, [&](const TierSpec& part) {
      const auto spec = ParseDiskSpec(part.disk);
      return std::any_of(list.images.begin(), list.images.end(), [&](const auto& image) {
        return spec.ok() && spec->path == options.dir + "/" + image.name;
      });
    });
    if (parts.empty()) continue;
    WEIR_ASSIGN_OR_RETURN(osd::OsdDisks seen, osd::OsdDisks::Look(parts));
    WEIR_RETURN_IF_ERROR(MayFormat(seen, options));
  }
  return Status::Ok();
}

}  // namespace

EmbeddedCluster::EmbeddedCluster(net::Network& network, Reactor& reactor, Options options,
                                 cli::LockFile lock)
    : network_(network), reactor_(reactor), options_(std::move(options)), lock_(std::move(lock)) {}

EmbeddedCluster::~EmbeddedCluster() {
  if (const Status status = Stop(); !status.ok()) WEIR_LOG_ERROR("ending: {}", status.message());
}

Result<std::unique_ptr<EmbeddedCluster>> EmbeddedCluster::Start(net::Network& network,
                                                                Reactor& reactor,
                                                                const Options& options) {
  WEIR_RETURN_IF_ERROR(Look(options).status());
  std::error_code error;
  fs::create_directories(options.dir, error);
  if (error) {
    return Status::FromErrno(error.value(), fmt::format("cannot make '{}'", options.dir));
  }
  WEIR_ASSIGN_OR_RETURN(cli::LockFile lock, TakeLock(options.dir));
  std::unique_ptr<EmbeddedCluster> cluster(
      new EmbeddedCluster(network, reactor, options, std::move(lock)));
  cluster->lock_.Write(fmt::format("{} {}\n", getpid(), options.mountpoint));
  WEIR_RETURN_IF_ERROR(cluster->Run());
  return cluster;
}

Status EmbeddedCluster::Examine(const Options& options) {
  WEIR_ASSIGN_OR_RETURN(const DataRecord record, Look(options));
  DiskList list;
  if (record.state != DataState::kNew) {
    WEIR_ASSIGN_OR_RETURN(list, KnownDisks(options, record));
    // Of a directory in use Start says by whom.
    if (record.state == DataState::kWhole) {
      return IsLocked(options.dir) ? Status::Ok() : ExamineWhole(options, record, list);
    }
  }
  if (!list.disks.empty()) return Status::Ok();
  WEIR_ASSIGN_OR_RETURN(list, cli::PlanDisks(options.dir, options.disks));
  WEIR_RETURN_IF_ERROR(ExamineNamed(options, list));
  return ChooseSizes(options.dir, &list);
}

Status EmbeddedCluster::Run() {
  WEIR_ASSIGN_OR_RETURN(record_, Look(options_));
  if (record_.state != DataState::kNew) {
    WEIR_ASSIGN_OR_RETURN(list_, KnownDisks(options_, record_));
  }
  WEIR_RETURN_IF_ERROR(ChooseSockets());
  if (list_.disks.empty()) WEIR_RETURN_IF_ERROR(PlanNew());
  if (!is_whole()) WEIR_RETURN_IF_ERROR(MakeImages());
  WEIR_RETURN_IF_ERROR(OpenDisks());
  if (is_whole()) WEIR_RETURN_IF_ERROR(IdentifyOsds());
  WEIR_RETURN_IF_ERROR(OpenMds());
  if (is_whole()) {
    WEIR_RETURN_IF_ERROR(CheckCluster());
    WEIR_RETURN_IF_ERROR(OpenOsds());
  }
  WEIR_RETURN_IF_ERROR(StartMds());
  if (!is_whole()) {
    WEIR_RETURN_IF_ERROR(FormatMissing());
    WEIR_RETURN_IF_ERROR(OpenOsds());
    WEIR_RETURN_IF_ERROR(Keep());
  }
  for (Osd& osd : osds_) WEIR_RETURN_IF_ERROR(Serve(osd));
  WEIR_RETURN_IF_ERROR(NoteWhole());
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

// Noted before anything is made, so that a start which is cut short is known as one.
Status EmbeddedCluster::PlanNew() {
  WEIR_ASSIGN_OR_RETURN(list_, cli::PlanDisks(options_.dir, options_.disks));
  WEIR_RETURN_IF_ERROR(ExamineNamed(options_, list_));
  WEIR_RETURN_IF_ERROR(ChooseSizes(options_.dir, &list_));
  for (DiskList::Disk& disk : list_.disks) {
    WEIR_ASSIGN_OR_RETURN(disk.uuid, osd::NewUuid());
  }
  record_.state = DataState::kMaking;
  WEIR_RETURN_IF_ERROR(WriteRecord(options_.dir, record_));
  return cli::SaveDiskList(options_.dir, list_);
}

Status EmbeddedCluster::MakeImages() const {
  for (const DiskList::Image& image : list_.images) {
    const std::string path = options_.dir + "/" + image.name;
    if (const Status made = CreateImage(path, image.size); made.code() != ErrorCode::kExists) {
      WEIR_RETURN_IF_ERROR(made);
    }
  }
  return Status::Ok();
}

Status EmbeddedCluster::OpenDisks() {
  for (const DiskList::Disk& disk : list_.disks) {
    WEIR_ASSIGN_OR_RETURN(const std::vector<TierSpec> parts, cli::PartsOf(options_.dir, disk));
    std::unique_ptr<Reactor> own;
    if (!osds_.empty()) {
      WEIR_ASSIGN_OR_RETURN(own, Reactor::Create({.name = "osd"}));
      own->Start();
    }
    Reactor& reactor = own != nullptr ? *own : reactor_;
    auto disks = osd::OsdDisks::Open(parts, &reactor);
    if (!disks.ok()) return is_whole() ? Damaged(options_.dir, disks.status()) : disks.status();
    Osd& osd = osds_.emplace_back();
    osd.uuid = disk.uuid;
    osd.own_reactor = std::move(own);
    osd.reactor = &reactor;
    osd.network = network_.On(reactor);
    osd.disks = std::make_unique<osd::OsdDisks>(*std::move(disks));
  }
  return Status::Ok();
}

Status EmbeddedCluster::IdentifyOsds() {
  IdentityCheck check(options_, record_);
  for (size_t i = 0; i < osds_.size(); ++i) {
    const auto identity = osds_[i].disks->Identify();
    if (!identity.ok()) return Damaged(options_.dir, identity.status());
    osds_[i].identity = *identity;
    WEIR_RETURN_IF_ERROR(check.Add(NameOf(list_.disks[i]), osds_[i].uuid, *identity));
  }
  return Status::Ok();
}

// The disks are those of the OSDs that the MDS knows.
Status EmbeddedCluster::CheckCluster() const {
  const mds::MdsStore::Cluster& cluster = mds_store_->cluster();
  std::set<std::string> here;
  for (const Osd& osd : osds_) {
    here.insert(osd.identity.osd_uuid);
    const auto known = cluster.osds.find(osd.identity.osd_id);
    if (known != cluster.osds.end() && known->second.uuid == osd.identity.osd_uuid &&
        cluster.uuid == osd.identity.cluster_uuid) {
      continue;
    }
    return {ErrorCode::kCorrupt,
            fmt::format("'{}' is of cluster {} and knows no osd.{} of cluster {}, whose disk is "
                        "here (one of the two is not what it was: put back its copy)",
                        mds::MdsImagePath(options_.dir), cluster.uuid, osd.identity.osd_id,
                        osd.identity.cluster_uuid)};
  }
  for (const auto& [id, osd] : cluster.osds) {
    if (!osd.joined || here.contains(osd.uuid)) continue;
    return {ErrorCode::kCorrupt,
            fmt::format("'{}' names no disk for osd.{} (OSD {}), which holds data of '{}': put "
                        "back what it said",
                        cli::DiskListPath(options_.dir), id, osd.uuid, options_.dir)};
  }
  return Status::Ok();
}

Status EmbeddedCluster::OpenMds() {
  WEIR_ASSIGN_OR_RETURN(const uint64_t free, cli::FreeBytes(options_.dir));
  mds::MdsStoreOptions store;
  store.image_bytes = free > 4 * kMdsImageSize ? kMdsImageSize : kSmallMdsImageSize;
  store.make = !is_whole();
  store.cluster = record_.cluster;
  WEIR_ASSIGN_OR_RETURN(mds_store_, mds::OpenMdsStore(options_.dir, store));
  return Status::Ok();
}

Status EmbeddedCluster::StartMds() {
  mds::MdsOptions options;
  options.ns.maker_uid = geteuid();
  options.ns.maker_gid = getegid();
  options.on_open = [this]() -> Status {
    WEIR_RETURN_IF_ERROR(mds_store_->Keep());
    return is_whole() ? Keep() : Status::Ok();
  };
  WEIR_ASSIGN_OR_RETURN(
      mds_, mds::MdsServer::Start(*mds_store_, network_, FileClock::Get(),
                                  {MdsEndpoint(), "ipc://" + SocketOf("mds")}, options));
  return Status::Ok();
}

Status EmbeddedCluster::OpenOsds() {
  for (Osd& osd : osds_) {
    const auto identity = osd.disks->OpenStores({});
    if (!identity.ok()) return Damaged(options_.dir, identity.status());
    osd.identity = *identity;
  }
  return Status::Ok();
}

Status EmbeddedCluster::Keep() {
  for (Osd& osd : osds_) WEIR_RETURN_IF_ERROR(osd.disks->Keep());
  return Status::Ok();
}

Status EmbeddedCluster::NoteWhole() {
  const std::string& cluster = osds_.front().identity.cluster_uuid;
  if (is_whole() && record_.recorded && record_.cluster == cluster) return Status::Ok();
  record_.state = DataState::kWhole;
  record_.cluster = cluster;
  return WriteRecord(options_.dir, record_);
}

Result<std::unique_ptr<net::RpcClient>> EmbeddedCluster::ConnectToMds() const {
  WEIR_ASSIGN_OR_RETURN(const std::string unique, osd::NewUuid());
  net::RpcClient::Options client;
  client.session = std::hash<std::string>()(unique);
  client.control = true;
  return net::RpcClient::Connect(network_, SystemClock::Get(), MdsEndpoint(), client);
}

// All but those that a start which was cut short had finished.
Status EmbeddedCluster::FormatMissing() {
  for (Osd& osd : osds_) {
    const auto before = osd.disks->Identify();
    if (before.ok() && before->osd_uuid == osd.uuid) continue;
    WEIR_RETURN_IF_ERROR(Format(osd));
  }
  return Status::Ok();
}

Status EmbeddedCluster::Format(Osd& osd) {
  WEIR_RETURN_IF_ERROR(MayFormat(*osd.disks, options_));
  osd::FormatOsdOptions format;
  format.force = options_.force;
  format.token_rate = options_.token_rate;
  format.osd_uuid = osd.uuid;
  WEIR_ASSIGN_OR_RETURN(const auto mds, ConnectToMds());
  WEIR_ASSIGN_OR_RETURN(const osd::OsdIdentity identity, osd.disks->Format(*mds, format));
  WEIR_LOG_INFO("formatted {} as osd.{}, token rate {}", osd.disks->first_device().name(),
                identity.osd_id, FormatRate(identity.token_rate));
  return Status::Ok();
}

Status EmbeddedCluster::Serve(Osd& osd) {
  const std::string name = fmt::format("osd.{}", osd.identity.osd_id);
  osd::OsdServer::Options server;
  server.loop = osd.reactor;
  server.tiers = osd.disks->tiers();
  server.listen = {"inproc://" + name, "ipc://" + SocketOf(name)};
  server.mds = MdsEndpoint();
  server.device = &osd.disks->first_device();
  server.watch_processors = true;
  server.report = [name](const std::string& line) { WEIR_LOG_INFO("{}: {}", name, line); };
  WEIR_ASSIGN_OR_RETURN(osd.server,
                        osd::OsdServer::Start(osd.disks->first(), osd.identity, *osd.network,
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
    if (Status status = osd.disks->CloseStores(); first_error.ok()) first_error = status;
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
