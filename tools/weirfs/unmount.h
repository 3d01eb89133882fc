// What umount.fuse.weirfs does: unmounts, and then waits until weirfs has stored what it held.
//
// umount(8) looks for that helper when it knows the type fuse.weirfs, which is in the mount table.
// By root, for a directory, it asks the file system instead, which is "fuse" then, unless the user
// options of that mount are in a table of its own.
#pragma once

#include <string>
#include <vector>

namespace weir::weirfs {

// Runs umount(8) with these words, without this helper. Its exit code where that fails; else 0, or
// 64 where the mount is gone and not all of it is stored.
int Unmount(const std::vector<std::string>& words);

// Has mount(8) write an option of no meaning there, when root has mounted. Where it cannot in two
// seconds, as anybody may hold that table's lock, umount(8) may not wait.
void ListForUmount(const std::string& mountpoint);

}  // namespace weir::weirfs
