#include "osd/decisions/decision_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "common/placement/cluster_map.h"
#include "common/wire/decisions.pb.h"

namespace weir::osd {

namespace {

Status CannotCreate(const std::string& path, int error) {
  const ErrorCode code = error == EEXIST ? ErrorCode::kExists : ErrorCode::kIo;
  return {code, fmt::format("--decision-log: cannot create '{}': {}", path,
                            std::generic_category().message(error))};
}

}  // namespace

Status DecisionLog::CheckNew(const std::string& path) {
  struct stat info {};
  const bool exists = !path.empty() && ::lstat(path.c_str(), &info) == 0;
  return exists ? CannotCreate(path, EEXIST) : Status::Ok();
}

Result<std::unique_ptr<DecisionLog>> DecisionLog::Create(const std::string& path, Report report) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return CannotCreate(path, errno);
  ::close(fd);
  std::unique_ptr<DecisionLog> log(new DecisionLog(path, std::move(report)));
  log->file_.open(path, std::ios::binary | std::ios::trunc);
  log->file_ << kDecisionLogHead;
  if (!log->file_.flush()) {
    return {ErrorCode::kIo, fmt::format("--decision-log: cannot write '{}'", path)};
  }
  return log;
}

void DecisionLog::Note(const qos::Decision& decision) {
  if (!file_.is_open()) return;
  const Event event = maker_.Make(decision);
  wire::Decision message;
  message.set_kind(static_cast<uint32_t>(event.kind));
  message.set_now_ns(event.now.ns);
  message.set_request(event.request);
  message.set_class_id(event.class_id.value);
  message.set_amount(event.amount);
  if (event.config != nullptr) *message.mutable_config() = ToWire(*event.config);
  if (event.spec != nullptr) {
    *message.mutable_class_info() = ToWire(ClassEntry{.spec = *event.spec});
    const auto& ends = event.spec->reservation_ends;
    if (ends) message.set_reservation_ends_ns(ends->ns);
  }
  if (event.kind == Event::Kind::kEnqueue) {
    message.set_op(static_cast<uint32_t>(event.op));
    message.set_bytes(event.bytes);
    message.set_lba(event.lba);
    message.set_elsewhere(event.elsewhere);
    message.set_transaction(event.transaction);
    message.set_user(event.flow.user);
    message.set_opener(event.flow.opener);
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
