// The virtual attributes of a layout: user.weir.layout.* (set on directories and empty files),
// weir.layout and weir.objects (read-only).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace weir::mds {

class Operation;
struct Inode;

inline constexpr std::string_view kLayoutPrefix = "user.weir.layout.";
inline constexpr std::string_view kWholeLayout = "weir.layout";
inline constexpr std::string_view kObjects = "weir.objects";
inline constexpr const char* kLayoutWords[] = {"stripe_unit", "stripe_count", "object_size",
                                               "pool"};

// `word` is what follows the prefix. kNoData: unknown word.
Result<std::string> GetLayoutWord(Operation& op, const Inode& inode, std::string_view word);
// Changes inode->rec; the caller stores it. kInvalid: on a file with data, a bad number, an unknown
// pool; kNotSupported: tier.
Status SetLayoutWord(Operation& op, Inode* inode, std::string_view word, std::string_view value);
// The directory follows its parent's layout of now again.
Status ResetLayout(Operation& op, Inode* directory);

std::string DescribeLayout(const Operation& op, const Inode& inode);

}  // namespace weir::mds
