#include "common/base/result.h"

#include <cerrno>
#include <cstring>

namespace weir {

int ToErrno(ErrorCode code) {
  // NOLINTBEGIN(bugprone-branch-clone): several codes share an errno
  switch (code) {
#define WEIR_CASE(name, number, errno_value, text) \
  case ErrorCode::name:                            \
    return errno_value;
    WEIR_ERROR_CODES(WEIR_CASE)
#undef WEIR_CASE
  }
  // NOLINTEND(bugprone-branch-clone)
  return EIO;
}

ErrorCode FromErrno(int error) {
#define WEIR_TEST(name, number, errno_value, text) \
  if (error == (errno_value)) return ErrorCode::name;
  WEIR_ERROR_CODES(WEIR_TEST)
#undef WEIR_TEST
  return ErrorCode::kIo;
}

std::string_view ToText(ErrorCode code) {
  switch (code) {
#define WEIR_CASE(name, number, errno_value, text) \
  case ErrorCode::name:                            \
    return text;
    WEIR_ERROR_CODES(WEIR_CASE)
#undef WEIR_CASE
  }
  return "unknown error";
}

Status Status::FromErrno(int error, std::string_view what) {
  return {weir::FromErrno(error), std::string(what) + ": " + std::strerror(error)};
}

Status Status::Annotate(std::string_view context) const {
  if (ok()) return *this;
  return {code_, std::string(context) + ": " + message_};
}

std::ostream& operator<<(std::ostream& out, const Status& status) {
  if (status.ok()) return out << "ok";
  return out << ToText(status.code()) << " (" << status.message() << ")";
}

}  // namespace weir
