#include "tools/cli/exit_code.h"

#include "tools/cli/program.h"

namespace weir::cli {

ExitCode ExitCodeOf(const Status& status) {
  switch (status.code()) {
    case ErrorCode::kOk:
      return ExitCode::kDone;
    case ErrorCode::kInvalid:
    case ErrorCode::kRange:
    case ErrorCode::kNotSupported:
      return ExitCode::kBadUsage;
    case ErrorCode::kRefused:
      return ExitCode::kRefused;
    case ErrorCode::kNotFound:
      return ExitCode::kNotFound;
    case ErrorCode::kUnreachable:
    case ErrorCode::kTimedOut:
      return ExitCode::kNoContact;
    default:
      return ExitCode::kFailed;
  }
}

int Fail(std::string_view program, const Status& status) {
  Say(program, status.message());
  return static_cast<int>(ExitCodeOf(status));
}

}  // namespace weir::cli
