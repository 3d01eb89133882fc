// Goal: the clock and the kernel's stamps of files are in one order, whoever comes first.
#include "common/base/file_clock.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <memory>

namespace weir {
namespace {

int64_t StampOf(int fd) {
  struct stat st {};
  EXPECT_EQ(fstat(fd, &st), 0);
  return int64_t{st.st_mtim.tv_sec} * 1'000'000'000 + st.st_mtim.tv_nsec;
}

TEST(FileClockTest, IsInOneOrderWithWhatTheKernelStamps) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::tmpfile(), &std::fclose);
  ASSERT_NE(file, nullptr);
  const int fd = fileno(file.get());
  for (int i = 0; i < 1000; ++i) {
    const int64_t before = FileClock::Get().WallNow().ns;
    ASSERT_EQ(futimens(fd, nullptr), 0);
    const int64_t after = FileClock::Get().WallNow().ns;
    const int64_t stamp = StampOf(fd);
    ASSERT_LE(before, stamp);
    ASSERT_LE(stamp, after);
  }
  const WallTime now = FileClock::Get().WallNow();
  EXPECT_LE(now, SystemClock::Get().WallNow());
}

}  // namespace
}  // namespace weir
