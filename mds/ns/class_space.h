// What the files of each class hold, and whether there is room for more: a class's capacity.
//
// A regular file counts against one class with its size, holes included, as it was last reported or
// set, and with what is allocated behind its end. Which: the class of the nearest tag, else that of
// whoever wrote it, when its size is reported or set; a file that finds no room in its new class
// stays with the old one. Sums are stored with the sizes, in the same batch, so that no crash parts
// them.
//
// Who writes beyond what the file is charged for asks first (Grow) and is told how far he may go;
// what he was told counts as taken (size_grants.h). So the sum over a class's files never exceeds
// its capacity, but for files that sessions held grants on when the MDS restarted. Overwriting,
// cutting and removing never need room.
// Threads: under the NamespaceDb lock. Errors: kQuota names class and bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/result.h"

namespace weir::mds {

class Operation;
struct Inode;

// Whose I/O it is. `claimed`: by the mount, where no tag says so.
Result<uint32_t> ChargedClass(Operation& op, const Inode& inode, uint32_t claimed);
// Charges the file for how far it reaches; the caller stores it.
Status ChargeSize(Operation& op, Inode* inode, uint32_t claimed);
// kQuota: its class has no room for a file that reaches so far.
Status CheckRoom(Operation& op, const Inode& inode, uint32_t claimed, uint64_t end);
// The file goes.
Status DropCharge(Operation& op, const Inode& inode);

struct Room {
  uint32_t class_id = 0;
  uint64_t end = UINT64_MAX;  // to where the file may reach now; without a capacity: no bound
};
// kQuota when that is before `end`.
Result<Room> RoomFor(Operation& op, const Inode& inode, uint32_t claimed, uint64_t end);

// What the classes with a capacity may still come to hold beyond what they do.
Result<uint64_t> PromisedSpace(Operation& op, const std::vector<uint32_t>& classes);

Result<uint64_t> HeldBy(Operation& op, uint32_t class_id);

}  // namespace weir::mds
