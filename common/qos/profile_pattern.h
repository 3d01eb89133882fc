// ProfilePattern: the workload that a disk is measured for (AQuA §5.3: the token rate is that of
// the expected workload, and that is for the operator to say): sizes, reads and writes, random or
// in sequence, how many at a time.
//
//   mixed | read | write [:SIZE[+SIZE ..]] [,writes=PERCENT] [,sequential=PERCENT] [,depth=N]
//
// half of it writes, none, all; 512, 64 and 4 KiB, each equally often; all random; 16 at a time.
// Errors: kInvalid names the word and what is right.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace weir {

struct ProfilePattern {
  static constexpr uint32_t kMostDepth = 256;
  static constexpr size_t kMostSizes = 16;

  uint32_t write_percent = 50;
  std::vector<uint64_t> sizes = {512 << 10, 64 << 10, 4 << 10};  // multiples of 4096, equally often
  uint32_t sequential_percent = 0;  // of the requests: they go on where the last one ended
  uint32_t depth = 16;              // requests at a time
};

Result<ProfilePattern> ParseProfilePattern(std::string_view text);
// Ranges, for patterns that come from elsewhere.
Status CheckProfilePattern(const ProfilePattern& pattern);

}  // namespace weir
