// An image file and the loop devices over it are one disk under two names, of which locks know only
// one: what OpenDevice does so that nobody has it twice.
#pragma once

#include <string>

namespace weir {

// A descriptor of the file below a loop device, to be locked with the device; -1: not a loop
// device, or its file cannot be reached.
int OpenFileBelowLoop(const std::string& device);
// "/dev/loopN" that shows this file; empty: there is none.
std::string LoopOverFile(const std::string& path);

}  // namespace weir
