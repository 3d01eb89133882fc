#include "osd/service/format_osd.h"

#include <fstream>

#include "common/disk/block_device.h"
#include "common/net/rpc.h"
#include "common/wire/mds.pb.h"
#include "osd/store/profile.h"

namespace weir::osd {
namespace {

constexpr Duration kMdsTimeout = std::chrono::seconds(10);

Result<wire::RegisterOsdReply> AskForId(net::RpcClient& mds, const OsdIdentity& identity,
                                        const std::vector<TierDevice>& tiers) {
  wire::RegisterOsdRequest request;
  request.set_osd_uuid(identity.osd_uuid);
  request.set_token_rate(identity.token_rate);
  uint64_t capacity = 0;
  for (const TierDevice& tier : tiers) {
    capacity += tier.device->size();
    if (tier.name.empty()) continue;
    wire::TierInfo* info = request.add_tiers();
    info->set_name(tier.name);
    info->set_capacity_bytes(tier.device->size());
  }
  request.set_capacity_bytes(capacity);
  WEIR_ASSIGN_OR_RETURN(const net::Reply reply,
                        mds.CallAndWait(wire::MDS_REGISTER_OSD, request.SerializeAsString(), {},
                                        {.timeout = kMdsTimeout}));
  wire::RegisterOsdReply answer;
  if (!answer.ParseFromString(reply.body) || answer.cluster_uuid().empty()) {
    return {ErrorCode::kBadMessage, "the MDS answered the registration with something else"};
  }
  return answer;
}

// Under a provisional identity, measured.
Result<OsdIdentity> FormatOne(BlockDevice& device, OsdIdentity identity,
                              const std::set<std::string>& unfinished,
                              const FormatOsdOptions& options) {
  const Result<OsdIdentity> before = ReadIdentity(device);
  MkfsOptions mkfs;
  mkfs.identity = identity;
  mkfs.store = options.store;
  mkfs.force = options.force || (before.ok() && unfinished.contains(before->osd_uuid));
  WEIR_RETURN_IF_ERROR(MakeStore(device, mkfs));
  if (identity.token_rate == 0) {
    WEIR_ASSIGN_OR_RETURN(identity.token_rate, ProfileDevice(device));
  }
  return identity;
}

}  // namespace

std::set<std::string> UnfinishedOn(const std::vector<TierDevice>& tiers) {
  std::set<std::string> uuids;
  for (const TierDevice& tier : tiers) {
    const Result<OsdIdentity> before = ReadIdentity(*tier.device);
    if (before.ok() && IsProvisional(*before)) uuids.insert(before->osd_uuid);
  }
  return uuids;
}

Result<OsdIdentity> FormatOsd(const std::vector<TierDevice>& tiers, net::RpcClient& mds,
                              const FormatOsdOptions& options) {
  const std::set<std::string> unfinished = UnfinishedOn(tiers);
  std::vector<OsdIdentity> identities;
  OsdIdentity whole;
  for (const TierDevice& tier : tiers) {
    OsdIdentity identity;
    identity.osd_uuid = options.osd_uuid;
    identity.token_rate = options.token_rate;
    identity.tier = tier.name;
    if (!tier.name.empty()) {
      identity.tier_index = static_cast<uint32_t>(identities.size());
      identity.tiers = static_cast<uint32_t>(tiers.size());
    }
    WEIR_ASSIGN_OR_RETURN(identity, FormatOne(*tier.device, identity, unfinished, options));
    const bool slowest = identities.empty() || identity.token_rate < whole.token_rate;
    if (slowest) whole = identity;
    identities.push_back(identity);
  }
  WEIR_ASSIGN_OR_RETURN(const wire::RegisterOsdReply answer, AskForId(mds, whole, tiers));
  for (size_t i = 0; i < tiers.size(); ++i) {
    identities[i].osd_id = answer.osd_id();
    identities[i].cluster_uuid = answer.cluster_uuid();
    WEIR_RETURN_IF_ERROR(UpdateIdentity(*tiers[i].device, identities[i]));
  }
  return identities.front();
}

Result<std::string> NewUuid() {
  std::ifstream in("/proc/sys/kernel/random/uuid");
  std::string uuid;
  if (!(in >> uuid)) {
    return {ErrorCode::kIo, "cannot read a random uuid from /proc/sys/kernel/random/uuid"};
  }
  return uuid;
}

}  // namespace weir::osd
