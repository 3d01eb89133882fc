// What a mount's source says: ENDPOINT[:/SUBTREE], as people type it and as the mount table keeps
// it.
#pragma once

#include <string>

#include "common/base/result.h"

namespace weir::cli {

struct Source {
  std::string endpoint;  // not looked at
  std::string subtree;   // a/b; empty: all of it
};
// The endpoint ends at the first ":/" behind its scheme and, of an IPv6 host, its ']'. Everything
// behind belongs to the subtree, also further ":/". kInvalid: the subtree has a "..".
Result<Source> SplitSource(const std::string& text);

}  // namespace weir::cli
