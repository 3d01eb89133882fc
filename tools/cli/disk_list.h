// DiskList: which disks a data directory has, and whether a command line asks for the same ones;
// for weirfs --data and weir-dev. The file is that of weirfs, DIR/disks.json:
//
//   {"version":2,
//    "disks":[{"path":"osd.0.img","is_image":true,"uuid":"..."},     in the order of the OSD ids
//             {"path":"","is_image":false,"uuid":"...","tiers":[{"name":"ssd","disk":"..."},
//             ...]}],
//    "images":[{"name":"osd.0.img","size":8589934592}]}              those that are ours to make
//
// Paths are as disk_spec.h has them; what lies in DIR is named relative to it, so that DIR can be
// moved. Version 1 has neither uuid nor images, and paths of images only are relative.
//
// Errors: kCorrupt names the file and what is wrong with it; kInvalid: contradicts what is there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/disk/tier_spec.h"

namespace weir::cli {

// What the command line asks for.
struct DisksWanted {
  size_t osds = 0;                 // image files; 0: one, unless disks are named
  uint64_t osd_size = 0;           // of an image file; 0: not said
  std::vector<std::string> disks;  // as disk_spec.h has them, paths absolute
  std::vector<std::string> tiers;  // as tier_spec.h has them, paths absolute; one for each OSD

  [[nodiscard]] bool any() const { return osds > 0 || !disks.empty() || !tiers.empty(); }
};

struct DiskList {
  struct Disk {
    std::string path;
    bool is_image = false;
    std::string uuid{};             // of its OSD; empty: not recorded
    std::vector<TierSpec> tiers{};  // instead of a path
  };
  struct Image {
    std::string name;
    uint64_t size = 0;  // 0: not said
  };
  std::vector<Disk> disks;
  std::vector<Image> images;
};

std::string DiskListPath(const std::string& dir);
// kNotFound: there is none.
Result<DiskList> LoadDiskList(const std::string& dir);
Status SaveDiskList(const std::string& dir, const DiskList& list);

// kNoSpace unless the images, whose sizes are known, fit into DIR (or where it is to be) beside
// `more` bytes.
Result<uint64_t> FreeBytes(const std::string& dir);
Status CheckRoom(const std::string& dir, const DiskList& list, uint64_t more);

// kInvalid: the same disk twice, or an image that is no whole number of blocks.
Result<DiskList> PlanDisks(const std::string& dir, const DisksWanted& wanted);
// Whether what is asked for is what is there; sizes are those of the files.
Status CheckSameDisks(const std::string& dir, const DiskList& known, const DisksWanted& wanted);

// The disks of an OSD as osd/service/osd_disks.h wants them, paths absolute.
Result<std::vector<TierSpec>> PartsOf(const std::string& dir, const DiskList::Disk& disk);
// Those paths of the disks that are not ours to make.
Result<std::vector<std::string>> NamedPaths(const DisksWanted& wanted);

}  // namespace weir::cli
