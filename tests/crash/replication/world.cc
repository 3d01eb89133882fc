#include "tests/crash/replication/world.h"

#include <sstream>

namespace weir::crash::replication {

void World::RunUntil(TimePoint end) {
  while (!events_.empty() && events_.begin()->first.first <= end) {
    auto event = events_.extract(events_.begin());
    now_ = event.key().first;
    event.mapped()();
  }
  now_ = end;
}

void World::Say(const std::string& what) const {
  if (trace_ == nullptr) return;
  std::ostringstream line;
  line.precision(9);
  line << static_cast<double>(now_.ns) / 1e9 << " " << what;
  trace_(line.str());
}

World::Machine& World::Of(Node node) {
  const auto [machine, made] = machines_.try_emplace(node);
  if (made) {
    machine->second.rate = 1 + 0.01 * (2 * prng.Real() - 1);
    machine->second.offset_ns = static_cast<int64_t>(prng.Uniform(1, 1'000'000'000'000));
  }
  return machine->second;
}

TimePoint World::BootTime(Node node) {
  const Machine& machine = Of(node);
  return {machine.offset_ns + static_cast<int64_t>(static_cast<double>(now_.ns) * machine.rate)};
}

TimePoint World::Monotonic(Node node) {
  return BootTime(node) - Of(node).suspended;
}

void World::Suspend(Node node, Duration how_long) {
  Machine& machine = Of(node);
  if (Suspended(node)) return;
  machine.suspended += how_long;
  machine.asleep_until = now_ + how_long;
}

bool World::Suspended(Node node) const {
  return Awake(node) > now_;
}

TimePoint World::Awake(Node node) const {
  const auto machine = machines_.find(node);
  return machine == machines_.end() ? now_ : std::max(now_, machine->second.asleep_until);
}

void World::Every(Node node, Duration period, std::function<bool()> alive, Task task) {
  After(period, [=, this] {
    if (!alive()) return;
    if (Suspended(node)) {
      At(Awake(node), [=, this] {
        if (!alive()) return;
        task();
        Every(node, period, alive, task);
      });
      return;
    }
    task();
    Every(node, period, alive, task);
  });
}

Duration World::DelayOf(Node from, Node to) {
  if (slow.contains(from) || slow.contains(to)) {
    return Duration(static_cast<int64_t>(prng.Uniform(1'000'000, 2'500'000'000)));
  }
  return Duration(static_cast<int64_t>(prng.Uniform(50'000, 1'000'000)));
}

void World::Send(Node from, Node to, Packet packet) {
  if (tap_ != nullptr && !tap_(from, to, &packet)) return;
  ++messages;
  const bool to_client = to >= kClientNodes && to < kEtcdNode;
  const bool lost = cuts_.contains({from, to}) || prng.Chance(to_client ? answers_lost : loss);
  if (traced()) {
    Say(std::to_string(from) + ">" + std::to_string(to) + (lost ? " LOST " : " ") +
        Describe(packet));
  }
  if (lost) return;
  digest = MixHash(digest, MixHash(static_cast<uint64_t>(now_.ns), from * 1000 + to));
  const bool overtakes = prng.Chance(overtaking);
  TimePoint arrival = now_ + DelayOf(from, to);
  TimePoint& last = last_arrival_[{from, to}];
  if (!overtakes) last = arrival = std::max(arrival, last);
  Deliver(from, to, packet, arrival - now_);
  if (prng.Chance(doubled)) {
    Deliver(from, to, packet,
            arrival - now_ + Duration(static_cast<int64_t>(prng.Uniform(0, 4'000'000'000))));
  }
}

void World::Deliver(Node from, Node to, const Packet& packet, Duration delay) {
  After(delay, [=, this] {
    if (Suspended(to)) {  // it lies in a socket; who is looked at first is chance
      const uint64_t turn = MixHash(from, static_cast<uint64_t>(Awake(to).ns)) % 20'000'000;
      Deliver(from, to, packet, Awake(to) + Duration(static_cast<int64_t>(turn)) - now_);
      return;
    }
    const auto receiver = receivers_.find(to);
    if (receiver != receivers_.end()) receiver->second(from, packet);
  });
}

void World::Heal() {
  cuts_.clear();
  slow.clear();
  loss = doubled = overtaking = answers_lost = 0;
  for (auto& [node, machine] : machines_) {
    machine.asleep_until = std::min(machine.asleep_until, now_ + 1ms);
  }
}

namespace {

std::string Text(const Version& version) {
  return std::to_string(version.chain) + "." + std::to_string(version.sequence);
}
std::string Text(const ObjectId& object) {
  return "o" + std::to_string(object.inode.value);
}
std::string Text(const OpId& id) {
  return "#" + std::to_string(id.session) + "/" + std::to_string(id.number);
}

std::string Text(const Verdicts& body) {
  std::string text = "verdicts";
  for (const auto& [what, verdict] : body.of) {
    text += " " + Text(what.first) + "@" + Text(what.second) + "=" +
            std::to_string(static_cast<int>(verdict));
  }
  return text;
}
std::string Text(const Floors&) {
  return "floors";
}
std::string Text(const Forward& body) {
  const Operation& operation = body.operation;
  return "forward " + Text(operation.object) + "@" + Text(operation.version) + " on " +
         Text(operation.previous) + " " + Text(operation.id) + " kind " +
         std::to_string(static_cast<int>(operation.kind));
}
std::string Text(const Install& body) {
  return "install " + Text(body.object) + "@" +
         (body.state.has_value() ? Text(body.state->version) : "none");
}
std::string Text(const Drop& body) {
  return "drop " + Text(body.object) + "@" + Text(body.from);
}
std::string Text(const Skipped& body) {
  return "skipped " + Text(body.object) + "@" + Text(body.version);
}
std::string Text(const ListNext&) {
  return "list next";
}
std::string Text(const SyncEnd& end) {
  return "sync end " + Text(end.highest);
}
std::string Text(const Item& item) {
  return std::to_string(item.number) + ": " +
         std::visit([](const auto& body) { return Text(body); }, item.body);
}
std::string Text(const ItemAck& body) {
  return "took " + std::to_string(body.number);
}
std::string Text(const Join& body) {
  return "join base " + Text(body.base) + ", " + std::to_string(body.pending.size()) +
         " pending, " + std::to_string(body.newer.size()) + " newer";
}
std::string Text(const Durable& body) {
  return "durable " + Text(body.object) + "@" + Text(body.version);
}
std::string Text(const Ack& body) {
  return "ack " + Text(body.object) + "@" + Text(body.version);
}
std::string Text(const Refused& body) {
  return "refused " + Text(body.object) + "@" + Text(body.version);
}
std::string Text(const Listing& body) {
  return "listing of " + std::to_string(body.objects.size());
}
std::string Text(const RenewAsk&) {
  return "renew?";
}
std::string Text(const RenewGrant&) {
  return "renewed";
}
std::string Text(const Stale& body) {
  return "stale " + Describe(body.chain);
}
std::string Text(const News& body) {
  return "news " + Describe(body.chain);
}
std::string Text(const Seal& body) {
  return "seal " + std::to_string(body.id.term) + "." + std::to_string(body.id.number) + " of " +
         std::to_string(body.removed.size());
}
std::string Text(const LeaderGrant&) {
  return "granted";
}
std::string Text(const Alive& body) {
  return std::string("alive") + (body.failed ? ", failed" : "");
}
std::string Text(const Sealed& body) {
  return "sealed " + std::to_string(body.id.number);
}
std::string Text(const LeaderAsk&) {
  return "grant?";
}

std::string TextOf(const PeerMessage& message) {
  return "[" + std::to_string(message.slot) + "/" + std::to_string(message.chain) + " life " +
         std::to_string(message.life) + "] " +
         std::visit([](const auto& body) { return Text(body); }, message.body);
}
std::string TextOf(const LeaderMessage& message) {
  return "[" + std::to_string(message.slot) + " term " + std::to_string(message.term) + "] " +
         std::visit([](const auto& body) { return Text(body); }, message.body);
}
std::string TextOf(const MemberMessage& message) {
  return std::visit([](const auto& body) { return Text(body); }, message.body);
}
std::string TextOf(const Request& request) {
  return "[" + std::to_string(request.slot) + "/" + std::to_string(request.chain) + "] " +
         Text(request.id) + " " + Text(request.object) + " kind " +
         std::to_string(static_cast<int>(request.kind)) + " floors " +
         std::to_string(request.floors.session) + " " + std::to_string(request.floors.object);
}
std::string TextOf(const Reply& reply) {
  return Text(reply.id) + " -> " + std::string(ToText(reply.status)) + " " + Text(reply.version) +
         " " + std::to_string(reply.bytes.size()) + " bytes";
}
std::string TextOf(const EtcdAsk& ask) {
  return "etcd? " + (ask.proposed.has_value() ? Describe(*ask.proposed) : "lead");
}
std::string TextOf(const EtcdAnswer& answer) {
  return "etcd: term " + std::to_string(answer.term) + (answer.leads ? " leads" : "");
}

}  // namespace

std::string Describe(const Chain& chain) {
  std::string text = std::to_string(chain.slot) + "/" + std::to_string(chain.version) + "(";
  for (const Member& member : chain.members) {
    text += " " + std::to_string(member.osd.value) + "'" + std::to_string(member.life) +
            std::string(1, "SYO"[static_cast<size_t>(member.state)]);
  }
  return text + " )";
}

std::string Describe(const Packet& packet) {
  return std::visit([](const auto& message) { return TextOf(message); }, packet);
}

}  // namespace weir::crash::replication
