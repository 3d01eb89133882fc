// ClassOrder: which operation on names begins next. Between classes by weight: start-time fair
// queueing (S = max(v, F), F = S + cost / weight, the smallest S first), v being the start tag of
// what began last. Within a class as its requests for data: fair between its users, then between
// the openers of each, light ones first (common/qos/flow_order.h).
//
//   limit    the class has no more than so many operations begin in a second; what it did not use
//            of the last kLimitBurst comes on top. One that is held takes no part.
//   promise  the class goes first while fewer than so many of its operations have begun per second,
//            the last kPromiseBurst looked at. Not more than kPromisedInTurn one after the other
//            while somebody else waits, as nobody has weighed what is promised against what the MDS
//            can do. It is a floor: what began so counts as the class's share, too.
//
// Whose operations began in the last seconds, and whose wait, is kept for each class.
//
// Cost: 1 is an operation on one name, others are multiples. Limits and promises count operations.
// Cost of a decision: O(log n) in classes, and in the flows of one. Ownership: items are the
// caller's, until they are done or dropped. Threads: the owner's. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/time.h"
#include "common/qos/flow_meter.h"
#include "common/qos/flow_order.h"
#include "common/qos/waiting_flows.h"

namespace weir::mds {

class ClassOrder {
 public:
  struct Terms {
    double weight = 1;
    uint64_t limit_per_s = 0;     // 0: none
    uint64_t promised_per_s = 0;  // 0: nothing
    friend bool operator==(const Terms&, const Terms&) = default;
  };
  static constexpr Duration kLimitBurst = std::chrono::milliseconds(20);
  static constexpr Duration kPromiseBurst = std::chrono::milliseconds(100);
  static constexpr int kPromisedInTurn = 15;
  // A user with fewer operations begun than that has little under way.
  static constexpr uint32_t kLittle = 4;

  struct Class;
  struct Item : FlowOrder::Item {
    Class* of = nullptr;
    uint64_t session = 0;
    bool report = false;
    Item* before = nullptr;  // of all that wait
    Item* after = nullptr;
    WaitingFlows::Ticket ticket;
    FlowOwner owner;
    uint64_t user = 0;
    uint32_t cost = 1;
    bool light = false;    // when it came, little of its flow was under way
    bool delayed = false;  // had to wait, as whoever takes it says
  };

  struct Load {
    ClassId class_id;
    uint64_t operations = 0;  // that came since the start
    uint64_t queued = 0;      // that wait now
    uint64_t delayed = 0;     // of those that have begun
    uint64_t limited = 0;     // that came while the limit held the class
  };

  ClassOrder();
  ~ClassOrder();
  ClassOrder(const ClassOrder&) = delete;
  ClassOrder& operator=(const ClassOrder&) = delete;

  struct Request {
    ClassId class_id;
    Terms terms;  // hold from now on for all of the class
    FlowKey flow;
    FlowKey counted_for;  // CountedKeyOf, OwnerOf
    FlowOwner owner;
    uint64_t session = 0;
    uint32_t cost = 1;
    // What others may wait for, as a report of what was written: neither limit nor promise count
    // it, it takes a turn by weight beside them.
    bool report = false;
  };
  void Add(Item* item, const Request& request, TimePoint now);
  // Whose turn it is; null: nobody's. Changes nothing but what limits do not hold any more.
  [[nodiscard]] Item* Next(TimePoint now);
  // Of those who are next in their classes, one of a user who has little begun. Looks at those
  // whose turn comes first: whoever asks for little is among them.
  [[nodiscard]] Item* NextOfLittle(TimePoint now);
  // What Next or NextOfLittle said begins.
  void Take(Item* item, TimePoint now);
  // What was taken is over.
  void Done(Item* item);
  // Terms have changed, maybe.
  void Renew(const std::function<Terms(ClassId)>& terms_of, TimePoint now);
  // What a session asked for waits no more, but for reports. O(n) in all that waits.
  std::vector<Item*> DropSession(uint64_t session);
  // All that waits waits no more.
  std::vector<Item*> DropAll();

  // When the limit of a class lets its next one go. Max: no limit holds anybody.
  [[nodiscard]] TimePoint NextAt() const;
  [[nodiscard]] std::vector<Load> Loads() const;
  // Of whom something came since the start.
  [[nodiscard]] std::vector<ClassId> Classes() const;
  // Whose operations of one of them began lately, and whose wait: at most 4 * FlowOrder::kFlowsMax
  // rows, however many wait.
  [[nodiscard]] FlowMeter::Look FlowsOf(ClassId id, TimePoint now);

 private:
  using Place = std::tuple<double, uint64_t, Class*>;      // start tag, since when it waits
  using Moment = std::tuple<TimePoint, uint64_t, Class*>;  // when, number of the class

  void SetTerms(Class* one, const Terms& terms, TimePoint now);
  // Puts a class that waits where it belongs, and takes it from there.
  void File(Class* one, TimePoint now);
  void Unfile(Class* one);
  void ReleaseHeld(TimePoint now);
  void Link(Item* item);
  void Unlink(Item* item);
  // The class that is owed something by its promise; null: none.
  [[nodiscard]] Class* Owed(TimePoint now) const;

  std::map<std::pair<ClassId, bool>, std::unique_ptr<Class>> classes_;  // and its reports
  struct Metered {
    explicit Metered(TimePoint now) : began(now) {}
    FlowMeter began;
    WaitingFlows waiting;
  };
  std::map<ClassId, Metered> meters_;
  std::set<Place> ready_;
  std::set<Moment> promised_;  // of those that are ready, when the promise is behind
  std::set<Moment> held_;
  Item* last_ = nullptr;  // of all that wait
  double time_ = 0;       // virtual
  uint64_t sequence_ = 0;
  int promised_in_turn_ = 0;
};

}  // namespace weir::mds
