// FreedMemory: what a daemon does with the buffers of requests that are done.
#pragma once

namespace weir {

// From now on buffers of up to 32 MiB come from the heap, and up to 64 MiB of each heap's end that
// are free stay in the process. By default the C library gives memory back to the kernel as soon as
// some MiB are free, and a daemon that moves a MiB per request gets it anew for the next one:
// 100,000 page faults a second, each of which zeroes a page, and all of whose mappings the threads
// of the process wait for. At the beginning of main.
void KeepFreedMemory();

}  // namespace weir
