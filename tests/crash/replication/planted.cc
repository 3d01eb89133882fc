#include "tests/crash/replication/planted.h"

#include <algorithm>

namespace weir::crash::replication {
namespace {

// The head hears of its successor what that one has not said.
bool AckAtHead(World& world, Node from, Node to, const PeerMessage& message) {
  const auto* durable = std::get_if<Durable>(&message.body);
  if (durable == nullptr) return true;
  PeerMessage ack = message;
  ack.from = OsdOf(to);
  ack.body = Ack{durable->object, durable->version};
  ack.life = 0;  // made up on arrival
  world.Deliver(to, from, ack, 10us);
  return true;
}

// Whoever gets an operation is told at once that all above it have it.
void ReadableTooEarly(World& world, Node from, Node to, const PeerMessage& message) {
  const auto* item = std::get_if<Item>(&message.body);
  const auto* forward = item == nullptr ? nullptr : std::get_if<Forward>(&item->body);
  if (forward == nullptr) return;
  PeerMessage durable = message;
  durable.body = Durable{forward->operation.object, forward->operation.version};
  world.Deliver(from, to, durable, 2ms);
}

bool CopyNoIds(PeerMessage* message) {
  auto* item = std::get_if<Item>(&message->body);
  auto* install = item == nullptr ? nullptr : std::get_if<Install>(&item->body);
  if (install != nullptr && install->state.has_value()) install->state->ids.clear();
  return true;
}

bool ClaimAll(PeerMessage* message) {
  auto* join = std::get_if<Join>(&message->body);
  if (join != nullptr && join->base.chain > 0) join->base.sequence += 1000;
  return true;
}

}  // namespace

bool Spoil(Bug bug, World& world, Node from, Node to, Packet* packet) {
  auto* message = std::get_if<PeerMessage>(packet);
  if (message == nullptr) return true;
  if (bug == Bug::kAckAtHead) return AckAtHead(world, from, to, *message);
  if (bug == Bug::kReadableTooEarly) ReadableTooEarly(world, from, to, *message);
  if (bug == Bug::kOpIdsNotCopied) return CopyNoIds(message);
  if (bug == Bug::kBaseTooHigh) return ClaimAll(message);
  return true;
}

void SpoilArrival(Bug bug, const std::optional<Chain>& chain, PeerMessage* message) {
  if (!chain.has_value()) return;
  const auto sender = std::find_if(chain->members.begin(), chain->members.end(),
                                   [&](const Member& m) { return m.osd == message->from; });
  if (sender == chain->members.end()) return;
  if (bug == Bug::kAckAtHead && message->life == 0) message->life = sender->life;
  if (bug == Bug::kOldChainAccepted && message->chain < chain->version) {
    message->chain = chain->version;
    message->life = sender->life;
  }
}

}  // namespace weir::crash::replication
