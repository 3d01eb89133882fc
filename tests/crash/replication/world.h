// World: virtual time, clocks that drift, machines that stop, and a network that loses, doubles,
// delays and reorders. Everything that happens is an event; one seed decides.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "common/base/prng.h"
#include "common/replication/messages.h"

namespace weir::crash::replication {

using namespace std::chrono_literals;
using namespace weir::replication;  // NOLINT: the tests speak the protocol's words

using Node = uint32_t;
constexpr Node OsdNode(OsdId osd) {
  return osd.value;
}
constexpr OsdId OsdOf(Node node) {
  return OsdId(node);
}
constexpr Node kMdsNodes = 100;
constexpr Node kMdsCount = 2;
constexpr Node kClientNodes = 200;
constexpr Node kEtcdNode = 300;

// An MDS asks etcd: to lead or to go on leading, or to change a chain.
struct EtcdAsk {
  uint64_t candidate = 0;  // a process of an MDS
  TimePoint asked_at;
  std::optional<Chain> proposed;
  uint64_t term = 0;
};
struct EtcdAnswer {
  uint64_t candidate = 0;
  bool leads = false;
  uint64_t term = 0;
  TimePoint asked_at;
  std::map<uint32_t, Chain> chains;
  std::optional<uint32_t> decided;  // the slot for which this answers a proposal
};
using Packet =
    std::variant<PeerMessage, LeaderMessage, MemberMessage, Request, Reply, EtcdAsk, EtcdAnswer>;

class World {
 public:
  using Task = std::function<void()>;
  using Receiver = std::function<void(Node from, const Packet&)>;
  // Sees what is sent and may change it or send more; false: it vanishes.
  using Tap = std::function<bool(Node from, Node to, Packet*)>;
  using Trace = std::function<void(const std::string&)>;

  World(uint64_t seed, Trace trace) : prng(seed), trace_(std::move(trace)) {}

  Prng prng;
  // What goes wrong with messages; off once all is to heal.
  double loss = 0, doubled = 0, overtaking = 0;
  double answers_lost = 0;  // of those to clients
  std::set<Node> slow;      // whose messages take up to seconds

  [[nodiscard]] TimePoint now() const { return now_; }
  void At(TimePoint when, Task task) {
    events_.emplace(std::pair(when, ++last_event_), std::move(task));
  }
  void After(Duration delay, Task task) { At(now_ + delay, std::move(task)); }
  void RunUntil(TimePoint end);
  void Say(const std::string& what) const;
  [[nodiscard]] bool traced() const { return trace_ != nullptr; }

  void SetReceiver(Node node, Receiver receiver) { receivers_[node] = std::move(receiver); }
  void RemoveReceiver(Node node) { receivers_.erase(node); }
  void SetTap(Tap tap) { tap_ = std::move(tap); }
  void Send(Node from, Node to, Packet packet);
  // As if it came from the network a moment later, whatever is lost and cut.
  void Deliver(Node from, Node to, const Packet& packet, Duration delay);

  void Cut(Node from, Node to) { cuts_.insert({from, to}); }
  void Mend(Node from, Node to) { cuts_.erase({from, to}); }
  void Heal();

  // The clocks of a machine: one counts suspended time, one does not.
  [[nodiscard]] TimePoint BootTime(Node node);
  [[nodiscard]] TimePoint Monotonic(Node node);
  void Suspend(Node node, Duration how_long);
  [[nodiscard]] bool Suspended(Node node) const;
  // Runs `task` every `period` on the machine, while `alive` says so; not while it is suspended.
  void Every(Node node, Duration period, std::function<bool()> alive, Task task);
  // When the machine gets to what arrives now.
  [[nodiscard]] TimePoint Awake(Node node) const;

  uint64_t messages = 0;
  uint64_t digest = 0;

 private:
  struct Machine {
    double rate = 1;
    int64_t offset_ns = 0;
    Duration suspended{};
    TimePoint asleep_until;
  };
  Machine& Of(Node node);
  [[nodiscard]] Duration DelayOf(Node from, Node to);

  TimePoint now_;
  Trace trace_;
  std::map<std::pair<TimePoint, uint64_t>, Task> events_;
  uint64_t last_event_ = 0;
  std::map<Node, Receiver> receivers_;
  std::map<Node, Machine> machines_;
  std::map<std::pair<Node, Node>, TimePoint> last_arrival_;
  std::set<std::pair<Node, Node>> cuts_;
  Tap tap_;
};

// For traces.
std::string Describe(const Packet& packet);
std::string Describe(const Chain& chain);

}  // namespace weir::crash::replication
