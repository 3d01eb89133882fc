#include "common/disk/disk_contents.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace weir {
namespace {

constexpr uint64_t kReadWholly = uint64_t{1} << 30;
constexpr uint64_t kPiece = 1 << 20;
constexpr uint64_t kSample = 64 << 10;
constexpr uint64_t kSamples = 1000;

struct Range {
  uint64_t begin, end;
};

class Reader {
 public:
  Reader(int fd, const std::string& path) : fd_(fd), path_(path), buffer_(kPiece) {}
  ~Reader() { close(fd_); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // What is not a hole.
  [[nodiscard]] std::vector<Range> Parts() const {
    struct stat info {};
    const auto size = static_cast<uint64_t>(lseek(fd_, 0, SEEK_END));
    if (fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode)) return {{0, size}};
    std::vector<Range> parts;
    for (off_t at = 0; static_cast<uint64_t>(at) < size;) {
      const off_t begin = lseek(fd_, at, SEEK_DATA);
      if (begin < 0) return errno == ENXIO ? parts : std::vector<Range>{{0, size}};
      const off_t end = lseek(fd_, begin, SEEK_HOLE);
      if (end < 0) return {{0, size}};
      parts.push_back({static_cast<uint64_t>(begin), static_cast<uint64_t>(end)});
      at = end;
    }
    return parts;
  }

  Result<uint64_t> Find(Range range) {
    for (uint64_t at = range.begin; at < range.end;) {
      const size_t length = std::min<uint64_t>(range.end - at, buffer_.size());
      const ssize_t got = pread(fd_, buffer_.data(), length, static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return Status::FromErrno(errno, path_ + ": cannot read");
      if (got == 0) break;
      const auto end = buffer_.begin() + got;
      const auto found = std::find_if(buffer_.begin(), end, [](char byte) { return byte != 0; });
      if (found != end) return at + static_cast<uint64_t>(found - buffer_.begin());
      at += static_cast<uint64_t>(got);
    }
    return UINT64_MAX;
  }

 private:
  const int fd_;
  const std::string& path_;
  std::vector<char> buffer_;
};

// Evenly over all parts, and their two ends.
std::vector<Range> Samples(const std::vector<Range>& parts, uint64_t total) {
  std::vector<Range> samples = {
      {parts.front().begin, std::min(parts.front().end, parts.front().begin + kPiece)},
      {parts.back().end - std::min(kPiece, parts.back().end - parts.back().begin),
       parts.back().end}};
  const uint64_t step = total / kSamples;
  uint64_t skip = 0;
  for (const Range& part : parts) {
    for (uint64_t at = part.begin + skip; at < part.end; at += step) {
      samples.push_back({at, std::min(part.end, at + kSample)});
      skip = at + step - std::min(part.end, at + step);
    }
  }
  return samples;
}

}  // namespace

Result<uint64_t> FindData(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Status::FromErrno(errno, path + ": cannot open");
  Reader reader(fd, path);
  std::vector<Range> parts = reader.Parts();
  uint64_t total = 0;
  for (const Range& part : parts) total += part.end - part.begin;
  if (total > kReadWholly) parts = Samples(parts, total);
  for (const Range& part : parts) {
    WEIR_ASSIGN_OR_RETURN(const uint64_t found, reader.Find(part));
    if (found != UINT64_MAX) return found;
  }
  return UINT64_MAX;
}

}  // namespace weir
