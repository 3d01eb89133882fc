// Status and Result<T>: how errors cross every module border of WeirFS.
//
// A code is one row of the table below; codes that have an errno map to it one to one, so a FUSE
// reply never has to guess. The message says what failed, on what, why, and the way out; it is for
// people and never parsed. Numbers travel on the wire and on disk: append, never renumber.
//
// Threads: values; copy and move freely.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/check.h"

namespace weir {

//      name                 number  errno         meaning
#define WEIR_ERROR_CODES(X)                                  \
  X(kOk, 0, 0, "ok")                                         \
  X(kInvalid, 1, EINVAL, "invalid argument")                 \
  X(kNotFound, 2, ENOENT, "not found")                       \
  X(kExists, 3, EEXIST, "already exists")                    \
  X(kPermission, 4, EPERM, "operation not permitted")        \
  X(kAccess, 5, EACCES, "permission denied")                 \
  X(kNotDirectory, 6, ENOTDIR, "not a directory")            \
  X(kIsDirectory, 7, EISDIR, "is a directory")               \
  X(kNotEmpty, 8, ENOTEMPTY, "directory not empty")          \
  X(kNameTooLong, 9, ENAMETOOLONG, "name too long")          \
  X(kNoSpace, 10, ENOSPC, "no space left")                   \
  X(kIo, 11, EIO, "input/output error")                      \
  X(kCorrupt, 12, EIO, "checksum mismatch")                  \
  X(kTimedOut, 13, ETIMEDOUT, "timed out")                   \
  X(kUnreachable, 14, EIO, "peer unreachable")               \
  X(kBusy, 15, EBUSY, "busy")                                \
  X(kAgain, 16, EAGAIN, "try again")                         \
  X(kStale, 17, ESTALE, "stale handle")                      \
  X(kStaleEpoch, 18, EAGAIN, "stale map epoch")              \
  X(kNoData, 19, ENODATA, "no such attribute")               \
  X(kRange, 20, ERANGE, "out of range")                      \
  X(kTooBig, 21, E2BIG, "too big")                           \
  X(kFileTooBig, 22, EFBIG, "file too big")                  \
  X(kNotSupported, 23, EOPNOTSUPP, "not supported")          \
  X(kReadOnly, 24, EROFS, "read-only")                       \
  X(kTooManyLinks, 25, EMLINK, "too many links")             \
  X(kLoop, 26, ELOOP, "too many symbolic links")             \
  X(kCrossDevice, 27, EXDEV, "cross-device")                 \
  X(kBadMessage, 28, EBADMSG, "malformed message")           \
  X(kRefused, 29, EPERM, "refused by admission")             \
  X(kWrongCluster, 30, EINVAL, "belongs to another cluster") \
  X(kCancelled, 31, ECANCELED, "cancelled")                  \
  X(kBadHandle, 32, EBADF, "bad file handle")                \
  X(kQuota, 33, EDQUOT, "quota exceeded")

enum class ErrorCode : uint16_t {
#define WEIR_ENUM_ROW(name, number, errno_value, text) name = number,
  WEIR_ERROR_CODES(WEIR_ENUM_ROW)
#undef WEIR_ENUM_ROW
};

// The errno of a code; EIO for a number that this build does not know.
int ToErrno(ErrorCode code);
// The code that stands for an errno; kIo when there is none.
ErrorCode FromErrno(int error);
// "not found" and the like; never empty.
std::string_view ToText(ErrorCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}
  explicit Status(ErrorCode code) : code_(code), message_(ToText(code)) {}
  static Status Ok() { return {}; }
  // "<what>: <strerror>", with the code of that errno.
  static Status FromErrno(int error, std::string_view what);

  [[nodiscard]] bool ok() const { return code_ == ErrorCode::kOk; }
  [[nodiscard]] ErrorCode code() const { return code_; }
  [[nodiscard]] const std::string& message() const { return message_; }
  // The same error with "<context>: " in front of its message; ok stays ok.
  [[nodiscard]] Status Annotate(std::string_view context) const;

  bool operator==(const Status& other) const { return code_ == other.code_; }

 private:
  ErrorCode code_ = ErrorCode::kOk;
  std::string message_;
};

std::ostream& operator<<(std::ostream& out, const Status& status);

// A T, or the Status that says why there is none. Requires ok() before value access.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT: implicit by design
  Result(Status status) : status_(std::move(status)) {  // NOLINT: implicit by design
    WEIR_CHECK(!status_.ok(), "a Result without a value needs an error");
  }
  Result(ErrorCode code, std::string message) : Result(Status(code, std::move(message))) {}

  [[nodiscard]] bool ok() const { return value_.has_value(); }
  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] ErrorCode code() const { return status_.code(); }

  T& operator*() & { return Value(); }
  const T& operator*() const& { return Value(); }
  T&& operator*() && { return std::move(Value()); }
  T* operator->() { return &Value(); }
  const T* operator->() const { return &Value(); }

 private:
  T& Value() {
    WEIR_CHECK(value_.has_value(), status_.message());
    return *value_;
  }
  const T& Value() const {
    WEIR_CHECK(value_.has_value(), status_.message());
    return *value_;
  }
  Status status_;
  std::optional<T> value_;
};

}  // namespace weir

// Returns the error of a Status expression to the caller, or goes on.
#define WEIR_RETURN_IF_ERROR(expression)                                                     \
  do {                                                                                       \
    if (::weir::Status weir_status_ = (expression); !weir_status_.ok()) return weir_status_; \
  } while (false)
#define WEIR_CONCAT_INNER(a, b) a##b
#define WEIR_CONCAT(a, b) WEIR_CONCAT_INNER(a, b)
// `WEIR_ASSIGN_OR_RETURN(auto x, F());` binds the value of a Result or returns its error.
#define WEIR_ASSIGN_OR_RETURN(declaration, expression)     \
  auto WEIR_CONCAT(weir_result_, __LINE__) = (expression); \
  if (!WEIR_CONCAT(weir_result_, __LINE__).ok())           \
    return WEIR_CONCAT(weir_result_, __LINE__).status();   \
  declaration = std::move(*WEIR_CONCAT(weir_result_, __LINE__))
