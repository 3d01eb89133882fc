// WEIR_CHECK asserts an invariant in every build: a failure is our own bug, prints where and why,
// and aborts before wrong data can spread. Bad input from outside is never a CHECK but a Status.
#pragma once

#include <string_view>

namespace weir {
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              std::string_view detail);
}  // namespace weir

#define WEIR_CHECK(condition, ...)                                                          \
  do {                                                                                      \
    if (!(condition)) [[unlikely]]                                                          \
      ::weir::CheckFailed(__FILE__, __LINE__, #condition, ::std::string_view{__VA_ARGS__}); \
  } while (false)
