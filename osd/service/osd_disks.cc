#include "osd/service/osd_disks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "common/base/log.h"
#include "common/base/units.h"
#include "common/disk/disk_contents.h"
#include "common/disk/disk_spec.h"
#include "osd/format/superblock_format.h"
#include "osd/service/format_osd.h"

namespace weir::osd {

namespace {

Status AnnounceUpgrade(BlockDevice& device) {
  WEIR_ASSIGN_OR_RETURN(const uint32_t version, ReadFormatVersion(device));
  if (version == kFormatVersion) return {};
  WEIR_LOG_INFO(
      "{}: turns from disk format {} into {}; from now on older programs refuse it, and there is "
      "no "
      "way back",
      device.name(), version, kFormatVersion);
  return {};
}

}  // namespace

Result<OsdDisks> OsdDisks::Open(const std::vector<TierSpec>& disks, Reactor* reactor) {
  OsdDisks opened;
  opened.reactor_ = reactor;
  for (const TierSpec& spec : disks) {
    WEIR_ASSIGN_OR_RETURN(const DiskSpec disk, ParseDiskSpec(spec.disk));
    WEIR_ASSIGN_OR_RETURN(auto device, OpenDisk(spec.disk, reactor));
    opened.disks_.push_back({.name = spec.name, .path = disk.path, .device = std::move(device)});
  }
  return opened;
}

Result<OsdDisks> OsdDisks::Look(const std::vector<TierSpec>& disks) {
  OsdDisks seen;
  for (const TierSpec& spec : disks) {
    WEIR_ASSIGN_OR_RETURN(const DiskSpec disk, ParseDiskSpec(spec.disk));
    WEIR_ASSIGN_OR_RETURN(
        auto device,
        OpenDevice(disk.path,
                   {.read_only = true, .direct = false, .exclusive = false, .threads = false}));
    seen.disks_.push_back({.name = spec.name, .path = disk.path, .device = std::move(device)});
  }
  return seen;
}

Result<OsdIdentity> OsdDisks::Identify() {
  for (Disk& disk : disks_) {
    WEIR_ASSIGN_OR_RETURN(disk.identity, ReadIdentity(*disk.device));
  }
  WEIR_RETURN_IF_ERROR(CheckIdentities());
  std::sort(disks_.begin(), disks_.end(), [](const Disk& a, const Disk& b) {
    return a.identity.tier_index < b.identity.tier_index;
  });
  return Whole();
}

OsdIdentity OsdDisks::Whole() const {
  OsdIdentity whole = disks_.front().identity;
  for (const Disk& disk : disks_) {
    whole.token_rate = std::min(whole.token_rate, disk.identity.token_rate);
  }
  return whole;
}

Status OsdDisks::CheckIdentities() const {
  const OsdIdentity& first = disks_.front().identity;
  for (const Disk& disk : disks_) {
    const OsdIdentity& found = disk.identity;
    if (IsProvisional(found)) {
      return {ErrorCode::kInvalid,
              disk.device->name() + " was never completely formatted: run weir-osd --mkfs again"};
    }
    if (disk.name.empty() && found.tiers > 0) {
      return {ErrorCode::kInvalid,
              fmt::format("{} is tier '{}' of {}: name them all with --tier-disk",
                          disk.device->name(), found.tier, found.tiers)};
    }
    if (found.tier != disk.name || found.osd_uuid != first.osd_uuid) {
      const std::string what = found.tier.empty() ? "the only disk" : "tier '" + found.tier + "'";
      return {ErrorCode::kInvalid, disk.device->name() + " is " + what + " of OSD " +
                                       found.osd_uuid + ", not tier '" + disk.name + "' of OSD " +
                                       first.osd_uuid + " (--tier-disk names them as at mkfs)"};
    }
    if (found.tiers > 0 && found.tiers != disks_.size()) {
      return {ErrorCode::kInvalid, "OSD " + found.osd_uuid + " has " + std::to_string(found.tiers) +
                                       " tiers, and --tier-disk names " +
                                       std::to_string(disks_.size())};
    }
  }
  return {};
}

std::vector<TierDevice> OsdDisks::Devices() const {
  std::vector<TierDevice> devices;
  devices.reserve(disks_.size());
  for (const Disk& disk : disks_) devices.push_back({disk.name, disk.device.get()});
  return devices;
}

Status OsdDisks::CheckFree() {
  const std::set<std::string> unfinished = UnfinishedOn(Devices());
  for (Disk& disk : disks_) {
    if (disk.device->size() < kMinDeviceBytes) {
      return {ErrorCode::kNoSpace,
              fmt::format("{}: {} bytes are too few; an OSD takes at least {}", disk.device->name(),
                          disk.device->size(), FormatSize(kMinDeviceBytes))};
    }
    const Result<OsdIdentity> before = ReadIdentity(*disk.device);
    if (before.ok() && unfinished.contains(before->osd_uuid)) continue;
    WEIR_RETURN_IF_ERROR(CheckUnused(*disk.device));
    WEIR_ASSIGN_OR_RETURN(const uint64_t data, FindData(disk.path));
    if (data == UINT64_MAX) continue;
    return {ErrorCode::kExists, fmt::format("{}: holds something of an unknown kind (the byte at "
                                            "{} is not zero)",
                                            disk.device->name(), data)};
  }
  return {};
}

Result<OsdIdentity> OsdDisks::Format(net::RpcClient& mds, const FormatOsdOptions& options) {
  return FormatOsd(Devices(), mds, options);
}

Result<OsdIdentity> OsdDisks::OpenStores(const StoreOptions& options) {
  WEIR_ASSIGN_OR_RETURN(OsdIdentity identity, Identify());
  StoreOptions part = options;
  part.memory_bytes = options.memory_bytes / disks_.size();
  part.loop = reactor_;
  for (Disk& disk : disks_) {
    disk.scratch = std::make_unique<ScratchDevice>(*disk.device);
    WEIR_RETURN_IF_ERROR(AnnounceUpgrade(*disk.device));
    WEIR_ASSIGN_OR_RETURN(disk.store, OpenStore(*disk.scratch, part));
    WEIR_ASSIGN_OR_RETURN(disk.identity, ReadIdentity(*disk.scratch));
  }
  identity.life = disks_.front().identity.life;  // it is opened whenever the others are
  return identity;
}

Status OsdDisks::Keep() {
  for (Disk& disk : disks_) WEIR_RETURN_IF_ERROR(disk.scratch->Keep());
  return {};
}

Status OsdDisks::CloseStores() {
  Status first_error;
  for (Disk& disk : disks_) {
    if (disk.store == nullptr) continue;
    if (Status status = disk.store->Close(); first_error.ok()) first_error = status;
    disk.store.reset();
  }
  return first_error;
}

std::vector<OsdServer::Tier> OsdDisks::tiers() const {
  std::vector<OsdServer::Tier> tiers;
  for (const Disk& disk : disks_) {
    if (disk.name.empty()) continue;
    tiers.push_back({.name = TierName::FromWire(disk.name),
                     .store = disk.store.get(),
                     .device = disk.device.get(),
                     .token_rate = disk.identity.token_rate});
  }
  return tiers;
}

}  // namespace weir::osd
