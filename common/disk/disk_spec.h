// DiskSpec: what people write after --disk. A path means that disk. An emulated disk keeps its data
// in an image file and takes the time that a model says:
//
//   hdd:WHERE[,OPTION]...    a disk with mechanics (model/hdd.h)
//   ssd:WHERE[,OPTION]...    a flash disk (model/ssd.h)
//
// WHERE is the path of an image file, or a SIZE where the program makes the image itself. Options:
//   model=NAME   hdd: one of HddModelNames() [sata-7200]; ssd: ssd-200
//   rate=RATE    bytes per second read and written; ssd also read-rate=, write-rate=
//   iops=N       ssd: one-page reads per second, where that is less than the rate gives
//   channels=N   ssd: how many pages at a time [8]; 1: one request after the other
//   buffer=SIZE  the write cache or buffer; hdd: 0 is off
//   ncq=N        hdd: how many requests the disk orders by itself [of the model]; 1: as they came
//   flush=host   a flush goes to the image too; otherwise its time is the model's, and data
//                survives the program but not the host
//
// Errors: kInvalid names the word, what is wrong and what is right.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "common/base/result.h"
#include "common/disk/block_device.h"
#include "common/disk/model/hdd.h"
#include "common/disk/model/ssd.h"

namespace weir {

struct DiskSpec {
  std::string path;         // empty: `size` was given instead
  uint64_t image_size = 0;  // of an image that the program makes
  std::string options;      // as written, with their comma in front
  bool flush_host = false;
  std::variant<std::monostate, model::HddModel, model::SsdModel> model;

  [[nodiscard]] bool emulated() const { return model.index() != 0; }
};

Result<DiskSpec> ParseDiskSpec(std::string_view text);

// The same words with another WHERE, for a program that makes the image or makes a path absolute.
std::string WithPath(std::string_view spec, std::string_view path);

// Opens what `text` says. An image that does not exist is kNotFound. `reactor`: of OpenOptions; an
// emulated disk, too, answers there.
Result<std::unique_ptr<BlockDevice>> OpenDisk(const std::string& text, Reactor* reactor = nullptr);

// For --help.
inline constexpr const char* kDiskSpecHelp =
    "Emulated disks keep their data in an image and take the time of a model:\n"
    "  hdd:SIZE|IMAGE[,OPTION]...  ssd:SIZE|IMAGE[,OPTION]...\n"
    "  model=NAME (hdd: sata-7200, 6y080p0, ultra320-15k, dtla-307075 ...; ssd: ssd-200)\n"
    "  rate=RATE read-rate=RATE write-rate=RATE iops=N channels=N buffer=SIZE ncq=N\n"
    "  flush=host (otherwise data survives the programs, not a crash of this machine)";

}  // namespace weir
