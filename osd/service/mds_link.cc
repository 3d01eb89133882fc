#include "osd/service/mds_link.h"

#include <fmt/format.h>

#include <cmath>

#include "common/placement/times_wire.h"
#include "common/wire/mds.pb.h"

namespace weir::osd {
namespace {

// The MDS has understood and says no: asking again changes nothing.
bool IsRefusal(ErrorCode code) {
  switch (code) {
    case ErrorCode::kWrongCluster:
    case ErrorCode::kInvalid:
    case ErrorCode::kNotFound:
    case ErrorCode::kExists:
    case ErrorCode::kPermission:
    case ErrorCode::kRefused:
      return true;
    default:
      return false;
  }
}

void ToWire(const qos::ServiceReport& report, wire::ServiceMeasures* message) {
  message->set_stable(report.stable);
  for (const double part : report.service_parts) {
    message->add_service_parts(static_cast<uint32_t>(std::lround(part * 100)));
  }
  for (const double rate : report.io_rates) {
    message->add_io_rates(static_cast<uint64_t>(std::ceil(rate)));
  }
  for (const ClassId id : report.measured) message->add_measured(id.value);
}

}  // namespace

MdsLink::MdsLink(Clock& clock, Loop& loop, Options options, Hooks hooks,
                 std::unique_ptr<net::RpcClient> mds)
    : clock_(clock),
      loop_(loop),
      options_(std::move(options)),
      hooks_(std::move(hooks)),
      mds_(std::move(mds)) {}

MdsLink::~MdsLink() {
  Stop();
  loop_.CancelTimer(retry_);
}

void MdsLink::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  mds_.reset();  // outstanding calls come back cancelled
}

bool MdsLink::stopping() const {
  std::lock_guard lock(mutex_);
  return stopping_;
}

bool MdsLink::registered() const {
  std::lock_guard lock(mutex_);
  return registered_;
}

Epoch MdsLink::epoch() const {
  std::lock_guard lock(mutex_);
  return epoch_;
}

Status MdsLink::WaitRegistered() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return registered_ || refused_ || stopping_; });
  if (refused_) return *refused_;
  if (!registered_) return {ErrorCode::kCancelled, "stopped before the MDS answered"};
  return {};
}

void MdsLink::Start() {
  Register();
}

void MdsLink::Call(uint32_t method, const std::string& body, const net::CallOptions& options,
                   OnReply on_reply) {
  mds_->Call(method, body, {}, options,
             [this, on_reply, alive = std::weak_ptr(alive_)](Result<net::Reply> reply) {
               auto owned = std::make_shared<Result<net::Reply>>(std::move(reply));
               RunInLoop(loop_, [this, on_reply, alive, owned] {
                 if (!alive.expired() && !stopping()) (this->*on_reply)(*owned);
               });
             });
}

void MdsLink::Register() {
  wire::RegisterOsdRequest request;
  request.set_cluster_uuid(options_.identity.cluster_uuid);
  request.set_osd_uuid(options_.identity.osd_uuid);
  request.set_osd_id(options_.identity.osd_id);
  request.set_endpoint(options_.endpoint);
  request.set_capacity_bytes(hooks_.store_stats().capacity_bytes);
  request.set_token_rate(options_.identity.token_rate);
  request.set_life(options_.identity.life);
  for (const Options::Tier& tier : options_.tiers) {
    wire::TierInfo* info = request.add_tiers();
    info->set_name(tier.name);
    info->set_capacity_bytes(tier.capacity_bytes);
  }
  Call(wire::MDS_REGISTER_OSD, request.SerializeAsString(), {}, &MdsLink::OnRegistered);
}

void MdsLink::OnRegistered(const Result<net::Reply>& reply) {
  if (!reply.ok()) {
    if (IsRefusal(reply.code()) && !registered()) {
      Refuse(reply.status());
    } else {
      RetryLater(Next::kRegister, reply.status());
    }
    return;
  }
  wire::RegisterOsdReply answer;
  if (!answer.ParseFromString(reply->body)) {
    RetryLater(Next::kRegister, {ErrorCode::kBadMessage, "the answer does not parse"});
    return;
  }
  if (answer.cluster_uuid() != options_.identity.cluster_uuid ||
      answer.osd_id() != options_.identity.osd_id) {
    Refuse({ErrorCode::kWrongCluster,
            fmt::format("this disk is osd.{} of cluster {}, the MDS serves cluster {} and calls it "
                        "osd.{}",
                        options_.identity.osd_id, options_.identity.cluster_uuid,
                        answer.cluster_uuid(), answer.osd_id())});
    return;
  }
  const Status applied = answer.has_map() ? Apply(answer.map()) : Status::Ok();
  if (!applied.ok()) {
    RetryLater(Next::kRegister, applied);
    return;
  }
  bool first = false;
  {
    std::lock_guard lock(mutex_);
    first = !registered_;
    registered_ = true;
    last_problem_.clear();
  }
  changed_.notify_all();
  if (first && hooks_.registered) hooks_.registered({});
  Watch();
}

void MdsLink::Watch() {
  wire::WatchRequest request;
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    request.set_have_epoch(epoch_.value);
    request.set_have_tag_epoch(tag_epoch_);
  }
  const auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(options_.watch_wait);
  request.set_wait_ms(static_cast<uint32_t>(wait.count()));
  request.set_osd_id(options_.identity.osd_id);
  request.set_used_bytes(hooks_.store_stats().used_bytes);
  if (hooks_.measures) ToWire(hooks_.measures(), request.mutable_measures());
  if (hooks_.times) AddTimes(&request);
  if (hooks_.fenced) request.set_fence_epoch(hooks_.fenced().value);
  Call(wire::MDS_WATCH, request.SerializeAsString(),
       {.timeout = options_.watch_wait + std::chrono::seconds(5), .idempotent = true},
       &MdsLink::OnWatched);
}

void MdsLink::AddTimes(wire::WatchRequest* request) {
  const std::map<ClassId, OsdClassTimes> all = hooks_.times();
  const TimePoint now = clock_.Now();
  std::lock_guard lock(mutex_);
  for (const auto& [id, times] : all) {
    if (fresh_.IsFresh(id, times.active_ns + times.bytes, now)) {
      weir::ToWire(id, times, request->add_osd_times());
    }
  }
}

void MdsLink::OnWatched(const Result<net::Reply>& reply) {
  if (!reply.ok()) {
    RetryLater(Next::kWatch, reply.status());
    return;
  }
  wire::WatchReply answer;
  if (!answer.ParseFromString(reply->body)) {
    RetryLater(Next::kWatch, {ErrorCode::kBadMessage, "the answer does not parse"});
    return;
  }
  if (answer.unknown_session()) {  // the MDS has started anew
    Register();
    return;
  }
  const Status applied = answer.has_map() ? Apply(answer.map()) : Status::Ok();
  if (!applied.ok()) {
    RetryLater(Next::kWatch, applied);
    return;
  }
  {
    std::lock_guard lock(mutex_);
    tag_epoch_ = answer.tag_epoch();
    last_problem_.clear();
  }
  Watch();
}

Status MdsLink::Apply(const wire::ClusterMap& message) {
  const Result<ClusterMap> map = FromWire(message);
  if (!map.ok()) return map.status().Annotate("map from the MDS");
  if (hooks_.came) hooks_.came(message);
  hooks_.apply(*map);
  std::lock_guard lock(mutex_);
  epoch_ = map->epoch;
  tag_epoch_ = map->tag_epoch;
  return {};
}

void MdsLink::Refuse(const Status& status) {
  {
    std::lock_guard lock(mutex_);
    refused_ = status;
  }
  changed_.notify_all();
  if (hooks_.registered) hooks_.registered(status);
}

void MdsLink::RetryLater(Next next, const Status& why) {
  bool fresh = false;
  {
    std::lock_guard lock(mutex_);
    fresh = last_problem_ != why.message();
    last_problem_ = why.message();
  }
  if (fresh) {
    hooks_.report(why.Annotate(next == Next::kRegister ? "cannot register with the MDS, trying on"
                                                       : "cannot watch the MDS, trying on")
                      .message());
  }
  retry_ = loop_.RunAt(clock_.Now() + options_.retry_after, [this, next] {
    if (stopping()) return;
    next == Next::kRegister ? Register() : Watch();
  });
}

}  // namespace weir::osd
