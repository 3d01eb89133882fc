// DataDirectory: whose a directory is that `weirfs --data`, `weir-dev --dir` or `weir-mds --data`
// is given, and whether what lies in it is whole. They ask before they open, make or lock anything.
//
//   DIR/owner.json   {"version":1,"program":"weirfs","state":"whole","cluster":"UUID"}
//   DIR/lock         locked (flock) by the program that works on DIR
//
//   state        is                                        a start
//   new          missing, or holds nothing of anybody      makes it: the record first, as "making"
//   being made   recorded so; nothing was ever served      goes on with making
//   whole        recorded so, or by an earlier version     opens it; makes nothing, formats nothing
//   damaged      whole, and a part is missing or wrong     names the part, changes nothing
//   in use       DIR/lock or a disk is locked              names the process, changes nothing
//   another's    of another program, or other files        says whose it is, changes nothing
//
// Earlier versions left no owner.json: disks.json, weir-dev.json or a lone mds.img tells.
//
// Threads: any.
// Errors:  kExists: another's; kCorrupt: damaged, or of a newer version; kAccess and the like: it
//          cannot be read. They name the way out.
#pragma once

#include <string>
#include <vector>

#include "common/base/result.h"

namespace weir {

enum class DataOwner { kWeirfs, kWeirDev, kWeirMds };
enum class DataState { kNew, kMaking, kWhole };

struct DataRecord {
  DataOwner owner = DataOwner::kWeirfs;
  DataState state = DataState::kNew;
  std::string cluster;    // empty: not known
  bool recorded = false;  // false: new, or told by its other files
};

// Looks, and changes nothing. `expected`: disks that the command line names, and that therefore may
// lie in a new one; kInvalid if DIR needs such a name for something else.
Result<DataRecord> LookAtDirectory(const std::string& dir, DataOwner asker,
                                   const std::vector<std::string>& expected = {});
Status WriteRecord(const std::string& dir, const DataRecord& record);

// The one of two directories that is, or lies in, or lies around the other: an empty string when
// they have nothing to do with each other. For a mountpoint, which must not hide its own data.
std::string OverlapOf(const std::string& data, const std::string& mountpoint);

// A path as it is recorded in DIR, so that DIR can be moved: relative if it lies in DIR.
std::string PathToRecord(const std::string& dir, const std::string& path);
// The other way round.
std::string PathFromRecord(const std::string& dir, const std::string& recorded);

}  // namespace weir
