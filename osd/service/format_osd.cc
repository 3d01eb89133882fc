#include "osd/service/format_osd.h"

#include <fstream>

#include "common/disk/block_device.h"
#include "common/net/rpc.h"
#include "common/wire/mds.pb.h"

namespace weir::osd {
namespace {

constexpr Duration kMdsTimeout = std::chrono::seconds(10);

Result<wire::RegisterOsdReply> AskForId(net::RpcClient& mds, const OsdIdentity& identity,
                                        uint64_t capacity_bytes) {
  wire::RegisterOsdRequest request;
  request.set_osd_uuid(identity.osd_uuid);
  request.set_capacity_bytes(capacity_bytes);
  request.set_token_rate(identity.token_rate);
  WEIR_ASSIGN_OR_RETURN(const net::Reply reply,
                        mds.CallAndWait(wire::MDS_REGISTER_OSD, request.SerializeAsString(), {},
                                        {.timeout = kMdsTimeout}));
  wire::RegisterOsdReply answer;
  if (!answer.ParseFromString(reply.body) || answer.cluster_uuid().empty()) {
    return {ErrorCode::kBadMessage, "the MDS answered the registration with something else"};
  }
  return answer;
}

}  // namespace

Result<OsdIdentity> FormatOsd(BlockDevice& device, net::RpcClient& mds,
                              const FormatOsdOptions& options) {
  MkfsOptions mkfs;
  mkfs.identity.osd_uuid = options.osd_uuid;
  mkfs.identity.token_rate = options.token_rate;
  mkfs.store = options.store;
  const Result<OsdIdentity> before = ReadIdentity(device);
  mkfs.force = options.force || (before.ok() && IsProvisional(*before));
  WEIR_RETURN_IF_ERROR(MakeStore(device, mkfs));
  OsdIdentity identity = mkfs.identity;
  if (identity.token_rate == 0) {
    WEIR_ASSIGN_OR_RETURN(identity.token_rate, ProfileDevice(device));
  }
  WEIR_ASSIGN_OR_RETURN(const wire::RegisterOsdReply answer,
                        AskForId(mds, identity, device.size()));
  identity.osd_id = answer.osd_id();
  identity.cluster_uuid = answer.cluster_uuid();
  WEIR_RETURN_IF_ERROR(UpdateIdentity(device, identity));
  return identity;
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
