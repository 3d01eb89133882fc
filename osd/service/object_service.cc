#include "osd/service/object_service.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/crc32c.h"
#include "common/net/rpc.h"
#include "common/placement/cluster_map.h"
#include "common/placement/times_wire.h"
#include "common/wire/osd.pb.h"

namespace weir::osd {
namespace {

// Far above any real delay, far below what would overflow a sum of tokens.
constexpr uint64_t kLargestElsewhere = uint64_t{1} << 40;

// Of a delete in steps: what is charged as one request should not be large.
constexpr uint32_t kObjectsAtOnce = 256;

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
         kind == ObjectOpKind::kExtents;
}

bool Changes(ObjectOpKind kind) {
  return kind != ObjectOpKind::kRead && kind != ObjectOpKind::kExtents &&
         kind != ObjectOpKind::kStat;
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

// Of a megabyte it takes longer than all else that the thread which hears requests does with it.
Status CheckPayload(const wire::ObjectRequest& request, const Buffer& payload) {
  if (Crc32c(payload.data(), payload.size()) != request.payload_crc()) {
    return {ErrorCode::kBadMessage, "payload was damaged on its way (crc32c): send it again"};
  }
  return {};
}

}  // namespace

class ObjectService::Op final : public ObjectOp {
 public:
  Op(ObjectService& service, std::shared_ptr<net::IncomingCall> call)
      : service_(service), call_(std::move(call)) {}
  void Done(ObjectOpResult result) override { service_.Answer(*this, std::move(result)); }
  Status Check() override { return CheckPayload(request, data); }

  [[nodiscard]] net::IncomingCall& call() const { return *call_; }
  [[nodiscard]] uint64_t window_bytes() const {
    return kind == ObjectOpKind::kRead ? length : data.size();
  }
  wire::ObjectRequest request;
  TimePoint arrived;

 private:
  ObjectService& service_;
  std::shared_ptr<net::IncomingCall> call_;
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
  std::lock_guard lock(mutex_);
  accepting_ = false;
}

void ObjectService::Handle(std::shared_ptr<net::IncomingCall> call) {
  {
    std::lock_guard lock(mutex_);
    if (!accepting_) {
      parked_.push_back(std::move(call));
      return;
    }
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
  op->object = {InodeId(request.inode()), request.index()};
  op->offset = request.offset();
  op->length = IsOnRange(op->kind) && op->kind != ObjectOpKind::kWrite ? request.length() : 0;
  if (op->kind == ObjectOpKind::kDeleteInode) {
    op->length = std::min(request.objects_max(), kObjectsAtOnce);
  }
  op->source = {{InodeId(request.source_inode()), request.source_index()}, request.source_offset()};
  op->want_next = request.want_next();
  if (op->kind == ObjectOpKind::kWrite) op->data = call->payload();
  op->class_id = ChargedClass(op->kind, request);
  op->elsewhere = static_cast<int64_t>(std::min(request.elsewhere(), kLargestElsewhere));
  op->arrived = clock_.Now();
  if (status.ok()) {
    status = windows_.Admit(call->session(), op->class_id, op->window_bytes(), op->arrived);
    if (status.ok() && Changes(op->kind)) {
      status = fences_.Begin(call->session(), request.epoch());
      if (!status.ok()) {
        windows_.Release(call->session(), op->class_id, op->window_bytes(), op->arrived);
      }
    }
  }
  if (!status.ok()) {
    call->Respond(
        status.Annotate(fmt::format("osd.{}: {}", identity_.osd_id, Describe(op->kind, request))));
    return;
  }
  if (options_.submit) {
    const TierName tier = TierName::FromWire(request.tier());
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
  const net::LendThread lend;  // the Dispatcher answers without a lock
  net::IncomingCall& call = op.call();
  const TimePoint now = clock_.Now();
  const uint64_t window = windows_.Release(call.session(), op.class_id, op.window_bytes(), now);
  if (Changes(op.kind)) fences_.End(call.session(), op.request.epoch());
  if (!result.status.ok()) {
    const Status named = result.status.Annotate(
        fmt::format("osd.{}: {}", identity_.osd_id, Describe(op.kind, op.request)));
    ReportFailure(named);
    call.Respond(named);
    return;
  }
  wire::ObjectReply reply;
  reply.set_object_size(result.info.size);
  reply.set_version(result.info.version);
  reply.set_window_bytes(window);
  reply.set_server_us(static_cast<uint64_t>((now - op.arrived) / std::chrono::microseconds(1)));
  reply.set_next_index(result.next_index);
  reply.set_freed_bytes(result.info.freed_bytes);
  for (const ByteRange& range : result.extents) {
    reply.add_extents(range.offset);
    reply.add_extents(range.length);
  }
  if (result.next_object != UINT64_MAX) reply.set_next_object(result.next_object);
  if (!result.data.empty()) {
    reply.set_payload_crc(Crc32c(result.data.data(), result.data.size()));
  }
  call.Respond(Status::Ok(), reply.SerializeAsString(), std::move(result.data));
}

void FillClassStats(const DispatcherClassStats& one, wire::ClassStats* row) {
  wire::ClassStats& out = *row;
  out.set_class_id(one.counters.id.value);
  out.set_served_bytes(one.counters.served_bytes);
  out.set_served_ops(one.counters.served_ops);
  out.set_queued_ops(one.counters.queued_ops);
  out.set_guaranteed_bytes(one.counters.guaranteed_bytes);
  out.set_surplus_bytes(one.counters.surplus_bytes);
  out.set_arrived_bytes(one.counters.arrived_bytes);
  out.set_deadline_misses(one.counters.deadline_misses);
  out.set_violation_seconds(one.counters.violation_seconds);
  out.mutable_latency()->set_p50_us(one.p50_us);
  out.mutable_latency()->set_p90_us(one.p90_us);
  out.mutable_latency()->set_p99_us(one.p99_us);
  out.mutable_latency()->set_p999_us(one.p999_us);
  out.set_outside_bytes(one.outside_bytes);
  out.mutable_recent_latency()->set_p50_us(one.recent.p50_us);
  out.mutable_recent_latency()->set_p90_us(one.recent.p90_us);
  out.mutable_recent_latency()->set_p99_us(one.recent.p99_us);
  out.mutable_recent_latency()->set_p999_us(one.recent.p999_us);
  ToWire(one.counters.id, one.counters.times, out.mutable_times());
  for (const LatencyHistogram::Filled& bucket : one.latencies) {
    out.add_latency_ends_us(bucket.largest);
    out.add_latency_counts(bucket.count);
  }
  out.set_latency_sum_us(one.latency_sum_us);
  out.set_name(one.name);
}

void ObjectService::HandleStats(net::IncomingCall& call) {
  wire::OsdStatsRequest request;
  if (!request.ParseFromString(call.body())) {
    call.Respond({ErrorCode::kBadMessage,
                  fmt::format("osd.{}: stats request does not parse", identity_.osd_id)});
    return;
  }
  const DispatcherStats stats = dispatcher_.Stats(request.reset());
  const StoreStats store = store_.Stats();
  wire::OsdStatsReply reply;
  reply.set_osd_id(identity_.osd_id);
  reply.set_token_rate(stats.token_rate);
  reply.set_base_token_rate(stats.base_token_rate);
  reply.set_device_bytes_per_s(stats.device_bytes_per_s);
  reply.set_window_s(ToSeconds(stats.window));
  reply.set_capacity_bytes(store.capacity_bytes);
  reply.set_used_bytes(store.used_bytes);
  reply.set_objects(store.objects);
  reply.set_checksum_errors(store.checksum_errors);
  reply.set_commits(store.commits);
  reply.set_committed_ops(store.committed_ops);
  reply.set_epoch(epoch_);
  reply.set_background_bytes(store.background_bytes);
  reply.set_unmetered_bytes(store.unmetered_bytes + stats.bypassed_bytes);
  if (options_.background_floor) reply.set_background_floor(options_.background_floor());
  reply.mutable_disk()->set_bytes_per_s(stats.disk.bytes_per_s);
  reply.mutable_disk()->set_give_or_take(stats.disk.give_or_take);
  reply.mutable_disk()->set_samples(stats.disk.samples);
  reply.mutable_disk()->set_slow(stats.disk.slow);
  reply.mutable_disk()->set_alarms(stats.disk.alarms);
  for (const DispatcherClassStats& one : stats.classes) {
    FillClassStats(one, reply.add_classes());
  }
  if (options_.add_stats) options_.add_stats(stats, request.reset(), &reply);
  call.Respond(reply.SerializeAsString());
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
  std::unique_lock lock(mutex_);
  if (profiling_) {
    lock.unlock();
    call->Respond({ErrorCode::kBusy,
                   fmt::format("osd.{} is being profiled already: ask again in a few seconds",
                               identity_.osd_id)});
    return;
  }
  profiling_ = true;
  if (profiler_.joinable()) profiler_.join();  // it has cleared profiling_ and is all but gone
  profiler_ = std::thread([this, pattern, call = std::move(call)] {
    const Result<DiskProfile> profile = options_.profile(pattern);
    {
      std::lock_guard done(mutex_);
      profiling_ = false;
    }
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
