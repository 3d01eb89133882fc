#include "tests/crash/cluster/planted.h"

#include <algorithm>
#include <utility>

#include "common/net/envelope.h"
#include "common/wire/mds.pb.h"
#include "common/wire/osd.pb.h"
#include "common/wire/rpc.pb.h"
#include "mds/format/ns_keys_format.h"

namespace weir::crash {
namespace {

constexpr uint32_t kNoMethod = 999;

net::Direction DirectionOf(const testing::SimNetwork::Passing& passing) {
  return passing.to_server ? net::Direction::kToServer : net::Direction::kToClient;
}

bool Open(const testing::SimNetwork::Passing& passing, const net::Message& message,
          wire::RpcHeader* header) {
  bool payload_matches = false;
  return net::DecodeFrame(DirectionOf(passing), message.header, message.payload.size(), header,
                          &payload_matches)
      .ok();
}

void Close(const testing::SimNetwork::Passing& passing, const wire::RpcHeader& header,
           net::Message* message) {
  message->header = *net::EncodeFrame(DirectionOf(passing), header, message->payload.size());
}

bool IsOf(const WriteBatch::Op& op, mds::Table table) {
  return op.key[0] == static_cast<char>(table);
}

template <typename Forget>
void Without(WriteBatch* batch, Forget forget) {
  WriteBatch kept;
  for (const WriteBatch::Op& op : batch->ops()) {
    if (forget(op)) continue;
    if (op.kind == WriteBatch::Op::Kind::kPut) kept.Put(op.key, op.value);
    if (op.kind == WriteBatch::Op::Kind::kDelete) kept.Delete(op.key);
  }
  *batch = std::move(kept);
}

// The server is told that it need not remember anything.
void ForgetRetries(const testing::SimNetwork::Passing& passing, net::Message* message) {
  wire::RpcHeader header;
  if (!passing.to_server || !Open(passing, *message, &header)) return;
  if (header.kind() != wire::RpcHeader::REQUEST) return;
  header.set_idempotent(true);
  header.set_acked_below(UINT64_MAX);
  Close(passing, header, message);
}

void LoseRecall(const testing::SimNetwork::Passing& passing, bool look, net::Message* message) {
  wire::RpcHeader header;
  if (passing.to_server || passing.from != "mds" || !Open(passing, *message, &header)) return;
  wire::WatchReply reply;
  if (header.body().empty() || !reply.ParseFromString(header.body())) return;
  if (reply.lease_epoch() == 0) return;
  if (look ? reply.recalled_files().empty() : reply.recalled().empty()) return;
  look ? reply.clear_recalled_files() : reply.clear_recalled();
  header.set_body(reply.SerializeAsString());
  Close(passing, header, message);
}

void ReplaceReplay(const testing::SimNetwork::Passing& passing, uint32_t by,
                   net::Message* message) {
  wire::RpcHeader header;
  if (!passing.to_server || !Open(passing, *message, &header)) return;
  if (header.method() != wire::MDS_REPLAY) return;
  header.set_method(by);
  Close(passing, header, message);
}

// The delete of a whole file becomes one of what lies far behind its end.
void LosePurge(const testing::SimNetwork::Passing& passing, net::Message* message) {
  wire::RpcHeader header;
  if (!passing.to_server || passing.from != "mds" || !Open(passing, *message, &header)) return;
  if (header.method() != wire::OSD_DELETE_INODE) return;
  wire::ObjectRequest request;
  if (!request.ParseFromString(header.body()) || request.index() != 0) return;
  request.set_index(1 << 20);
  header.set_body(request.SerializeAsString());
  Close(passing, header, message);
}

}  // namespace

SimKv::Bug KvBugOfMds(Bug bug) {
  if (bug == Bug::kMdsAnswersEarly) return [](WriteBatch*) { return false; };
  if (bug != Bug::kLeak && bug != Bug::kForgottenRetries) return nullptr;
  const auto forgotten = bug == Bug::kLeak ? mds::Table::kPurge : mds::Table::kAnswer;
  return [forgotten](WriteBatch* batch) {
    Without(batch, [&](const WriteBatch::Op& op) {
      return op.kind == WriteBatch::Op::Kind::kPut && IsOf(op, forgotten);
    });
    return true;
  };
}

SimKv::Bug TearingOfMds(Bug bug) {
  if (bug != Bug::kTornCommit) return nullptr;
  return [](WriteBatch* batch) {
    const auto is_name = [](const WriteBatch::Op& op) { return IsOf(op, mds::Table::kDentry); };
    if (std::count_if(batch->ops().begin(), batch->ops().end(), is_name) < 2) return true;
    bool first = true;
    Without(batch,
            [&](const WriteBatch::Op& op) { return is_name(op) && std::exchange(first, false); });
    return true;
  };
}

SimKv::Bug KvBugOfOsd(Bug bug) {
  if (bug == Bug::kOsdAnswersEarly) return [](WriteBatch*) { return false; };
  return nullptr;
}

void Spoil(Bug bug, const testing::SimNetwork::Passing& passing, net::Message* message) {
  if (bug == Bug::kForgottenRetries) ForgetRetries(passing, message);
  if (bug == Bug::kLostRecall) LoseRecall(passing, false, message);
  if (bug == Bug::kLostLook) LoseRecall(passing, true, message);
  if (bug == Bug::kLostReplay) ReplaceReplay(passing, wire::MDS_COMMIT, message);
  if (bug == Bug::kRefusedReplay) ReplaceReplay(passing, kNoMethod, message);
  if (bug == Bug::kLostPurge) LosePurge(passing, message);
}

bool Swallows(Bug bug, const testing::SimNetwork::Passing& passing) {
  return bug == Bug::kDeafMds && passing.from == "user0" && passing.to == "mds";
}

}  // namespace weir::crash
