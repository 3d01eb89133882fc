// The frame round every program's main: what the caller left open or closed, full or scarce, ends
// in a documented exit code and never in a signal.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "common/base/result.h"

namespace weir::cli {

// Runs `body` and returns the exit code for main. Before it, /dev/null takes the place of a closed
// stdin, stdout or stderr, whose number the next file or socket would get, and the limit of open
// files is raised as far as it may be. Behind it, what stdout did not take is an error, as is an
// exception.
int RunProgram(std::string_view program, const std::function<int()>& body);

// Throws std::system_error, as fmt::print does; RunProgram tells the user.
void FlushStdout();

// "PROGRAM: text" on stderr, which may be full: then nobody reads it.
void Say(std::string_view program, std::string_view text);

// kNoSpace names the limit (ulimit -n) when it is below `files`.
Status NeedFiles(uint64_t files);

}  // namespace weir::cli
