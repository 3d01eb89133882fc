// ProfilePattern: the workload that a disk is measured for (AQuA §5.3: the token rate is that of
// the expected workload, and that is for the operator to say).
//
//   mixed | read | write [:SIZE]     half of it writes, none, all; SIZE instead of 512, 64 and 4
//   KiB
//
// Errors: kInvalid names the word and what is right.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/base/result.h"

namespace weir {

struct ProfilePattern {
  uint32_t write_percent = 50;
  uint64_t size = 0;  // of a request, a multiple of 4096; 0: 512, 64 and 4 KiB, equally often
};

Result<ProfilePattern> ParseProfilePattern(std::string_view text);

}  // namespace weir
