#include "osd/service/object_service.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/crc32c.h"
#include "common/net/rpc.h"
#include "common/placement/cluster_map.h"
#include "common/wire/osd.pb.h"

namespace weir::osd {
namespace {

// Far above any real delay, far below what would overflow a sum of tokens.
constexpr uint64_t kLargestElsewhere = uint64_t{1} << 40;

// Of a delete in steps: what is charged as one request should not be large.
constexpr uint32_t kObjectsAtOnce = 256;
constexpr int kMoreInodesMax = 255;
constexpr size_t kCapabilityMax = 256;

// A chain has one member, its head.
int64_t DelayHere(const wire::ObjectRequest& request) {
  if (request.delays().empty()) return 0;
  return static_cast<int64_t>(std::min(request.delays(0), kLargestElsewhere));
}

uint64_t HashOf(const OsdIdentity& identity) {
  ClusterMap map;
  map.cluster_uuid = identity.cluster_uuid;
  return map.ClusterHash();
}

ObjectOpKind KindOf(uint32_t method) {
  switch (method) {
    case wire::OSD_READ:
      return ObjectOpKind::kRead;
    case wire::OSD_WRITE:
      return ObjectOpKind::kWrite;
    case wire::OSD_TRUNCATE:
      return ObjectOpKind::kTruncate;
    case wire::OSD_DELETE_INODE:
      return ObjectOpKind::kDeleteInode;
    case wire::OSD_PUNCH:
      return ObjectOpKind::kPunch;
    case wire::OSD_COPY:
      return ObjectOpKind::kCopy;
    case wire::OSD_EXTENTS:
      return ObjectOpKind::kExtents;
    case wire::OSD_ALLOCATE:
      return ObjectOpKind::kAllocate;
    case wire::OSD_GIVE_BACK:
      return ObjectOpKind::kGiveBack;
    default:
      return ObjectOpKind::kStat;
  }
}

const char* NameOf(ObjectOpKind kind) {
  switch (kind) {
    case ObjectOpKind::kRead:
      return "read";
    case ObjectOpKind::kWrite:
      return "write";
    case ObjectOpKind::kTruncate:
      return "truncate";
    case ObjectOpKind::kDeleteInode:
      return "delete";
    case ObjectOpKind::kStat:
      return "stat";
    case ObjectOpKind::kPunch:
      return "punch";
    case ObjectOpKind::kCopy:
      return "copy";
    case ObjectOpKind::kExtents:
      return "map";
    case ObjectOpKind::kAllocate:
      return "allocate";
    case ObjectOpKind::kGiveBack:
      return "give back";
    case ObjectOpKind::kBackgroundRead:
    case ObjectOpKind::kBackgroundWrite:
      break;  // never asked for from outside
  }
  return "operation";
}

// What users do to a range of an object.
bool IsOnRange(ObjectOpKind kind) {
  return kind == ObjectOpKind::kRead || kind == ObjectOpKind::kWrite ||
         kind == ObjectOpKind::kPunch || kind == ObjectOpKind::kCopy ||
         kind == ObjectOpKind::kExtents || kind == ObjectOpKind::kAllocate ||
         kind == ObjectOpKind::kGiveBack;
}

bool Changes(ObjectOpKind kind) {
  return kind != ObjectOpKind::kRead && kind != ObjectOpKind::kExtents &&
         kind != ObjectOpKind::kStat;
}

ChangeTerms TermsOf(const wire::ObjectRequest& request) {
  ChangeTerms terms;
  if (request.has_slot()) terms.slot = SlotId{request.pool(), request.slot()};
  terms.chain_version = request.chain_version();
  terms.op = {.session = request.op().session(),
              .number = request.op().number(),
              .session_floor = request.op().session_floor(),
              .object_floor = request.op().object_floor()};
  if (request.has_expected_version()) {
    const wire::ObjectVersion& version = request.expected_version();
    terms.expected = replication::Version{version.chain(), version.sequence()};
  }
  terms.append = request.append();
  return terms;
}

Lane HintOf(const wire::ObjectRequest& request) {
  switch (request.lane()) {
    case wire::LANE_INTERACTIVE:
      return Lane::kInteractive;
    case wire::LANE_BULK:
      return Lane::kBulk;
    case wire::LANE_BACKGROUND:
      return Lane::kBackground;
    default:
      return Lane::kUnknown;
  }
}

bool SaysVersion(ObjectOpKind kind) {
  return kind == ObjectOpKind::kStat || (Changes(kind) && kind != ObjectOpKind::kDeleteInode);
}

bool GivesSpace(ObjectOpKind kind) {
  return kind == ObjectOpKind::kWrite || kind == ObjectOpKind::kCopy ||
         kind == ObjectOpKind::kAllocate;
}

// "read of object 7.3 at 4096, 8192 bytes"
std::string Describe(ObjectOpKind kind, const wire::ObjectRequest& request) {
  std::string text =
      fmt::format("{} of object {}.{}", NameOf(kind), request.inode(), request.index());
  if (IsOnRange(kind)) {
    text += fmt::format(" at {}, {} bytes", request.offset(), request.length());
  } else if (kind == ObjectOpKind::kTruncate) {
    text += fmt::format(" to {} bytes", request.offset());
  }
  return text;
}

// Senders bring no proof of what they may use; but WeirFS's own classes are not for reads and
// writes from outside.
ClassId ChargedClass(ObjectOpKind kind, const wire::ObjectRequest& request) {
  const ClassId id(request.class_id());
  return IsOnRange(kind) && id < kFirstUserClass ? kBestEffort : id;
}

Status CheckRange(const wire::ObjectRequest& request) {
  const auto fits = [&request](uint64_t offset) {
    return offset <= kMaxObjectSize && request.length() <= kMaxObjectSize - offset;
  };
  if (fits(request.offset()) && fits(request.source_offset())) return {};
  return {ErrorCode::kInvalid,
          fmt::format("beyond the {} bytes that an object may have", kMaxObjectSize)};
}

// An older sender names one size or none.
bool ReadPattern(const wire::OsdProfileRequest& request, ProfilePattern* pattern) {
  if (request.has_write_percent()) pattern->write_percent = request.write_percent();
  if (request.size() > 0) pattern->sizes = {request.size()};
  if (!request.sizes().empty()) {
    pattern->sizes.assign(request.sizes().begin(), request.sizes().end());
  }
  pattern->sequential_percent = request.sequential_percent();
  if (request.has_depth()) pattern->depth = request.depth();
  return CheckProfilePattern(*pattern).ok();
}

Status CheckLength(const wire::ObjectRequest& request, const Buffer& payload) {
  if (payload.size() == request.length()) return {};
  return {ErrorCode::kBadMessage, fmt::format("came with a payload of {} bytes", payload.size())};
}

}  // namespace

class ObjectService::Op final : public ObjectOp {
 public:
  Op(ObjectService& service, std::shared_ptr<net::IncomingCall> call)
      : service_(service), session_(call->session()), call_(std::move(call)) {}
  void Done(ObjectOpResult result) override {
    service_.Answer(*this, std::move(result));
    call_.reset();
    data = {};
  }

  [[nodiscard]] FlowOwner Owner() const override { return OwnerOf(Source()); }
  // Whose it is, as its sender says.
  [[nodiscard]] FlowSource Source() const {
    FlowSource source{.session = session_,
                      .uid = request.flow().uid(),
                      .opener = request.flow().opener(),
                      .cgroup = CutCgroup(request.flow().cgroup())};
    const wire::Flow::Kind kind = request.flow().kind();
    if (wire::Flow::Kind_IsValid(kind)) source.kind = static_cast<FlowKind>(kind);
    return source;
  }
  void SetFlow() {
    const FlowSource source = Source();
    flow = KeyOf(source);
    counted_for = CountedKeyOf(source);
    transaction = TransactionOf(source.uid);
  }
  [[nodiscard]] net::IncomingCall& call() const { return *call_; }
  [[nodiscard]] uint64_t window_bytes() const {
    return kind == ObjectOpKind::kRead ? length : data.size();
  }
  wire::ObjectRequest request;
  TimePoint arrived;
  std::shared_ptr<Deletes> deletes;  // of a request for several inodes
  int place = 0;                     // among them

 private:
  ObjectService& service_;
  const uint64_t session_;
  std::shared_ptr<net::IncomingCall> call_;
};

// What is left of the inodes of one request, and how many of them are not done yet.
struct ObjectService::Deletes {
  int pending = 0;
  Status error;  // the first
  std::vector<uint64_t> next_indexes;
};

namespace {
std::vector<Scrubber::Disk> DisksOf(Dispatcher& first, ObjectStore& store,
                                    const std::vector<Scrubber::Disk>& further) {
  std::vector<Scrubber::Disk> disks = {{&first, &store}};
  disks.insert(disks.end(), further.begin(), further.end());
  return disks;
}
}  // namespace

ObjectService::ObjectService(Dispatcher& dispatcher, ObjectStore& store, Clock& clock,
                             const OsdIdentity& identity, Options options)
    : dispatcher_(dispatcher),
      store_(store),
      clock_(clock),
      identity_(identity),
      cluster_hash_(HashOf(identity)),
      options_(std::move(options)),
      windows_(options_.windows),
      fences_(options_.await_map),
      scrubber_(DisksOf(dispatcher, store, options_.further_disks), options_.report) {}

ObjectService::~ObjectService() {
  EndBackground();
}

void ObjectService::EndBackground() {
  scrubber_.End();
  if (profiler_.joinable()) profiler_.join();
}

void ObjectService::StopAccepting() {
  scrubber_.Stop();
  accepting_ = false;
}

void ObjectService::Handle(std::shared_ptr<net::IncomingCall> call) {
  if (!accepting_) {
    parked_.push_back(std::move(call));
    return;
  }
  switch (call->method()) {
    case wire::OSD_READ:
    case wire::OSD_WRITE:
    case wire::OSD_TRUNCATE:
    case wire::OSD_DELETE_INODE:
    case wire::OSD_STAT_OBJECT:
    case wire::OSD_PUNCH:
    case wire::OSD_COPY:
    case wire::OSD_EXTENTS:
    case wire::OSD_ALLOCATE:
    case wire::OSD_GIVE_BACK:
      HandleObject(std::move(call));
      return;
    case wire::OSD_STATS:
      HandleStats(*call);
      return;
    case wire::OSD_PROFILE:
      HandleProfile(std::move(call));
      return;
    case wire::OSD_SCRUB:
      scrubber_.Handle(*call, identity_.osd_id);
      return;
    default:
      call->Respond({ErrorCode::kNotSupported,
                     fmt::format("osd.{} has no method {}: is the sender newer than this OSD?",
                                 identity_.osd_id, call->method())});
  }
}

Status ObjectService::CheckRequest(const wire::ObjectRequest& request,
                                   const net::IncomingCall& call) const {
  if (request.cluster() != cluster_hash_) {
    return {ErrorCode::kWrongCluster,
            fmt::format("the request is for another cluster, this OSD serves {}",
                        identity_.cluster_uuid)};
  }
  const ObjectOpKind kind = KindOf(call.method());
  if (kind != ObjectOpKind::kDeleteInode) WEIR_RETURN_IF_ERROR(CheckRange(request));
  if (request.capability().size() > kCapabilityMax) {
    return {ErrorCode::kInvalid, "a capability of more than 256 bytes"};
  }
  if (request.append() && kind != ObjectOpKind::kWrite) {
    return {ErrorCode::kInvalid, "only a write can append"};
  }
  if (request.more_inodes_size() > kMoreInodesMax) return {ErrorCode::kInvalid, "too many inodes"};
  if (kind == ObjectOpKind::kWrite) return CheckLength(request, call.payload());
  if (!call.payload().empty()) return {ErrorCode::kBadMessage, "takes no payload"};
  return {};
}

void ObjectService::HandleObject(std::shared_ptr<net::IncomingCall> call) {
  auto op = std::make_unique<Op>(*this, call);
  wire::ObjectRequest& request = op->request;
  op->kind = KindOf(call->method());
  if (!request.ParseFromString(call->body())) {
    call->Respond({ErrorCode::kBadMessage, fmt::format("osd.{}: {} request does not parse",
                                                       identity_.osd_id, NameOf(op->kind))});
    return;
  }
  Status status = CheckRequest(request, *call);
  if (status.ok() && RefuseStaleChain(*op)) return;
  if (op->kind == ObjectOpKind::kDeleteInode && status.ok() && request.more_inodes_size() > 0) {
    return HandleDeletes(call, request);
  }
  op->object = {InodeId(request.inode()), request.index()};
  op->offset = request.offset();
  op->length = IsOnRange(op->kind) && op->kind != ObjectOpKind::kWrite ? request.length() : 0;
  if (op->kind == ObjectOpKind::kDeleteInode) {
    op->length = std::min(request.objects_max(), kObjectsAtOnce);
  }
  op->source = {{InodeId(request.source_inode()), request.source_index()}, request.source_offset()};
  op->want_next = request.want_next();
  op->zeros = request.zeros();
  if (Changes(op->kind) && op->kind != ObjectOpKind::kDeleteInode) op->terms = TermsOf(request);
  op->SetFlow();
  op->lane = HintOf(request);
  if (op->kind == ObjectOpKind::kWrite) {
    op->data = call->payload();
    op->data_crc = request.payload_crc();
  }
  op->class_id = ChargedClass(op->kind, request);
  op->elsewhere = DelayHere(request);
  op->waited = std::chrono::microseconds(request.waited_us());
  Begin(std::move(op), std::move(status));
}

// A newer chain than ours is served: the map that has it is under way.
bool ObjectService::RefuseStaleChain(Op& op) const {
  const wire::ObjectRequest& request = op.request;
  if (request.chain_version() == 0 || !request.has_slot()) return false;
  const wire::Chain* newer =
      chains_.NewerThan({request.pool(), request.slot()}, request.chain_version());
  if (newer == nullptr) return false;
  wire::ObjectReply reply;
  *reply.mutable_newer_chain() = *newer;
  const Status stale{ErrorCode::kStaleEpoch,
                     fmt::format("osd.{}: {}: slot {} of pool {} has chain {} since, not {}",
                                 identity_.osd_id, Describe(op.kind, request), request.slot(),
                                 request.pool(), newer->version(), request.chain_version())};
  op.call().Respond(stale, reply.SerializeAsString(), {});
  return true;
}

// Each is an operation of its own, which takes its turn; the last one answers for all.
void ObjectService::HandleDeletes(const std::shared_ptr<net::IncomingCall>& call,
                                  const wire::ObjectRequest& request) {
  auto deletes = std::make_shared<Deletes>();
  deletes->pending = 1 + request.more_inodes_size();
  deletes->next_indexes.resize(deletes->pending);
  for (int i = 0; i <= request.more_inodes_size(); ++i) {
    auto op = std::make_unique<Op>(*this, call);
    op->kind = ObjectOpKind::kDeleteInode;
    op->deletes = deletes;
    op->place = i;
    op->request.set_inode(i == 0 ? request.inode() : request.more_inodes(i - 1));
    op->request.set_index(request.index());
    op->request.set_epoch(request.epoch());
    op->object = {InodeId(op->request.inode()), request.index()};
    op->length = std::min(request.objects_max(), kObjectsAtOnce);
    op->class_id = ChargedClass(op->kind, request);
    op->elsewhere = DelayHere(request);
    Begin(std::move(op), Status::Ok());
  }
}

void ObjectService::Join(const Op& op, const Status& status, uint64_t next_index) {
  Deletes& deletes = *op.deletes;
  deletes.next_indexes[op.place] = next_index;
  if (deletes.error.ok()) deletes.error = status;
  if (--deletes.pending > 0) return;
  if (!deletes.error.ok()) return op.call().Respond(deletes.error);
  wire::ObjectReply reply;
  reply.set_next_index(deletes.next_indexes.front());
  for (const uint64_t next : deletes.next_indexes) reply.add_next_indexes(next);
  op.call().Respond(reply.SerializeAsString());
}

void ObjectService::Begin(std::unique_ptr<Op> op, Status status) {
  net::IncomingCall& call = op->call();
  op->arrived = clock_.Now();
  if (status.ok()) {
    status = windows_.Admit(call.session(), op->class_id, op->window_bytes(), op->arrived);
    if (status.ok() && Changes(op->kind)) {
      status = fences_.Begin(call.session(), op->request.epoch());
      if (!status.ok()) {
        windows_.Release(call.session(), op->class_id, op->window_bytes(), op->arrived);
      }
    }
  }
  if (!status.ok()) {
    status = status.Annotate(
        fmt::format("osd.{}: {}", identity_.osd_id, Describe(op->kind, op->request)));
    return op->deletes != nullptr ? Join(*op, status, 0) : call.Respond(status);
  }
  if (options_.submit) {
    const TierName tier = TierName::FromWire(op->request.tier());
    options_.submit(std::move(op), tier);
  } else {
    dispatcher_.Submit(std::move(op));
  }
}

void ObjectService::ReportFailure(const Status& status) {
  if (status.code() != ErrorCode::kIo && status.code() != ErrorCode::kCorrupt) return;
  ++io_errors_;
  if (options_.report) options_.report(status.message());
}

void ObjectService::Answer(Op& op, ObjectOpResult result) {
  net::IncomingCall& call = op.call();
  const TimePoint now = clock_.Now();
  const uint64_t window =
      windows_.Release(call.session(), op.class_id, op.window_bytes(), now, op.kept_short());
  if (Changes(op.kind)) fences_.End(call.session(), op.request.epoch());
  if (!result.status.ok()) {
    const Status named = result.status.Annotate(
        fmt::format("osd.{}: {}", identity_.osd_id, Describe(op.kind, op.request)));
    ReportFailure(named);
    return op.deletes != nullptr ? Join(op, named, 0) : call.Respond(named);
  }
  if (op.deletes != nullptr) return Join(op, result.status, result.next_index);
  wire::ObjectReply reply;
  reply.set_object_size(result.info.size);
  if (SaysVersion(op.kind)) {
    reply.mutable_object_version()->set_chain(result.info.version.chain);
    reply.mutable_object_version()->set_sequence(result.info.version.sequence);
  }
  if (result.info.append_offset.has_value()) reply.set_append_offset(*result.info.append_offset);
  reply.set_window_bytes(window);
  reply.set_server_us(static_cast<uint64_t>((now - op.arrived) / std::chrono::microseconds(1)));
  reply.set_limit_us(static_cast<uint64_t>(op.held_by_limit() / std::chrono::microseconds(1)));
  reply.set_next_index(result.next_index);
  reply.set_freed_bytes(result.info.freed_bytes);
  if (GivesSpace(op.kind)) {
    reply.set_grown_bytes(result.info.grown_bytes);
    reply.set_free_bytes(options_.free_bytes
                             ? options_.free_bytes(TierName::FromWire(op.request.tier()))
                             : store_.Stats().free_bytes());
  }
  if (op.kind == ObjectOpKind::kAllocate) {
    reply.set_used_bytes(options_.used_bytes ? options_.used_bytes() : store_.Stats().used_bytes);
    result.extents = std::move(result.info.kept);
  }
  for (const ByteRange& range : result.extents) {
    reply.add_extents(range.offset);
    reply.add_extents(range.length);
  }
  if (result.next_object != UINT64_MAX) reply.set_next_object(result.next_object);
  if (!result.data.empty()) {
    reply.set_payload_crc(result.data_crc.has_value()
                              ? *result.data_crc
                              : Crc32c(result.data.data(), result.data.size()));
  }
  call.Respond(Status::Ok(), reply.SerializeAsString(), std::move(result.data));
}

void ObjectService::HandleProfile(std::shared_ptr<net::IncomingCall> call) {
  if (!options_.profile) {
    call->Respond({ErrorCode::kNotSupported,
                   fmt::format("osd.{} was started without access to its disk for profiling",
                               identity_.osd_id)});
    return;
  }
  wire::OsdProfileRequest request;
  ProfilePattern pattern;
  if (!request.ParseFromString(call->body()) || !ReadPattern(request, &pattern)) {
    call->Respond({ErrorCode::kBadMessage,
                   fmt::format("osd.{}: profile request does not parse", identity_.osd_id)});
    return;
  }
  if (profiling_.exchange(true)) {
    call->Respond({ErrorCode::kBusy,
                   fmt::format("osd.{} is being profiled already: ask again in a few seconds",
                               identity_.osd_id)});
    return;
  }
  if (profiler_.joinable()) profiler_.join();  // it has cleared profiling_ and is all but gone
  profiler_ = std::thread([this, pattern, call = std::move(call)] {
    const Result<DiskProfile> profile = options_.profile(pattern);
    profiling_ = false;
    if (profile.ok()) alone_p99_ = profile->alone_p99;
    if (!profile.ok()) {
      call->Respond(profile.status().Annotate(fmt::format("osd.{}: profile", identity_.osd_id)));
      return;
    }
    wire::OsdProfileReply reply;
    reply.set_proposed_token_rate(profile->proposed_bytes_per_s);
    reply.set_mean_bytes_per_s(profile->mean_bytes_per_s);
    call->Respond(reply.SerializeAsString());
  });
}

}  // namespace weir::osd
