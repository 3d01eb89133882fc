#include "tools/cli/disk_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "common/base/files.h"
#include "common/base/units.h"
#include "common/disk/block_device.h"
#include "common/disk/data_directory.h"
#include "common/disk/disk_spec.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kVersion = 2;

// The JSON library throws when a key is missing or a type is wrong; where it would convert, we do.
struct Wrong {
  std::string what;
};

const std::string& Text(const Json& json, const char* key) {
  return json.at(key).get_ref<const std::string&>();
}

uint64_t Number(const Json& json, const char* key) {
  const Json& value = json.at(key);
  if (!value.is_number_unsigned()) throw Wrong{fmt::format("'{}' is no size", key)};
  return value.get<uint64_t>();
}

const Json& List(const Json& json, const char* key) {
  const Json& value = json.at(key);
  if (!value.is_array()) throw Wrong{fmt::format("'{}' is no list", key)};
  return value;
}

void CheckSpec(const std::string& text, bool ours) {
  const auto spec = ParseDiskSpec(text);
  if (!spec.ok()) throw Wrong{spec.status().message()};
  if (spec->path.empty()) throw Wrong{"a disk without a path"};
  if (spec->path.find('\0') != std::string::npos) throw Wrong{"a path with a zero byte"};
  if (ours && spec->path.find('/') != std::string::npos) {
    throw Wrong{fmt::format("the image '{}' is not named in the directory", spec->path)};
  }
}

DiskList::Disk ParseDisk(const Json& json) {
  DiskList::Disk disk;
  disk.path = Text(json, "path");
  disk.is_image = json.at("is_image").get<bool>();
  if (json.contains("uuid")) disk.uuid = Text(json, "uuid");
  if (json.contains("tiers")) {
    for (const Json& tier : List(json, "tiers")) {
      disk.tiers.push_back({Text(tier, "name"), Text(tier, "disk")});
      CheckSpec(disk.tiers.back().disk, false);
    }
  }
  if (disk.tiers.empty()) CheckSpec(disk.path, disk.is_image);
  return disk;
}

DiskList Parse(const Json& json) {
  if (!json.is_object()) throw Wrong{"it is no object"};
  const uint64_t version = Number(json, "version");
  if (version < 1 || version > kVersion) {
    throw Wrong{
        fmt::format("its version is {}, and this program knows 1 to {}: use the one that "
                    "wrote it, or a newer",
                    version, kVersion)};
  }
  DiskList list;
  for (const Json& disk : List(json, "disks")) list.disks.push_back(ParseDisk(disk));
  if (list.disks.empty()) throw Wrong{"it names no disk"};
  if (version == 1) return list;
  for (const Json& image : List(json, "images")) {
    list.images.push_back({Text(image, "name"), Number(image, "size")});
    CheckSpec(list.images.back().name, true);
  }
  return list;
}

// A disk that is there, or an image that is ours to make.
Result<std::string> PlanDisk(const std::string& dir, const std::string& text,
                             const std::string& name, DiskList* list) {
  WEIR_ASSIGN_OR_RETURN(const DiskSpec spec, ParseDiskSpec(text));
  if (!spec.path.empty()) return WithPath(text, PathToRecord(dir, spec.path));
  list->images.push_back({name, spec.image_size});
  return WithPath(text, name);
}

std::string NameOf(const DiskList::Disk& disk) {
  return disk.tiers.empty() ? disk.path : FormatTierDisks(disk.tiers);
}

std::string NamesOf(const DiskList& list) {
  std::string names;
  for (const DiskList::Disk& disk : list.disks) {
    names += (names.empty() ? "" : " and ") + fmt::format("'{}'", NameOf(disk));
  }
  return names;
}

Status CheckDistinct(const DiskList& list) {
  std::set<std::string> paths;
  for (const DiskList::Disk& disk : list.disks) {
    std::vector<TierSpec> parts = disk.tiers;
    if (parts.empty()) parts.push_back({"", disk.path});
    for (const TierSpec& part : parts) {
      WEIR_ASSIGN_OR_RETURN(const DiskSpec spec, ParseDiskSpec(part.disk));
      if (paths.insert(spec.path).second) continue;
      return {ErrorCode::kInvalid, fmt::format("the disk '{}' is named twice", spec.path)};
    }
  }
  return Status::Ok();
}

// Relative and absolute names of what lies in DIR are the same disk, of version 1 too.
std::string Recorded(const std::string& dir, const DiskList::Disk& disk) {
  DiskList::Disk same = disk;
  const auto relative = [&](std::string* text) {
    const auto spec = ParseDiskSpec(*text);
    if (spec.ok()) *text = WithPath(*text, PathToRecord(dir, spec->path));
  };
  if (same.tiers.empty()) relative(&same.path);
  for (TierSpec& tier : same.tiers) relative(&tier.disk);
  return NameOf(same);
}

Status CheckSize(const std::string& dir, const DiskList::Image& image, const std::string& option) {
  std::error_code error;
  const uint64_t size = fs::file_size(dir + "/" + image.name, error);
  if (error || image.size == 0 || image.size == size) return Status::Ok();
  return {ErrorCode::kInvalid,
          fmt::format("{} of {} contradicts '{}/{}', which has {} already: leave it out, or take "
                      "another directory",
                      option, FormatSize(image.size), dir, image.name, FormatSize(size))};
}

}  // namespace

std::string DiskListPath(const std::string& dir) {
  return dir + "/disks.json";
}

Result<DiskList> LoadDiskList(const std::string& dir) {
  const std::string path = DiskListPath(dir);
  WEIR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  std::string wrong;
  try {
    return Parse(Json::parse(text));
  } catch (const Json::exception& error) {
    wrong = error.what();
  } catch (const Wrong& error) {
    wrong = error.what;
  }
  return {ErrorCode::kCorrupt,
          fmt::format("'{}' is damaged: {} (put back a copy of it)", path, wrong)};
}

Status SaveDiskList(const std::string& dir, const DiskList& list) {
  Json json = {{"version", kVersion}, {"disks", Json::array()}, {"images", Json::array()}};
  for (const DiskList::Disk& disk : list.disks) {
    Json& entry = json["disks"].emplace_back(
        Json{{"path", disk.path}, {"is_image", disk.is_image}, {"uuid", disk.uuid}});
    for (const TierSpec& tier : disk.tiers) {
      entry["tiers"].push_back({{"name", tier.name}, {"disk", tier.disk}});
    }
  }
  for (const DiskList::Image& image : list.images) {
    json["images"].push_back({{"name", image.name}, {"size", image.size}});
  }
  try {
    return WriteFileAtomically(DiskListPath(dir), json.dump() + "\n");
  } catch (const Json::exception& error) {
    return {ErrorCode::kInvalid,
            fmt::format("a path cannot be recorded in '{}': {}", DiskListPath(dir), error.what())};
  }
}

Result<DiskList> PlanDisks(const std::string& dir, const DisksWanted& wanted) {
  DiskList list;
  const size_t images = wanted.any() ? wanted.osds : 1;
  for (size_t i = 0; i < images; ++i) {
    list.images.push_back({fmt::format("osd.{}.img", i), wanted.osd_size});
    list.disks.push_back({.path = list.images.back().name, .is_image = true});
  }
  for (const std::string& text : wanted.disks) {
    DiskList::Disk disk;
    const std::string image = fmt::format("osd.{}.img", list.disks.size());
    WEIR_ASSIGN_OR_RETURN(disk.path, PlanDisk(dir, text, image, &list));
    disk.is_image = !list.images.empty() && list.images.back().name == image;
    list.disks.push_back(std::move(disk));
  }
  for (const std::string& text : wanted.tiers) {
    DiskList::Disk disk;
    WEIR_ASSIGN_OR_RETURN(disk.tiers, ParseTierDisks(text));
    for (TierSpec& tier : disk.tiers) {
      const std::string image = fmt::format("osd.{}.{}.img", list.disks.size(), tier.name);
      WEIR_ASSIGN_OR_RETURN(tier.disk, PlanDisk(dir, tier.disk, image, &list));
    }
    list.disks.push_back(std::move(disk));
  }
  WEIR_RETURN_IF_ERROR(CheckDistinct(list));
  for (const DiskList::Image& image : list.images) {
    if (image.size % kBlockSize == 0) continue;
    return Status(ErrorCode::kInvalid, fmt::format("an image of {} bytes: wants a multiple of {}",
                                                   image.size, kBlockSize));
  }
  return list;
}

Result<uint64_t> FreeBytes(const std::string& dir) {
  std::error_code error;
  fs::path at = dir;
  while (!fs::exists(at, error) && at.has_relative_path()) at = at.parent_path();
  const fs::space_info space = fs::space(at, error);
  if (!error) return space.available;
  return Status::FromErrno(error.value(), fmt::format("cannot look at '{}'", dir));
}

Status CheckRoom(const std::string& dir, const DiskList& list, uint64_t more) {
  uint64_t needed = more;
  for (const DiskList::Image& image : list.images) {
    needed = image.size > UINT64_MAX - needed ? UINT64_MAX : needed + image.size;
  }
  WEIR_ASSIGN_OR_RETURN(const uint64_t free, FreeBytes(dir));
  if (list.images.empty() || needed <= free) return Status::Ok();
  return {ErrorCode::kNoSpace,
          fmt::format("no room in '{}' for {} OSD images, {} with the MDS's: {} free there (name a "
                      "smaller --osd-size, a raw --disk, or another directory)",
                      dir, list.images.size(), FormatSize(needed), FormatSize(free))};
}

Status CheckSameDisks(const std::string& dir, const DiskList& known, const DisksWanted& wanted) {
  if (!wanted.any()) {
    if (wanted.osd_size == 0) return Status::Ok();
    for (const DiskList::Disk& disk : known.disks) {
      if (!disk.is_image || disk.path.find(':') != std::string::npos) continue;
      WEIR_RETURN_IF_ERROR(CheckSize(dir, {disk.path, wanted.osd_size}, "--osd-size"));
    }
    return Status::Ok();
  }
  WEIR_ASSIGN_OR_RETURN(const DiskList asked, PlanDisks(dir, wanted));
  bool same = asked.disks.size() == known.disks.size();
  for (size_t i = 0; same && i < asked.disks.size(); ++i) {
    same = Recorded(dir, asked.disks[i]) == Recorded(dir, known.disks[i]);
  }
  if (!same) {
    return {
        ErrorCode::kInvalid,
        fmt::format("'{}' has {} OSDs already, on {}, and --osds, --disk and --tier-disk ask "
                    "for {}, on {}: leave them out, or take another directory",
                    dir, known.disks.size(), NamesOf(known), asked.disks.size(), NamesOf(asked))};
  }
  for (const DiskList::Image& image : asked.images) {
    WEIR_RETURN_IF_ERROR(CheckSize(dir, image, "a size"));
  }
  return Status::Ok();
}

Result<std::vector<TierSpec>> PartsOf(const std::string& dir, const DiskList::Disk& disk) {
  std::vector<TierSpec> parts = disk.tiers;
  if (parts.empty()) parts.push_back({"", disk.path});
  for (TierSpec& part : parts) {
    WEIR_ASSIGN_OR_RETURN(const DiskSpec spec, ParseDiskSpec(part.disk));
    part.disk = WithPath(part.disk, PathFromRecord(dir, spec.path));
  }
  return parts;
}

Result<std::vector<std::string>> NamedPaths(const DisksWanted& wanted) {
  std::vector<std::string> texts = wanted.disks;
  for (const std::string& list : wanted.tiers) {
    WEIR_ASSIGN_OR_RETURN(const std::vector<TierSpec> tiers, ParseTierDisks(list));
    for (const TierSpec& tier : tiers) texts.push_back(tier.disk);
  }
  std::vector<std::string> paths;
  for (const std::string& text : texts) {
    WEIR_ASSIGN_OR_RETURN(const DiskSpec spec, ParseDiskSpec(text));
    if (!spec.path.empty()) paths.push_back(spec.path);
  }
  return paths;
}

}  // namespace weir::cli
