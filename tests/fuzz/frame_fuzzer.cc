// Whatever a peer may send: envelope, header, every request body, the cluster map. The first byte
// picks the decoder; must neither crash nor touch memory that is not its own.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/net/envelope.h"
#include "common/placement/cluster_map.h"
#include "common/wire/map.pb.h"
#include "common/wire/mds.pb.h"
#include "common/wire/osd.pb.h"
#include "common/wire/rpc.pb.h"

namespace {

template <typename Body>
void Parse(std::string_view bytes) {
  Body body;
  (void)body.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

void ParseMap(std::string_view bytes) {
  weir::wire::ClusterMap message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  const auto map = weir::FromWire(message);
  if (!map.ok()) return;
  // What was accepted must be fit for use.
  (void)weir::ToWire(*map);
  for (const auto& [id, pool] : map->pools) {
    const auto* chain = map->ChainOf(id, {weir::InodeId(1), 2});
    if (chain != nullptr && !map->osds.contains(chain->head())) __builtin_trap();
  }
}

void ParseFrame(std::string_view bytes) {
  using weir::net::Direction;
  for (const Direction direction : {Direction::kToServer, Direction::kToClient}) {
    weir::wire::RpcHeader header;
    bool matches = false;
    (void)weir::net::DecodeFrame(direction, bytes, 0, &header, &matches);
  }
}

using Decoder = void (*)(std::string_view);
namespace w = weir::wire;
constexpr Decoder kDecoders[] = {
    ParseFrame,
    ParseMap,
    Parse<w::RpcHeader>,
    Parse<w::ObjectRequest>,
    Parse<w::OsdStatsRequest>,
    Parse<w::OpenSessionRequest>,
    Parse<w::WatchRequest>,
    Parse<w::RegisterOsdRequest>,
    Parse<w::NameRequest>,
    Parse<w::InodeRequest>,
    Parse<w::CreateRequest>,
    Parse<w::SetAttrRequest>,
    Parse<w::RenameRequest>,
    Parse<w::LinkRequest>,
    Parse<w::ReaddirRequest>,
    Parse<w::OpenRequest>,
    Parse<w::ReleaseRequest>,
    Parse<w::XattrRequest>,
    Parse<w::WroteRequest>,
    Parse<w::AccessRequest>,
    Parse<w::ResolveClassesRequest>,
    Parse<w::SetOsdRequest>,
    Parse<w::SetClassRequest>,
    Parse<w::ClassNameRequest>,
    Parse<w::ReserveRequest>,
    Parse<w::PoolCreateRequest>,
    Parse<w::PoolNameRequest>,
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  kDecoders[data[0] % std::size(kDecoders)](bytes);
  return 0;
}
