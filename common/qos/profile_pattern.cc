#include "common/qos/profile_pattern.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "common/base/units.h"

namespace weir {
namespace {

constexpr uint64_t kBlock = 4096;
constexpr uint64_t kLargest = 4 << 20;

bool GoodSize(uint64_t size) {
  return size >= kBlock && size <= kLargest && size % kBlock == 0;
}

// The text up to the mark, which goes with it.
std::string_view TakeUpTo(char mark, std::string_view* text) {
  const size_t end = std::min(text->find(mark), text->size());
  const std::string_view taken = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return taken;
}

bool TakeNumber(std::string_view text, uint32_t* number) {
  if (text.ends_with('%')) text.remove_suffix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool TakeSizes(std::string_view list, ProfilePattern* pattern) {
  pattern->sizes.clear();
  while (!list.empty()) {
    const Result<uint64_t> size = ParseSize(TakeUpTo('+', &list));
    if (!size.ok()) return false;
    pattern->sizes.push_back(*size);
  }
  return true;
}

bool TakeOption(std::string_view option, ProfilePattern* pattern) {
  const std::string_view name = TakeUpTo('=', &option);
  if (name == "writes") return TakeNumber(option, &pattern->write_percent);
  if (name == "sequential") return TakeNumber(option, &pattern->sequential_percent);
  return name == "depth" && TakeNumber(option, &pattern->depth);
}

bool Take(std::string_view text, ProfilePattern* pattern) {
  std::string_view kind = TakeUpTo(',', &text);
  const bool sized = kind.find(':') != std::string_view::npos;
  const std::string_view name = TakeUpTo(':', &kind);
  if (name == "read") {
    pattern->write_percent = 0;
  } else if (name == "write") {
    pattern->write_percent = 100;
  } else if (name != "mixed") {
    return false;
  }
  if (sized && !TakeSizes(kind, pattern)) return false;
  while (!text.empty()) {
    if (!TakeOption(TakeUpTo(',', &text), pattern)) return false;
  }
  return true;
}

}  // namespace

Status CheckProfilePattern(const ProfilePattern& pattern) {
  constexpr uint32_t kAll = 100;
  const auto& sizes = pattern.sizes;
  const bool good = pattern.write_percent <= kAll && pattern.sequential_percent <= kAll &&
                    pattern.depth >= 1 && pattern.depth <= ProfilePattern::kMostDepth &&
                    !sizes.empty() && sizes.size() <= ProfilePattern::kMostSizes &&
                    std::all_of(sizes.begin(), sizes.end(), GoodSize);
  return good ? Status::Ok() : Status(ErrorCode::kInvalid, "a pattern that is out of its ranges");
}

Result<ProfilePattern> ParseProfilePattern(std::string_view text) {
  ProfilePattern pattern;
  if (Take(text, &pattern) && CheckProfilePattern(pattern).ok()) return pattern;
  return Status(
      ErrorCode::kInvalid,
      "pattern '" + std::string(text) +
          "': wants mixed, read or write, then maybe sizes from 4KiB to 4MiB in blocks of "
          "4KiB, writes=PERCENT, sequential=PERCENT and depth=1..256, as in "
          "mixed:64KiB+4KiB,writes=30,sequential=50,depth=32");
}

}  // namespace weir
