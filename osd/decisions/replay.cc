#include "osd/decisions/replay.h"

#include <fmt/format.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/util/delimited_message_util.h>

#include <cerrno>
#include <fstream>
#include <memory>
#include <system_error>
#include <tuple>
#include <unordered_map>

#include "common/placement/cluster_map.h"
#include "common/wire/decisions.pb.h"
#include "osd/decisions/decision_log.h"
#include "osd/qos/scheduler.h"

namespace weir::osd {
namespace {

using Kind = qos::Decision::Kind;

struct Numbered : qos::Request {
  uint64_t number = 0;
};

class Replayer {
 public:
  Status Do(const wire::Decision& record);
  Replayed result;

 private:
  Status DoRequest(const wire::Decision& record, TimePoint now);
  Status Start(const wire::Decision& record, TimePoint now);
  Status SetClass(const wire::Decision& record, TimePoint now);
  Status Enqueue(const wire::Decision& record, TimePoint now);
  void Pull(const wire::Decision& record, TimePoint now);

  std::unordered_map<uint64_t, std::unique_ptr<Numbered>> requests_;
  std::unique_ptr<qos::Scheduler> scheduler_;  // goes before what it may still hold
  TimePoint latest_;
};

Status Bad(std::string_view what) {
  return {ErrorCode::kBadMessage, std::string(what)};
}

Status Replayer::Start(const wire::Decision& record, TimePoint now) {
  WEIR_ASSIGN_OR_RETURN(const SchedulerConfig config, FromWire(record.config()));
  result.profile = config.profile;
  if (static_cast<Kind>(record.kind()) == Kind::kConfigure) {
    scheduler_->Configure(config, now);
    return Status::Ok();
  }
  if (scheduler_ != nullptr) return Bad("a second start");
  scheduler_ = std::make_unique<qos::Scheduler>(config, now);
  return Status::Ok();
}

Status Replayer::SetClass(const wire::Decision& record, TimePoint now) {
  WEIR_ASSIGN_OR_RETURN(ClassEntry entry, FromWire(record.class_info()));
  if (record.has_reservation_ends_ns()) {
    entry.spec.reservation_ends = TimePoint{record.reservation_ends_ns()};
  }
  scheduler_->SetClass(entry.spec, now);
  return Status::Ok();
}

Status Replayer::Enqueue(const wire::Decision& record, TimePoint now) {
  if (record.op() > static_cast<uint32_t>(qos::OpKind::kOther)) return Bad("an unknown operation");
  if (record.request() != result.requests + 1) return Bad("a request out of its order");
  auto request = std::make_unique<Numbered>();
  request->number = ++result.requests;
  request->class_id = ClassId(record.class_id());
  request->op = static_cast<qos::OpKind>(record.op());
  request->bytes = record.bytes();
  request->lba = record.lba();
  request->elsewhere = record.elsewhere();
  request->transaction = record.transaction();
  scheduler_->Enqueue(request.get(), now);
  requests_[request->number] = std::move(request);
  return Status::Ok();
}

void Replayer::Pull(const wire::Decision& record, TimePoint now) {
  const auto* pulled = static_cast<const Numbered*>(scheduler_->Pull(now).request);
  const uint64_t chosen = pulled == nullptr ? 0 : pulled->number;
  if (chosen != record.request()) {
    result.difference = {result.decisions, now, record.request(), chosen};
  } else if (chosen != 0) {
    ++result.pulled;
  }
}

// What was said of a request that had arrived.
Status Replayer::DoRequest(const wire::Decision& record, TimePoint now) {
  const auto found = requests_.find(record.request());
  if (found == requests_.end()) return Bad("a request that is not there");
  Numbered* request = found->second.get();
  const auto kind = static_cast<Kind>(record.kind());
  if (kind == Kind::kCancel) {
    if (scheduler_->Cancel(request, now)) requests_.erase(found);
    return Status::Ok();
  }
  if (request->stage != qos::Request::Stage::kDevice) return Bad("a request that was not pulled");
  if (kind == Kind::kLanded) {
    if (request->landed) return Bad("a request that landed before");
    scheduler_->Landed(request, now);
    return Status::Ok();
  }
  scheduler_->Completed(request, now);
  requests_.erase(found);
  return Status::Ok();
}

Status Replayer::Do(const wire::Decision& record) {
  ++result.decisions;
  const TimePoint now{record.now_ns()};
  const auto kind = static_cast<Kind>(record.kind());
  const bool timed = kind != Kind::kSetBooked && kind != Kind::kDoneOutside;
  if (timed && now < latest_) return Bad("a time before that of the last");
  if (timed) latest_ = now;
  if (scheduler_ == nullptr && kind != Kind::kStart) return Bad("no start");
  switch (kind) {
    case Kind::kStart:
    case Kind::kConfigure:
      return Start(record, now);
    case Kind::kSetClass:
      return SetClass(record, now);
    case Kind::kRemoveClass:
      scheduler_->RemoveClass(ClassId(record.class_id()), now);
      return Status::Ok();
    case Kind::kEnqueue:
      return Enqueue(record, now);
    case Kind::kPull:
      Pull(record, now);
      return Status::Ok();
    case Kind::kLanded:
    case Kind::kCompleted:
    case Kind::kCancel:
      return DoRequest(record, now);
    case Kind::kTick:
      scheduler_->Tick(now);
      return Status::Ok();
    case Kind::kCounters:
      std::ignore = scheduler_->Counters(now);
      return Status::Ok();
    case Kind::kHasFreeSlot:
      std::ignore = scheduler_->HasFreeSlot(now);
      return Status::Ok();
    case Kind::kSetBooked:
      scheduler_->SetBooked(record.amount());
      return Status::Ok();
    case Kind::kDoneOutside:
      scheduler_->DoneOutside(record.amount());
      return Status::Ok();
    case Kind::kProcessorsWaited:
      scheduler_->ProcessorsWaited(Duration(static_cast<int64_t>(record.amount())), now);
      return Status::Ok();
  }
  return Bad("an unknown kind of record");
}

}  // namespace

Result<Replayed> ReplayDecisions(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return {ErrorCode::kNotFound,
            fmt::format("cannot read '{}': {}", path, std::generic_category().message(errno))};
  }
  std::string head(kDecisionLogHead.size(), '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  if (head != kDecisionLogHead) {
    return {ErrorCode::kBadMessage,
            fmt::format("'{}' is no decision log (weir-osd --decision-log FILE makes one)", path)};
  }
  google::protobuf::io::IstreamInputStream stream(&file);
  Replayer replayer;
  wire::Decision record;
  bool ended = false;
  while (!replayer.result.difference) {
    record.Clear();
    if (!google::protobuf::util::ParseDelimitedFromZeroCopyStream(&record, &stream, &ended)) break;
    if (Status status = replayer.Do(record); !status.ok()) {
      return {status.code(), fmt::format("'{}', record {}: {}", path, replayer.result.decisions,
                                         status.message())};
    }
  }
  replayer.result.cut_off = !replayer.result.difference && !ended;
  return std::move(replayer.result);
}

}  // namespace weir::osd
