#include "common/base/processor_stalls.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string_view>
#include <utility>

namespace weir {

std::optional<ProcessorStalls> ProcessorStalls::Open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  ProcessorStalls stalls(fd);
  if (!stalls.Total()) return std::nullopt;
  return stalls;
}

ProcessorStalls::ProcessorStalls(ProcessorStalls&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)) {}

ProcessorStalls::~ProcessorStalls() {
  if (fd_ >= 0) ::close(fd_);
}

std::optional<Duration> ProcessorStalls::Total() const {
  std::array<char, 256> buffer;
  const ssize_t got = ::pread(fd_, buffer.data(), buffer.size(), 0);
  if (got <= 0) return std::nullopt;
  std::string_view text(buffer.data(), static_cast<size_t>(got));
  if (!text.starts_with("some ")) return std::nullopt;
  text = text.substr(0, text.find('\n'));
  constexpr std::string_view kKey = " total=";
  const size_t at = text.find(kKey);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view number = text.substr(at + kKey.size());
  int64_t micros = 0;
  const auto [end, error] = std::from_chars(number.begin(), number.end(), micros);
  if (error != std::errc() || end != number.end() || micros < 0) return std::nullopt;
  return std::chrono::microseconds(micros);
}

}  // namespace weir
