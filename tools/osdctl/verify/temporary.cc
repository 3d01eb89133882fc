#include "tools/osdctl/verify/temporary.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "common/base/prng.h"
#include "common/placement/cluster_map.h"
#include "common/wire/mds.pb.h"

namespace weir::osdctl {
namespace {

constexpr uint64_t kRoot = 1;
constexpr Duration kPatience = std::chrono::seconds(10);
constexpr uint64_t kIndexesTried = 100'000;

wire::Caller Me() {
  wire::Caller caller;
  caller.set_uid(getuid());
  caller.set_gid(getgid());
  return caller;
}

// Whose chains begin with one of the pool's OSDs.
std::set<uint32_t> HeadsOf(const Pool& pool) {
  std::set<uint32_t> heads;
  for (const Chain& chain : pool.chains) {
    if (!chain.empty()) heads.insert(chain.head().value);
  }
  return heads;
}

}  // namespace

Result<std::unique_ptr<Temporary>> Temporary::Make(cli::ClusterLink& link,
                                                   const std::vector<uint32_t>& osds) {
  std::unique_ptr<Temporary> made(new Temporary(link));
  WEIR_ASSIGN_OR_RETURN(wire::ClusterMap wire_map, link.Map());
  for (auto& osd : *wire_map.mutable_osds()) {
    osd.set_endpoint(cli::ReachableEndpoint(osd.endpoint(), link.endpoint()));
  }
  WEIR_RETURN_IF_ERROR(made->ChooseOsds(wire_map, osds));
  WEIR_ASSIGN_OR_RETURN(ClusterMap map, weir::FromWire(wire_map));
  WEIR_RETURN_IF_ERROR(made->ChoosePool(map));
  WEIR_RETURN_IF_ERROR(made->MakeClasses());
  WEIR_RETURN_IF_ERROR(made->MakeFile());
  WEIR_RETURN_IF_ERROR(made->ChooseObjects(map));
  made->network_ = net::MakeNetwork();
  Clock& clock = SystemClock::Get();
  made->networks_ = std::make_unique<client::ReactorNetworks>(*made->network_);
  client::ObjectIo::Options options;
  options.session = RandomSeed();
  made->osd_client_ = std::make_unique<client::OsdClient>(
      *made->networks_, clock,
      client::OsdClient::Options{.session = options.session, .timeout = kPatience});
  options.timeout = kPatience;
  made->io_ = std::make_unique<client::ObjectIo>(clock, *made->osd_client_, options);
  made->osd_client_->SetMap(map);
  made->io_->SetMap(std::make_shared<const ClusterMap>(std::move(map)));
  return made;
}

Temporary::~Temporary() {
  (void)Remove();
}

Status Temporary::ChooseOsds(const wire::ClusterMap& map, const std::vector<uint32_t>& osds) {
  for (const auto& osd : map.osds()) {
    const bool wanted = osds.empty() || std::count(osds.begin(), osds.end(), osd.id()) > 0;
    if (!wanted || (osds.empty() && !osd.up())) continue;
    if (!osd.up()) {
      return {ErrorCode::kUnreachable,
              fmt::format("osd.{} is down: start it, or leave it out", osd.id())};
    }
    osds_.push_back(osd.id());
  }
  for (const uint32_t id : osds) {
    if (std::count(osds_.begin(), osds_.end(), id) == 0) {
      return {ErrorCode::kNotFound,
              fmt::format("there is no osd.{} (osdctl osd ls shows what there is)", id)};
    }
  }
  if (osds_.empty()) return {ErrorCode::kUnreachable, "no OSD is up: start one"};
  return Status::Ok();
}

Status Temporary::ChoosePool(const ClusterMap& map) {
  for (const auto& [id, pool] : map.pools) {
    const std::set<uint32_t> heads = HeadsOf(pool);
    const bool has_all =
        std::all_of(osds_.begin(), osds_.end(), [&](uint32_t osd) { return heads.contains(osd); });
    if (!has_all) continue;
    pool_ = id;
    pool_name_ = pool.name;
    return Status::Ok();
  }
  return {ErrorCode::kInvalid,
          "no pool has all of these OSDs: name some of one pool with --osd (osdctl pool ls)"};
}

Status Temporary::MakeClasses() {
  for (const char* name : {kVictim, kAggressor}) {
    wire::SetClassRequest request;
    request.set_name(name);
    wire::ClassInfo info;
    const Status made = link_.Call(wire::MDS_CLASS_CREATE, request, &info);
    if (made.code() == ErrorCode::kExists) {
      return {ErrorCode::kExists,
              fmt::format("class '{0}' exists: another verification runs, or one was killed; then: "
                          "osdctl class rm {0}",
                          name)};
    }
    WEIR_RETURN_IF_ERROR(made);
    ids_.emplace_back(info.id());
  }
  return Status::Ok();
}

Status Temporary::MakeFile() {
  const std::string name = fmt::format(".osdctl-verify.{}.{:08x}", getpid(), RandomSeed() >> 32);
  wire::CreateRequest create;
  *create.mutable_caller() = Me();
  create.set_parent(kRoot);
  create.set_name(name);
  create.set_mode(S_IFREG | 0600);
  create.set_exclusive(true);
  create.set_open_flags(O_RDWR);
  wire::EntryReply entry;
  WEIR_RETURN_IF_ERROR(link_.Call(wire::MDS_CREATE, create, &entry)
                           .Annotate("cannot make a temporary file in the root"));
  inode_ = entry.attr().inode();
  if (entry.attr().layout().pool() != pool_.value) {
    wire::XattrRequest layout;
    *layout.mutable_caller() = Me();
    layout.set_inode(inode_);
    layout.set_name("user.weir.layout.pool");
    layout.set_value(pool_name_);
    wire::Empty done;
    WEIR_RETURN_IF_ERROR(link_.Call(wire::MDS_SETXATTR, layout, &done));
  }
  wire::NameRequest unlink;
  *unlink.mutable_caller() = Me();
  unlink.set_parent(kRoot);
  unlink.set_name(name);
  wire::Empty done;
  return link_.Call(wire::MDS_UNLINK, unlink, &done);
}

Status Temporary::ChooseObjects(const ClusterMap& map) {
  std::map<uint32_t, size_t> found;
  size_t missing = osds_.size() * 2 * kObjectsPerOsd;
  for (uint64_t index = 0; index < kIndexesTried && missing > 0; ++index) {
    const ObjectId object{InodeId(inode_), index};
    const Chain* chain = map.ChainOf(pool_, object);
    if (chain == nullptr || chain->empty()) continue;
    const uint32_t head = chain->head().value;
    if (std::count(osds_.begin(), osds_.end(), head) == 0) continue;
    size_t& here = found[head];
    if (here == 2 * kObjectsPerOsd) continue;
    objects_[here % 2].push_back(object);
    ++here;
    --missing;
  }
  if (missing == 0) return Status::Ok();
  return {ErrorCode::kInvalid, "the chains of the pool do not reach all of its OSDs"};
}

void Temporary::KeepAlive() {
  wire::InodeRequest request;
  *request.mutable_caller() = Me();
  request.set_inode(inode_);
  wire::EntryReply entry;
  (void)link_.Call(wire::MDS_GETATTR, request, &entry);
}

Status Temporary::Remove() {
  if (io_ != nullptr) io_->Stop();
  if (osd_client_ != nullptr) osd_client_->Stop();
  Status first;
  wire::Empty done;
  if (inode_ != 0) {
    wire::ReleaseRequest release;
    release.add_inodes(inode_);
    first = link_.Call(wire::MDS_RELEASE, release, &done);
    inode_ = 0;
  }
  const char* names[] = {kVictim, kAggressor};
  for (size_t i = 0; i < ids_.size(); ++i) {
    wire::ClassNameRequest request;
    request.set_name(names[i]);
    const Status removed = link_.Call(wire::MDS_CLASS_REMOVE, request, &done);
    if (first.ok()) first = removed;
  }
  ids_.clear();
  return first;
}

}  // namespace weir::osdctl
