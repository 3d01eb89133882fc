#include "osd/service/tier_disks.h"

#include <algorithm>

#include "common/disk/disk_spec.h"
#include "osd/service/format_osd.h"

namespace weir::osd {

Result<TierDisks> TierDisks::Open(const std::vector<TierSpec>& tiers) {
  TierDisks disks;
  for (const TierSpec& tier : tiers) {
    Disk& disk = disks.disks_.emplace_back();
    disk.name = tier.name;
    WEIR_ASSIGN_OR_RETURN(disk.device, OpenDisk(tier.disk));
  }
  return disks;
}

Result<bool> TierDisks::AreNew() {
  size_t fresh = 0;
  for (Disk& disk : disks_) {
    const auto identity = ReadIdentity(*disk.device);
    if (!identity.ok() && identity.code() != ErrorCode::kInvalid) return identity.status();
    fresh += !identity.ok() || IsProvisional(*identity) ? 1 : 0;
  }
  // A format that was interrupted between two identities leaves some of each.
  return fresh > 0;
}

Result<OsdIdentity> TierDisks::Format(net::RpcClient& mds, const FormatOsdOptions& options) {
  std::vector<TierDevice> devices;
  devices.reserve(disks_.size());
  for (const Disk& disk : disks_) devices.push_back({disk.name, disk.device.get()});
  return FormatTiers(devices, mds, options);
}

Status TierDisks::ReadIdentities() {
  for (Disk& disk : disks_) {
    WEIR_ASSIGN_OR_RETURN(disk.identity, ReadIdentity(*disk.device));
    const OsdIdentity& found = disk.identity;
    const OsdIdentity& first = disks_.front().identity;
    if (IsProvisional(found)) {
      return {ErrorCode::kInvalid,
              disk.device->name() + " was never completely formatted: run weir-osd --mkfs again"};
    }
    if (found.tier != disk.name || found.osd_uuid != first.osd_uuid) {
      const std::string what = found.tier.empty() ? "the only disk" : "tier '" + found.tier + "'";
      return {ErrorCode::kInvalid, disk.device->name() + " is " + what + " of OSD " +
                                       found.osd_uuid + ", not tier '" + disk.name + "' of OSD " +
                                       first.osd_uuid + " (--tier-disk names them as at mkfs)"};
    }
    if (found.tiers != disks_.size()) {
      return {ErrorCode::kInvalid, "OSD " + found.osd_uuid + " has " + std::to_string(found.tiers) +
                                       " tiers, and --tier-disk names " +
                                       std::to_string(disks_.size())};
    }
  }
  return {};
}

Result<OsdIdentity> TierDisks::OpenStores(const StoreOptions& options) {
  WEIR_RETURN_IF_ERROR(ReadIdentities());
  std::sort(disks_.begin(), disks_.end(), [](const Disk& a, const Disk& b) {
    return a.identity.tier_index < b.identity.tier_index;
  });
  StoreOptions part = options;
  part.memory_bytes = options.memory_bytes / disks_.size();
  OsdIdentity whole = disks_.front().identity;
  for (Disk& disk : disks_) {
    whole.token_rate = std::min(whole.token_rate, disk.identity.token_rate);
    WEIR_ASSIGN_OR_RETURN(disk.store, OpenStore(*disk.device, part));
  }
  return whole;
}

Status TierDisks::CloseStores() {
  Status first_error;
  for (Disk& disk : disks_) {
    if (disk.store == nullptr) continue;
    if (Status status = disk.store->Close(); first_error.ok()) first_error = status;
    disk.store.reset();
  }
  return first_error;
}

std::vector<OsdServer::Tier> TierDisks::tiers() const {
  std::vector<OsdServer::Tier> tiers;
  tiers.reserve(disks_.size());
  for (const Disk& disk : disks_) {
    tiers.push_back({.name = TierName::FromWire(disk.name),
                     .store = disk.store.get(),
                     .device = disk.device.get(),
                     .token_rate = disk.identity.token_rate});
  }
  return tiers;
}

}  // namespace weir::osd
