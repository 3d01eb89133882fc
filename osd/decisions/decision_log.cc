#include "osd/decisions/decision_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "common/placement/cluster_map.h"
#include "common/wire/decisions.pb.h"
#include "osd/qos/scheduler.h"

namespace weir::osd {

using Kind = qos::Decision::Kind;

Result<std::unique_ptr<DecisionLog>> DecisionLog::Create(const std::string& path, Report report) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) {
    const ErrorCode code = errno == EEXIST ? ErrorCode::kExists : ErrorCode::kIo;
    return {code, fmt::format("--decision-log: cannot create '{}': {}", path,
                              std::generic_category().message(errno))};
  }
  ::close(fd);
  std::unique_ptr<DecisionLog> log(new DecisionLog(path, std::move(report)));
  log->file_.open(path, std::ios::binary | std::ios::trunc);
  log->file_ << kDecisionLogHead;
  if (!log->file_.flush()) {
    return {ErrorCode::kIo, fmt::format("--decision-log: cannot write '{}'", path)};
  }
  return log;
}

uint64_t DecisionLog::NumberOf(const qos::Decision& decision) {
  if (decision.request == nullptr) return 0;
  if (decision.kind == Kind::kEnqueue) return numbers_[decision.request] = ++arrived_;
  const auto found = numbers_.find(decision.request);
  const uint64_t number = found->second;
  if (decision.kind == Kind::kCompleted) numbers_.erase(found);
  return number;
}

void DecisionLog::Note(const qos::Decision& decision) {
  if (!file_.is_open()) return;
  wire::Decision message;
  message.set_kind(static_cast<uint32_t>(decision.kind));
  message.set_now_ns(decision.now.ns);
  message.set_request(NumberOf(decision));
  message.set_class_id(decision.class_id.value);
  message.set_amount(decision.amount);
  if (decision.config != nullptr) *message.mutable_config() = ToWire(*decision.config);
  if (decision.spec != nullptr) {
    *message.mutable_class_info() = ToWire(ClassEntry{.spec = *decision.spec});
    const auto& ends = decision.spec->reservation_ends;
    if (ends) message.set_reservation_ends_ns(ends->ns);
  }
  if (decision.kind == Kind::kEnqueue) {
    const qos::Request& request = *decision.request;
    message.set_class_id(request.class_id.value);
    message.set_op(static_cast<uint32_t>(request.op));
    message.set_bytes(request.bytes);
    message.set_lba(request.lba);
    message.set_elsewhere(request.elsewhere);
    message.set_transaction(request.transaction);
  }
  Write(message);
}

void DecisionLog::Write(const wire::Decision& message) {
  written_ += message.ByteSizeLong() + 2;
  const bool wrote = google::protobuf::util::SerializeDelimitedToOstream(message, &file_);
  if (wrote && written_ < kLongest) return;
  file_.close();
  report_(fmt::format("--decision-log: '{}' {}; nothing more is recorded", path_,
                      wrote ? "is 4 GiB long" : "cannot be written"));
}

}  // namespace weir::osd
