// CheckStore: whether what lies on an OSD's device holds together (weir-osd --fsck).
//
//   superblock      a copy is damaged, or older than the other by more than a start writes
//   volume, tables  RocksDB's files: space given twice, damaged tables
//   record          a key or value that does not decode, numbers that cannot be
//   double-use      a block that two places claim and do not share: neither can be trusted
//   outside         a block outside of the data region
//   space           more is kept for blocks that are not written than the region has
//   leak            records that no object reaches: their space is never freed
//   index           a slot that does not list an object with its version, or lists what is not
//   there lost            an object whose head names a record that is missing behind-end blocks or
//   bytes behind the end of their object checksum        (deep) a block that is not what was
//   written
//
// A device that is not repaired is not written to: recovery runs in memory. Repaired is what can be
// without losing anything: a superblock from the other copy, leaks, the index.
// Threads: one; nobody else may have the device. Memory: a bit per block.
#pragma once

#include "common/base/result.h"
#include "common/fsck/findings.h"

namespace weir {
class BlockDevice;
}

namespace weir::osd {

struct CheckOptions {
  bool deep = false;    // read every block and every table, compare checksums
  bool repair = false;  // the device must be writable
};

// Facts: capacity_bytes, used_bytes (what a store that opens this device takes for used),
// leaked_bytes, kept_bytes (allocated and not written), objects, waiting_blocks (small writes not
// yet at their places), verified_bytes; all of before the repair. Errors: what ReadIdentity says of
// a device that is no OSD; kIo.
Result<CheckReport> CheckStore(BlockDevice& device, const CheckOptions& options);

}  // namespace weir::osd
