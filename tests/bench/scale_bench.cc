// How fast the simulator runs 1,000 OSDs x 10,000 clients x 1,000 classes, and what it holds:
// events and requests per second of wall time, resident memory. One line; the numbers of the run
// itself are those of `weir-sim run E54`.
#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <string>

#include "tools/sim/experiments/scale.h"

namespace {

// VmHWM of this process, in MiB.
double PeakMemory() {
  std::ifstream status("/proc/self/status");
  std::string word;
  double kib = 0;
  while (status >> word) {
    if (word == "VmHWM:" && status >> kib) break;
  }
  return kib / 1024;
}

}  // namespace

int main() {
  const auto start = std::chrono::steady_clock::now();
  const weir::sim::ScaleResult result = weir::sim::RunScale({});
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  fmt::print(
      "10 virtual s in {:.1f} s: {:.2f} M requests/s, {:.2f} M events/s, {:.0f} ns per request; "
      "peak memory {:.0f} MiB; {} marks in 10,000 coordinators; fairness error {:.4f} worst, "
      "{:.4f} mean\n",
      wall.count(), static_cast<double>(result.requests) / wall.count() / 1e6,
      static_cast<double>(result.events) / wall.count() / 1e6,
      wall.count() * 1e9 / static_cast<double>(result.requests), PeakMemory(), result.marks,
      result.worst_error, result.mean_error);
  return 0;
}
