// The largest object, as a question about a range. Bytes. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/result.h"
#include "osd/store/object_store.h"

namespace weir::osd {

inline bool Fits(uint64_t offset, uint64_t length) {
  return offset <= kMaxObjectSize && length <= kMaxObjectSize - offset;
}

inline Status BeyondObject(const char* what) {
  return {ErrorCode::kInvalid, std::string(what) + " beyond the largest object"};
}

}  // namespace weir::osd
