#include "osd/decisions/recording.h"

#include <fmt/format.h>
#include <google/protobuf/io/gzip_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>

#include <cerrno>
#include <fstream>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "osd/decisions/recorded_config.h"

namespace weir::osd {
namespace {

using Kind = Event::Kind;
using wire::Recording;

Recording::Kind RecordedKind(const Event& event) {
  switch (event.kind) {
    case Kind::kStart:
      return Recording::BEGAN;
    case Kind::kConfigure:
      return Recording::CONFIGURED;
    case Kind::kSetClass:
      return Recording::CLASS_SET;
    case Kind::kRemoveClass:
      return Recording::CLASS_REMOVED;
    case Kind::kEnqueue:
      return Recording::ARRIVED;
    case Kind::kPull:
      return event.request == 0 ? Recording::ASKED : Recording::STARTED;
    case Kind::kLanded:
      return Recording::LANDED;
    case Kind::kCompleted:
      return Recording::COMPLETED;
    case Kind::kCancel:
      return Recording::CANCELLED;
    case Kind::kTick:
      return Recording::TICKED;
    case Kind::kCounters:
      return Recording::COUNTED;
    case Kind::kSetBooked:
      return Recording::BOOKED;
    case Kind::kDoneOutside:
      return Recording::DONE_OUTSIDE;
    case Kind::kSetBulkCap:
      return Recording::BULK_CAPPED;
  }
  return Recording::NOTHING;
}

// Where the last request of a class ended, by which the next is told.
class Addresses {
 public:
  // What is added to it to get the address of the next; both wrap around.
  int64_t Step(ClassId id, uint64_t lba, uint64_t bytes) {
    const uint64_t step = lba - ends_[id];
    ends_[id] = lba + bytes;
    return static_cast<int64_t>(step);
  }
  uint64_t Next(ClassId id, int64_t step, uint64_t bytes) {
    const uint64_t lba = ends_[id] + static_cast<uint64_t>(step);
    ends_[id] = lba + bytes;
    return lba;
  }

 private:
  std::unordered_map<ClassId, uint64_t> ends_;
};

class Writer {
 public:
  void Add(const Event& event) {
    if (recording_.kinds().empty()) {
      recording_.set_began_ns(event.now.ns);
      last_ = event.now;
    }
    const TimePoint now = event.timed() ? event.now : last_;
    recording_.mutable_kinds()->push_back(static_cast<char>(RecordedKind(event)));
    recording_.add_gaps_ns(static_cast<uint64_t>((now - last_).count()));
    last_ = now;
    AddOperands(event);
  }
  [[nodiscard]] const Recording& recording() const { return recording_; }

 private:
  void AddOperands(const Event& event) {
    Recording::Inputs& inputs = *recording_.mutable_inputs();
    switch (RecordedKind(event)) {
      case Recording::BEGAN:
      case Recording::CONFIGURED:
        *inputs.add_configs() = ToRecorded(*event.config);
        return;
      case Recording::CLASS_SET:
        *inputs.add_classes() = ToRecorded(*event.spec);
        return;
      case Recording::CLASS_REMOVED:
        inputs.add_removed_class(event.class_id.value);
        return;
      case Recording::ARRIVED:
        return AddArrival(event, inputs.mutable_arrivals());
      case Recording::LANDED:
        return inputs.add_landed(Step(event.request, &landed_));
      case Recording::COMPLETED:
        return inputs.add_completed(Step(event.request, &completed_));
      case Recording::CANCELLED:
        return inputs.add_cancelled(Step(event.request, &cancelled_));
      case Recording::BOOKED:
      case Recording::DONE_OUTSIDE:
      case Recording::BULK_CAPPED:
        return inputs.add_amounts(event.amount);
      case Recording::STARTED:
        return recording_.mutable_decisions()->add_started(Step(event.request, &started_));
      default:
        return;
    }
  }
  void AddArrival(const Event& event, Recording::Arrivals* to) {
    to->add_class_id(event.class_id.value);
    to->add_op(static_cast<uint32_t>(event.op));
    to->add_bytes(event.bytes);
    to->add_lba(addresses_.Step(event.class_id, event.lba, event.bytes));
    to->add_elsewhere(event.elsewhere);
    to->add_transaction(event.transaction);
    to->add_user(event.flow.user);
    to->add_opener(event.flow.opener);
  }
  static int64_t Step(uint64_t number, uint64_t* last) {
    return static_cast<int64_t>(number - std::exchange(*last, number));
  }

  Recording recording_;
  TimePoint last_;
  Addresses addresses_;
  uint64_t landed_ = 0, completed_ = 0, cancelled_ = 0, started_ = 0;
};

// A column that is read from its beginning to its end.
template <typename Column>
class Cursor {
 public:
  explicit Cursor(const Column& column) : column_(column) {}
  // False: nothing is left.
  template <typename Value>
  [[nodiscard]] bool Next(Value* value) {
    if (at_ >= column_.size()) return false;
    *value = static_cast<Value>(column_.Get(at_++));
    return true;
  }
  // Of a column of differences.
  [[nodiscard]] bool NextNumber(uint64_t* number) {
    int64_t step = 0;
    if (!Next(&step)) return false;
    *number = last_ += static_cast<uint64_t>(step);
    return true;
  }
  template <typename Value>
  Status NextOf(std::shared_ptr<const Value>* value) {
    if (at_ >= column_.size()) return {ErrorCode::kBadMessage, "a column is too short"};
    WEIR_ASSIGN_OR_RETURN(Value read, FromRecorded(column_.Get(at_++)));
    *value = std::make_shared<Value>(std::move(read));
    return Status::Ok();
  }

 private:
  const Column& column_;
  int at_ = 0;
  uint64_t last_ = 0;
};
// That events follow one another as calls of a scheduler can.
class Order {
 public:
  [[nodiscard]] bool Allows(const Event& event) {
    if (began_ == (event.kind == Kind::kStart)) return false;
    began_ = true;
    if (event.kind == Kind::kEnqueue) stages_.push_back(Stage::kWaits);
    if (event.request == 0) return true;
    if (event.request > stages_.size()) return false;
    Stage& stage = stages_[event.request - 1];
    switch (event.kind) {
      case Kind::kPull:
        return std::exchange(stage, Stage::kStarted) == Stage::kWaits;
      case Kind::kLanded:
        return std::exchange(stage, Stage::kLanded) == Stage::kStarted;
      case Kind::kCompleted:
        return std::exchange(stage, Stage::kGone) >= Stage::kStarted;
      case Kind::kCancel:  // too late, where it has started
        if (stage == Stage::kWaits) stage = Stage::kGone;
        return true;
      default:
        return true;
    }
  }

 private:
  enum class Stage : uint8_t { kGone, kWaits, kStarted, kLanded };
  bool began_ = false;
  std::vector<Stage> stages_;  // [number - 1]
};

class Reader {
 public:
  explicit Reader(const Recording& recording) : recording_(recording), now_{recording.began_ns()} {}

  Result<std::vector<Event>> ReadAll() {
    std::vector<Event> events;
    events.reserve(recording_.kinds().size());
    for (const char kind : recording_.kinds()) {
      uint64_t gap = 0;
      if (!gaps_.Next(&gap)) return Short();
      if (gap > static_cast<uint64_t>(INT64_MAX) / 2 || now_.ns > INT64_MAX / 2) {
        return {ErrorCode::kBadMessage, "a time that never comes"};
      }
      now_ += Duration(static_cast<int64_t>(gap));
      Event& event = events.emplace_back();
      event.now = now_;
      WEIR_RETURN_IF_ERROR(ReadOne(static_cast<Recording::Kind>(kind), &event));
      if (!order_.Allows(event)) {
        return {ErrorCode::kBadMessage, fmt::format("event {} cannot be", events.size())};
      }
    }
    if (events.empty()) return {ErrorCode::kBadMessage, "nothing is in it"};
    return events;
  }

 private:
  static Status Short() { return {ErrorCode::kBadMessage, "a column is too short"}; }
  static Status When(bool read) { return read ? Status::Ok() : Short(); }

  Status ReadOne(Recording::Kind kind, Event* event) {
    switch (kind) {
      case Recording::BEGAN:
        event->kind = Kind::kStart;
        return configs_.NextOf(&event->config);
      case Recording::CONFIGURED:
        event->kind = Kind::kConfigure;
        return configs_.NextOf(&event->config);
      case Recording::CLASS_SET:
        event->kind = Kind::kSetClass;
        return classes_.NextOf(&event->spec);
      case Recording::CLASS_REMOVED:
        event->kind = Kind::kRemoveClass;
        return When(removed_.Next(&event->class_id));
      case Recording::ARRIVED:
        return ReadArrival(event);
      case Recording::LANDED:
        event->kind = Kind::kLanded;
        return When(landed_.NextNumber(&event->request));
      case Recording::COMPLETED:
        event->kind = Kind::kCompleted;
        return When(completed_.NextNumber(&event->request));
      case Recording::CANCELLED:
        event->kind = Kind::kCancel;
        return When(cancelled_.NextNumber(&event->request));
      case Recording::STARTED:
        event->kind = Kind::kPull;
        return When(started_.NextNumber(&event->request));
      case Recording::BOOKED:
      case Recording::DONE_OUTSIDE:
      case Recording::BULK_CAPPED:
        event->kind = kind == Recording::BOOKED         ? Kind::kSetBooked
                      : kind == Recording::DONE_OUTSIDE ? Kind::kDoneOutside
                                                        : Kind::kSetBulkCap;
        return When(amounts_.Next(&event->amount));
      case Recording::TICKED:
        event->kind = Kind::kTick;
        return Status::Ok();
      case Recording::ASKED:
        event->kind = Kind::kPull;
        return Status::Ok();
      case Recording::COUNTED:
        event->kind = Kind::kCounters;
        return Status::Ok();
      default:
        return {ErrorCode::kBadMessage, "an unknown kind of event"};
    }
  }
  Status ReadArrival(Event* event) {
    event->kind = Kind::kEnqueue;
    event->request = ++arrived_;
    uint32_t op = 0;
    int64_t step = 0;
    if (!class_id_.Next(&event->class_id) || !op_.Next(&op) || !bytes_.Next(&event->bytes) ||
        !lba_.Next(&step) || !elsewhere_.Next(&event->elsewhere) ||
        !transaction_.Next(&event->transaction)) {
      return Short();
    }
    const bool told_apart = arrivals_.user_size() > 0;
    if (told_apart && (!user_.Next(&event->flow.user) || !opener_.Next(&event->flow.opener))) {
      return Short();
    }
    if (op > static_cast<uint32_t>(qos::OpKind::kOther)) {
      return {ErrorCode::kBadMessage, "an unknown operation"};
    }
    event->op = static_cast<qos::OpKind>(op);
    event->lba = addresses_.Next(event->class_id, step, event->bytes);
    return Status::Ok();
  }

  const Recording& recording_;
  const Recording::Inputs& inputs_ = recording_.inputs();
  const Recording::Arrivals& arrivals_ = inputs_.arrivals();
  TimePoint now_;
  uint64_t arrived_ = 0;
  Order order_;
  Addresses addresses_;
  Cursor<google::protobuf::RepeatedField<uint64_t>> gaps_{recording_.gaps_ns()},
      bytes_{arrivals_.bytes()}, user_{arrivals_.user()}, opener_{arrivals_.opener()},
      amounts_{inputs_.amounts()};
  Cursor<google::protobuf::RepeatedField<uint32_t>> removed_{inputs_.removed_class()},
      class_id_{arrivals_.class_id()}, op_{arrivals_.op()}, transaction_{arrivals_.transaction()};
  Cursor<google::protobuf::RepeatedField<int64_t>> landed_{inputs_.landed()},
      completed_{inputs_.completed()}, cancelled_{inputs_.cancelled()},
      started_{recording_.decisions().started()}, lba_{arrivals_.lba()},
      elsewhere_{arrivals_.elsewhere()};
  Cursor<google::protobuf::RepeatedPtrField<Recording::Config>> configs_{inputs_.configs()};
  Cursor<google::protobuf::RepeatedPtrField<Recording::Class>> classes_{inputs_.classes()};
};

bool Compress(const Recording& recording, std::ostream* to) {
  google::protobuf::io::OstreamOutputStream stream(to);
  google::protobuf::io::GzipOutputStream::Options options;
  options.compression_level = 9;
  google::protobuf::io::GzipOutputStream gzip(&stream, options);
  return recording.SerializeToZeroCopyStream(&gzip) && gzip.Close();
}

}  // namespace

Status SaveRecording(const std::string& path, const std::vector<Event>& events) {
  Writer writer;
  for (const Event& event : events) writer.Add(event);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << kRecordingHead;
  if (Compress(writer.recording(), &file) && file.flush()) return Status::Ok();
  return {ErrorCode::kIo,
          fmt::format("cannot write '{}'; is its folder one that you may write to?", path)};
}

bool IsRecording(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string head(kRecordingHead.size(), '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  return head == kRecordingHead;
}

Result<std::vector<Event>> LoadRecording(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return {ErrorCode::kNotFound,
            fmt::format("cannot read '{}': {}", path, std::generic_category().message(errno))};
  }
  if (!IsRecording(path)) {
    return {ErrorCode::kBadMessage, fmt::format("'{}' is no recording of a scheduler", path)};
  }
  file.seekg(static_cast<std::streamoff>(kRecordingHead.size()));
  google::protobuf::io::IstreamInputStream stream(&file);
  google::protobuf::io::GzipInputStream gzip(&stream);
  Recording recording;
  if (!recording.ParseFromZeroCopyStream(&gzip)) {
    return {ErrorCode::kBadMessage, fmt::format("'{}' is cut off or damaged", path)};
  }
  Result<std::vector<Event>> events = Reader(recording).ReadAll();
  if (events.ok()) return events;
  return {events.status().code(), fmt::format("'{}': {}", path, events.status().message())};
}

}  // namespace weir::osd
