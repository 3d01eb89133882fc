// Exit codes that every program of WeirFS shares; scripts rely on them.
#pragma once

#include <string_view>

#include "common/base/result.h"

namespace weir::cli {

enum class ExitCode : int {
  kDone = 0,
  kFailed = 1,
  kBadUsage = 2,
  kPartlyDone = 3,
  kRefused = 4,  // by admission
  kNotFound = 5,
  kNoContact = 6,
  kUnhealthy = 7,
};

// The code that an error ends a program with.
ExitCode ExitCodeOf(const Status& status);

// Prints "PROGRAM: message" on stderr and returns the exit code of `status` as an int for main.
int Fail(std::string_view program, const Status& status);

}  // namespace weir::cli
