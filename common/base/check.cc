#include "common/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace weir {

void CheckFailed(const char* file, int line, const char* condition, std::string_view detail) {
  std::fprintf(stderr, "%s:%d: CHECK failed: %s %.*s\n", file, line, condition,
               static_cast<int>(detail.size()), detail.data());
  std::fflush(stderr);
  std::abort();
}

}  // namespace weir
