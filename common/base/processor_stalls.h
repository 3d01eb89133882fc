// ProcessorStalls: how long threads on this machine, of whomever, have waited for a processor, as
// the kernel counts it: time in which at least one that could run did not, averaged over the
// processors that had work.
//
// Source: /proc/pressure/cpu, the sum of "some" (Linux since 4.20, where pressure is counted).
// Threads: one. Errors: where nothing is counted there is nothing to open.
#pragma once

#include <optional>
#include <string>

#include "common/base/time.h"

namespace weir {

class ProcessorStalls {
 public:
  static std::optional<ProcessorStalls> Open(const std::string& path = "/proc/pressure/cpu");
  ProcessorStalls(ProcessorStalls&& other) noexcept;
  ProcessorStalls& operator=(ProcessorStalls&&) = delete;
  ~ProcessorStalls();

  // Since the machine started. Empty: it cannot be read any more.
  [[nodiscard]] std::optional<Duration> Total() const;

 private:
  explicit ProcessorStalls(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace weir
