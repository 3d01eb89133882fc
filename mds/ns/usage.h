// How much lies below directories, and the quotas that limit it.
//
// Every directory record counts what is below it: entries and bytes (sizes of files, and what is
// allocated behind their ends), whatever has its primary link
// there. A change is counted in the directory itself, in the same batch as the change. Upwards it
// goes lazily: a directory remembers what its parent has been told, those that have told less than
// they know are in the table of untold ones, and in the background, or when somebody asks, they
// tell. Below a directory with a quota nothing is lazy: all counts up to the root move at once, so
// that a limit is exact.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace weir::mds {

class InodeRecord;
class Operation;
class TreeUsage;
struct Inode;

inline constexpr std::string_view kQuotaBytes = "user.weir.quota.bytes";
inline constexpr std::string_view kQuotaFiles = "user.weir.quota.files";
inline constexpr std::string_view kTreeUsage = "weir.rstats";

inline bool IsQuota(std::string_view name) {
  return name == kQuotaBytes || name == kQuotaFiles;
}

// What an inode adds to the directory of its primary link.
TreeUsage ShareOf(const InodeRecord& inode);
void AddUsage(const TreeUsage& more, int64_t times, TreeUsage* to);
bool IsZero(const TreeUsage& usage);
// Entries of every kind.
uint64_t EntriesOf(const TreeUsage& usage);

// Tells the ancestors all that `directory` knows. Errors: none of quotas.
Status TellUpwards(Operation& op, uint64_t directory);
// Lets at most `limit` untold directories tell; true when there may be more.
Result<bool> TellSome(Operation& op, size_t limit);
// Lets them all.
Status TellAll(Operation& op);

// The bytes that a file of this directory may still grow by; UINT64_MAX without a quota above.
Result<uint64_t> RoomBelow(Operation& op, uint64_t directory);

// Attributes; the caller stores the inode. A quota of 0 is none.
Status SetQuota(Operation& op, std::string_view name, std::string_view value, Inode* directory);
// kNoData when there is none.
Result<std::string> GetQuota(const Inode& directory, std::string_view name);
Result<std::string> DescribeUsage(Operation& op, uint64_t directory);

}  // namespace weir::mds
