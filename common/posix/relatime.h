// When a read moves the access time of a file: the rule that Linux calls relatime.
#pragma once

#include <cstdint>

namespace weir {

struct FileTimes {  // since 1970
  int64_t atime_ns = 0;
  int64_t mtime_ns = 0;
  int64_t ctime_ns = 0;
};

// It tells whether the file was read since its last change, and on which day.
inline bool ReadMovesAtime(const FileTimes& times, int64_t now_ns) {
  constexpr int64_t kDayNs = int64_t{24} * 3600 * 1'000'000'000;
  if (times.atime_ns <= times.mtime_ns || times.atime_ns <= times.ctime_ns) return true;
  return now_ns > times.atime_ns && now_ns - times.atime_ns >= kDayNs;
}

}  // namespace weir
