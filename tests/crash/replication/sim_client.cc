#include "tests/crash/replication/sim_client.h"

namespace weir::crash::replication {
namespace {

constexpr uint64_t kReads = uint64_t{1} << 40;  // numbers of reads, which nobody stores
constexpr Duration kPatience = 12s;             // then a request is given up
constexpr uint64_t kObjectsPerSlot = 3;

std::string Tag(uint64_t session, uint64_t number, uint64_t cell) {
  std::string tag = "s" + std::to_string(session % 1000) + "n" + std::to_string(number) + "." +
                    std::to_string(cell);
  tag.resize(8, '_');
  return tag;
}

}  // namespace

SimClient::SimClient(World& world, History& history, const Setup& setup, Node node)
    : world_(world), history_(history), setup_(setup), node_(node), session_(node * 100) {}

void SimClient::After(Duration delay, std::function<void()> task) {
  world_.After(delay, [this, life = lives_, task = std::move(task)] {
    if (life == lives_) task();
  });
}

void SimClient::Start(const std::map<uint32_t, Chain>& chains) {
  chains_ = chains;
  world_.SetReceiver(node_, [this](Node from, const Packet& packet) { Receive(from, packet); });
  Think();
  After(100ms, [this] { Retry(); });
}

void SimClient::Crash() {
  ++lives_;
  ++session_;
  last_change_ = last_read_ = 0;
  open_.clear();
  Think();
  After(100ms, [this] { Retry(); });
}

void SimClient::Think() {
  After(Duration(static_cast<int64_t>(
            world_.prng.Exponential(static_cast<double>(setup_.think.count())))),
        [this] {
          if (stopped_) return;
          if (open_.size() < 6) Ask();
          Think();
        });
}

Request SimClient::MakeRequest() {
  Request request;
  request.slot = static_cast<uint32_t>(world_.prng.Uniform(0, setup_.slots - 1));
  request.object = {InodeId(request.slot * 10 + world_.prng.Uniform(1, kObjectsPerSlot)), 0};
  const uint64_t dice = world_.prng.Uniform(0, 99);
  const uint64_t cells = world_.prng.Uniform(1, 3);
  if (dice < 40) {
    request.kind = RequestKind::kRead;
    request.id = {session_, kReads + ++last_read_};
    const bool whole = world_.prng.Chance(0.6);
    request.offset = whole ? 0 : 8 * world_.prng.Uniform(0, 5);
    request.length = whole ? 1 << 20 : 8 * cells;
    return request;
  }
  request.id = {session_, ++last_change_};
  request.kind = dice < 75 ? RequestKind::kWrite : RequestKind::kAppend;
  if (dice >= 92) request.kind = RequestKind::kDelete;
  if (request.kind != RequestKind::kDelete) {
    for (uint64_t i = 0; i < cells; ++i) request.bytes += Tag(session_, request.id.number, i);
  }
  if (request.kind == RequestKind::kWrite) request.offset = 8 * world_.prng.Uniform(0, 5);
  if (world_.prng.Chance(0.1)) request.expected = seen_[request.object];
  return request;
}

void SimClient::Ask() {
  Open open;
  open.request = MakeRequest();
  open.asked_at = world_.now();
  const OpId id = open.request.id;
  Open& kept = open_[id] = std::move(open);
  history_.Asked(kept.request, world_.now());
  Send(&kept);
}

// What is below has been answered, or was given up.
IdFloors SimClient::FloorsOf(const Request& request) const {
  IdFloors floors{last_change_ + 1, request.id.number};
  for (const auto& [id, open] : open_) {
    if (open.request.kind == RequestKind::kRead) continue;
    floors.session = std::min(floors.session, id.number);
    if (open.request.object == request.object) floors.object = std::min(floors.object, id.number);
  }
  return floors;
}

Node SimClient::Choose(const Open& open) {
  const Chain& chain = chains_.at(open.request.slot);
  const bool anybody = open.tries > 1 && world_.prng.Chance(0.5);  // knows a newer chain, maybe
  size_t choices = open.request.kind == RequestKind::kRead ? chain.serving() : 1;
  if (anybody) choices = chain.members.size();
  return OsdNode(chain.members[world_.prng.Uniform(0, choices - 1)].osd);
}

void SimClient::Send(Open* open) {
  open->request.chain = chains_.at(open->request.slot).version;
  if (open->request.kind != RequestKind::kRead) open->request.floors = FloorsOf(open->request);
  open->sent_at = world_.now();
  ++open->tries;
  open->to = Choose(*open);
  world_.Send(node_, open->to, open->request);
}

void SimClient::Receive(Node, const Packet& packet) {
  const auto* reply = std::get_if<Reply>(&packet);
  if (reply == nullptr) return;
  if (reply->chain.has_value()) {
    Chain& known = chains_.at(reply->chain->slot);
    if (reply->chain->version > known.version) known = *reply->chain;
  }
  const auto found = open_.find(reply->id);
  if (found == open_.end()) return;
  if (reply->status == ErrorCode::kStaleEpoch || reply->status == ErrorCode::kBusy) {
    After(Duration(static_cast<int64_t>(world_.prng.Uniform(5'000'000, 60'000'000))),
          [this, id = reply->id, sent_at = found->second.sent_at] {
            const auto open = open_.find(id);
            if (open != open_.end() && open->second.sent_at == sent_at) Send(&open->second);
          });
    return;
  }
  const Request& request = found->second.request;
  if (request.kind == RequestKind::kRead) {
    if (reply->status == ErrorCode::kNotFound) seen_[request.object] = {};
    if (!reply->version.none()) seen_[request.object] = reply->version;
  } else if (reply->status == ErrorCode::kOk) {
    seen_[request.object] = request.kind == RequestKind::kDelete ? Version{} : reply->version;
  }
  history_.Told(reply->id, *reply, world_.now());
  open_.erase(found);
}

void SimClient::Retry() {
  for (auto open = open_.begin(); open != open_.end();) {
    if (!stopped_ && world_.now() > open->second.asked_at + kPatience) {
      open = open_.erase(open);
      continue;
    }
    if (world_.now() > open->second.sent_at + 500ms) Send(&open->second);
    ++open;
  }
  After(100ms, [this] { Retry(); });
}

}  // namespace weir::crash::replication
