// How the times of a file move: the rule that Linux calls relatime for reads, and what writes do.
#pragma once

#include <algorithm>
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

// The mtime behind a write at `written_ns` whose report may come late. No change stamps an mtime
// that lies ahead of its ctime: such a one was set by somebody, and before that write.
inline int64_t MtimeAfterWrite(const FileTimes& times, int64_t written_ns) {
  return times.mtime_ns > times.ctime_ns ? written_ns : std::max(times.mtime_ns, written_ns);
}

}  // namespace weir
