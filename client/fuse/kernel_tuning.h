// What FUSE_INIT does not reach, by sysfs: whether a mount is there, its read-ahead and its queue
// limits.
#pragma once

#include <cstdint>
#include <string>

namespace weir::client {

// The device number of the mount at `mountpoint` ("0:57"), from the mount table so that nobody is
// asked; empty when it is not mounted.
std::string DeviceOfMount(const std::string& mountpoint);

// That file system is mounted, here or in whatever other namespace, or still open behind a lazy
// unmount.
bool KernelHas(const std::string& device);

// A path as that table writes it, in plain.
std::string UnescapeMount(const std::string& escaped);

// Each returns whether this process was permitted to.
bool RaiseReadAhead(const std::string& device, uint64_t kib);
bool RaiseQueueLimits(const std::string& device, uint32_t requests);
// Ends the kernel's side at once: everybody waiting there gets an error.
bool AbortConnection(const std::string& device);

}  // namespace weir::client
