#include "common/qos/virtual_disk.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace weir {
namespace {

constexpr std::array<std::pair<ClassType, std::string_view>, 4> kTypeWords{
    {{ClassType::kBestEffort, "best-effort"},
     {ClassType::kRentADisk, "rent-a-disk"},
     {ClassType::kLatency, "latency"},
     {ClassType::kThroughput, "throughput"}}};

}  // namespace

std::string_view ToText(ClassType type) {
  for (const auto& [kind, word] : kTypeWords) {
    if (kind == type) return word;
  }
  return "?";
}

Result<ClassType> ParseClassType(std::string_view text) {
  std::string there_is;
  for (const auto& [kind, word] : kTypeWords) {
    if (word == text) return kind;
    if (!there_is.empty()) there_is += ", ";
    there_is += word;
  }
  return Status(ErrorCode::kInvalid,
                "unknown type '" + std::string(text) + "' (there is: " + there_is + ")");
}

Status CheckVirtualDisk(const VirtualDisk& disk) {
  const auto bad = [](std::string text) { return Status(ErrorCode::kInvalid, std::move(text)); };
  if (disk.type == ClassType::kBestEffort) return Status::Ok();
  const std::string what = "a class of type " + std::string(ToText(disk.type));
  const bool has_share = disk.peak > 0 && disk.peak <= 1;
  if (!has_share && disk.peak_bytes_per_s == 0) {
    return bad(what +
               " needs its share of the disk, more than 0% and at most 100%, or the "
               "bandwidth of a disk like it (--peak)");
  }
  if (disk.type == ClassType::kLatency && disk.latency <= Duration::zero()) {
    return bad(what + " needs a bound (--latency)");
  }
  if (disk.type == ClassType::kThroughput) {
    if (disk.throughput_bytes_per_s == 0) return bad(what + " needs a rate (--throughput)");
    if (!(disk.tolerance >= 0 && disk.tolerance < 1)) {
      return bad(what + " may lend from 0% to less than 100% (--tolerance)");
    }
  }
  return Status::Ok();
}

double ShareOn(const VirtualDisk& disk, uint64_t token_rate) {
  if (disk.peak_bytes_per_s == 0) return disk.peak;
  if (token_rate == 0) return 0;
  return std::min(1.0,
                  static_cast<double>(disk.peak_bytes_per_s) / static_cast<double>(token_rate));
}

}  // namespace weir
