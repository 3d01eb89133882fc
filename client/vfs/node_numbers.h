// NodeNumbers: by which numbers the kernel of a shared mount knows directories, and where.
//
// The kernel has a directory in one place. When a look finds one that it knows in another place, it
// moves it there, for which it wants locks that whoever looks may hold: the look that a rename from
// one directory into another begins with, or one beside such a rename, ends with ESTALE then, every
// time (d_splice_alias). So a directory that another mount has moved gets another number in its new
// place, and the kernel takes it for another inode with the same st_ino. The old one stays in the
// old place, for who stands there, until the kernel has forgotten it.
//
// A number is an inode's with a mark in its highest bits; the first mark is 0. Files may have many
// places, and have one number.
//
// Threads: any. Memory: as many places as the kernel knows directories.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/base/ids.h"

namespace weir::client {

class NodeNumbers {
 public:
  struct Place {
    uint64_t parent = 0;  // its number
    std::string name;
    friend bool operator==(const Place&, const Place&) = default;
  };
  struct Given {
    uint64_t number = 0;
    // Of one that is given for the first time: where else the kernel has the directory, under which
    // numbers. It shall forget those places, and what it keeps of names and attributes.
    std::vector<Place> elsewhere;
    std::vector<uint64_t> others;
  };

  static InodeId InodeOf(uint64_t number) { return InodeId(number & kInode); }

  // The kernel is told of a directory there: counts one. "." and "..", which it asks for to open a
  // file handle, are no places: it takes such a directory anywhere once.
  Given Give(InodeId directory, const Place& place);
  // A rename of this mount has moved it: the kernel takes it along.
  void Moved(InodeId directory, const Place& from, const Place& to);
  void Forget(uint64_t number, uint64_t count);

  // Under which the kernel may know it.
  [[nodiscard]] std::vector<uint64_t> Of(InodeId inode) const;
  // What is changed under one number the kernel does not see under the other: it shall keep
  // nothing.
  [[nodiscard]] bool Several(InodeId directory) const;

 private:
  static constexpr uint32_t kInodeBits = 48;  // numbers are given out one after the other
  static constexpr uint64_t kInode = (uint64_t{1} << kInodeBits) - 1;
  struct Node {
    uint64_t number;
    Place place;
    uint64_t lookups;
  };
  static uint64_t Unused(InodeId directory, const std::vector<Node>& nodes);

  mutable std::mutex mutex_;
  std::unordered_map<InodeId, std::vector<Node>> directories_;
};

}  // namespace weir::client
