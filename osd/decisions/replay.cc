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
#include "osd/decisions/recording.h"

namespace weir::osd {
namespace {

using Kind = Event::Kind;

struct Numbered : qos::Request {
  uint64_t number = 0;
};

Status Bad(std::string_view what) {
  return {ErrorCode::kBadMessage, std::string(what)};
}

class Replayer {
 public:
  explicit Replayer(qos::DecisionRecorder* recorder) : recorder_(recorder) {}
  // Requires: no difference was found yet.
  Status Do(const Event& event);
  Replayed result;

 private:
  Status DoRequest(const Event& event);
  Status Start(const Event& event);
  Status Enqueue(const Event& event);
  void Pull(const Event& event);

  qos::DecisionRecorder* const recorder_;
  std::unordered_map<uint64_t, std::unique_ptr<Numbered>> requests_;
  std::unique_ptr<qos::Scheduler> scheduler_;  // goes before what it may still hold
  TimePoint latest_;
};

Status Replayer::Start(const Event& event) {
  if (scheduler_ != nullptr) return Bad("a second start");
  scheduler_ = std::make_unique<qos::Scheduler>(*event.config, event.now, recorder_);
  return Status::Ok();
}

Status Replayer::Enqueue(const Event& event) {
  if (event.request != result.requests + 1) return Bad("a request out of its order");
  auto request = std::make_unique<Numbered>();
  request->number = ++result.requests;
  request->class_id = event.class_id;
  request->op = event.op;
  request->bytes = event.bytes;
  request->lba = event.lba;
  request->elsewhere = event.elsewhere;
  request->transaction = event.transaction;
  request->flow = event.flow;
  scheduler_->Enqueue(request.get(), event.now);
  requests_[request->number] = std::move(request);
  return Status::Ok();
}

void Replayer::Pull(const Event& event) {
  const auto* pulled = static_cast<const Numbered*>(scheduler_->Pull(event.now).request);
  const uint64_t chosen = pulled == nullptr ? 0 : pulled->number;
  if (chosen != event.request) {
    result.difference = {result.decisions, event.now, event.request, chosen};
  } else if (chosen != 0) {
    ++result.pulled;
  }
}

// What was said of a request that had arrived.
Status Replayer::DoRequest(const Event& event) {
  const auto found = requests_.find(event.request);
  if (found == requests_.end()) return Bad("a request that is not there");
  Numbered* request = found->second.get();
  if (event.kind == Kind::kCancel) {
    if (scheduler_->Cancel(request, event.now)) requests_.erase(found);
    return Status::Ok();
  }
  if (request->stage != qos::Request::Stage::kDevice) return Bad("a request that was not pulled");
  if (event.kind == Kind::kLanded) {
    if (request->landed) return Bad("a request that landed before");
    scheduler_->Landed(request, event.now);
    return Status::Ok();
  }
  scheduler_->Completed(request, event.now);
  requests_.erase(found);
  return Status::Ok();
}

Status Replayer::Do(const Event& event) {
  ++result.decisions;
  if (event.timed() && event.now < latest_) {
    return Bad("a time before that of the last, of kind " +
               std::to_string(static_cast<int>(event.kind)));
  }
  if (event.timed()) latest_ = event.now;
  if (scheduler_ == nullptr && event.kind != Kind::kStart) return Bad("no start");
  if (event.config != nullptr) result.profile = event.config->profile;
  switch (event.kind) {
    case Kind::kStart:
      return Start(event);
    case Kind::kEnqueue:
      return Enqueue(event);
    case Kind::kPull:
      Pull(event);
      return Status::Ok();
    case Kind::kLanded:
    case Kind::kCompleted:
    case Kind::kCancel:
      return DoRequest(event);
    case Kind::kConfigure:
      scheduler_->Configure(*event.config, event.now);
      return Status::Ok();
    case Kind::kSetClass:
      scheduler_->SetClass(*event.spec, event.now);
      return Status::Ok();
    case Kind::kRemoveClass:
      scheduler_->RemoveClass(event.class_id, event.now);
      return Status::Ok();
    case Kind::kTick:
      scheduler_->Tick(event.now);
      return Status::Ok();
    case Kind::kCounters:
      std::ignore = scheduler_->Counters(event.now);
      return Status::Ok();
    case Kind::kSetBooked:
      scheduler_->SetBooked(event.amount);
      return Status::Ok();
    case Kind::kDoneOutside:
      scheduler_->DoneOutside(event.amount);
      return Status::Ok();
    case Kind::kSetBulkCap:
      scheduler_->SetBulkCap(event.amount, event.now);
      return Status::Ok();
  }
  return Bad("an unknown kind of record");
}

Result<Event> EventOf(const wire::Decision& record) {
  Event event;
  event.kind = static_cast<Kind>(record.kind());
  event.now = TimePoint{record.now_ns()};
  event.request = record.request();
  event.amount = record.amount();
  event.class_id = ClassId(record.class_id());
  if (event.kind == Kind::kStart || event.kind == Kind::kConfigure) {
    WEIR_ASSIGN_OR_RETURN(SchedulerConfig config, FromWire(record.config()));
    event.config = std::make_shared<SchedulerConfig>(std::move(config));
  }
  if (event.kind == Kind::kSetClass) {
    WEIR_ASSIGN_OR_RETURN(ClassEntry entry, FromWire(record.class_info()));
    if (record.has_reservation_ends_ns()) {
      entry.spec.reservation_ends = TimePoint{record.reservation_ends_ns()};
    }
    event.spec = std::make_shared<ClassSpec>(std::move(entry.spec));
  }
  if (record.op() > static_cast<uint32_t>(qos::OpKind::kOther)) return Bad("an unknown operation");
  event.op = static_cast<qos::OpKind>(record.op());
  event.bytes = record.bytes();
  event.lba = record.lba();
  event.elsewhere = record.elsewhere();
  event.transaction = record.transaction();
  event.flow = {record.user(), record.opener()};
  return event;
}

Status DoNext(const wire::Decision& record, Replayer* replayer) {
  const Result<Event> event = EventOf(record);
  if (event.ok()) return replayer->Do(*event);
  ++replayer->result.decisions;
  return event.status();
}

Status AtRecord(const std::string& path, const Replayer& replayer, const Status& status) {
  return {status.code(),
          fmt::format("'{}', record {}: {}", path, replayer.result.decisions, status.message())};
}

}  // namespace

Result<Replayed> ReplayEvents(const std::vector<Event>& events, qos::DecisionRecorder* recorder) {
  Replayer replayer(recorder);
  for (const Event& event : events) {
    if (Status status = replayer.Do(event); !status.ok()) {
      return AtRecord("events", replayer, status);
    }
    if (replayer.result.difference) break;
  }
  return std::move(replayer.result);
}

Result<Replayed> ReplayDecisions(const std::string& path, qos::DecisionRecorder* recorder) {
  if (IsRecording(path)) {
    WEIR_ASSIGN_OR_RETURN(const std::vector<Event> events, LoadRecording(path));
    return ReplayEvents(events, recorder);
  }
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
  Replayer replayer(recorder);
  wire::Decision record;
  bool ended = false;
  while (!replayer.result.difference) {
    record.Clear();
    if (!google::protobuf::util::ParseDelimitedFromZeroCopyStream(&record, &stream, &ended)) break;
    if (Status status = DoNext(record, &replayer); !status.ok()) {
      return AtRecord(path, replayer, status);
    }
  }
  replayer.result.cut_off = !replayer.result.difference && !ended;
  return std::move(replayer.result);
}

}  // namespace weir::osd
