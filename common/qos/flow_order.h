// FlowOrder: which of the requests of one class goes next, fair between its users and, within each
// user, between its openers (programs). Every user of the class gets an equal share of what the
// class gets, then every opener of the user. Start-time fair queueing at both levels (Goyal, Vin
// and Cheng, 1996: S = max(v, F), F = S + cost, the smallest S first), in nanoseconds of the
// device's time. With each request v grows by cost / those who have something under way, too: else
// programs that come, ask once and go would hold v, and whoever has asked before them would stand
// behind all of them for ever.
//
// Light is who has little under way, as a program that waits for each answer before it asks again:
// it goes first, as a sparse flow does in FQ-CoDel (RFC 8290), but not for long at the cost of
// others:
//   a light user goes before heavy ones while it is ahead of its share by less than kQuantum;
//   light openers of one user go before its heavy ones, together for half of the user's time.
// So a thousand short programs gain nothing for their user, and a reader beside 64 writers of the
// same user is not held to a 65th.
//
// Example: user a has one writer, user b has 64, and a reader of 4 KiB. a and b get half each; of
// b's half the reader gets what it asks for, up to a quarter of all, the writers share the rest.
//
// An item is added, then taken (served) or left (cancelled), and what was taken is done. Its flow
// is under way until then. At most kFlowsMax openers are told apart; beyond that they share.
//
// Cost: O(log n) in users and openers. Threads: the owner's. Ownership: items are the caller's, who
// keeps them until they are done or have left, or the order is gone. Pure.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "common/base/ids.h"
#include "common/base/placed_heap.h"
#include "common/base/time.h"

namespace weir {

// Whose request it is, within its class. 0, 0: nobody is told apart.
struct FlowKey {
  uint64_t user = 0;
  uint64_t opener = 0;
  friend bool operator==(const FlowKey&, const FlowKey&) = default;
};

class FlowOrder {
 public:
  struct Opener;

  // Embedded in what waits.
  struct Item {
    Item* next = nullptr;  // of its opener, in order of arrival
    Item* previous = nullptr;
    Opener* opener = nullptr;  // null: in no order
    uint64_t bytes = 0;
    double cost = 0;        // ns of the device's time
    uint64_t sequence = 0;  // of arrival
  };

  static constexpr size_t kFlowsMax = 1024;
  // How far a light user may be ahead of its share.
  static constexpr double kQuantum = 10e6;  // ns
  // The most that a request is taken to cost: a wrong estimate is no debt of minutes.
  static constexpr Duration kCostMax = std::chrono::milliseconds(250);

  FlowOrder() = default;
  FlowOrder(const FlowOrder&) = delete;
  FlowOrder& operator=(const FlowOrder&) = delete;

  void Add(Item* item, FlowKey key, uint64_t bytes, Duration cost);
  // The next one; null: nobody waits.
  [[nodiscard]] Item* First() const;
  // What goes next of a user (the first level); null: nothing of him waits.
  [[nodiscard]] Item* FirstOf(uint64_t user) const;
  // What goes next of the user whose waiting item this is.
  [[nodiscard]] static Item* FirstOfUser(const Item& item);
  // A waiting item is served, be it the first or not: its flow pays.
  void Take(Item* item);
  // A waiting item is not wanted any more.
  void Leave(Item* item);
  // What was taken is over.
  static void Done(Item* item);

  // Whether little of the item's opener is under way.
  [[nodiscard]] static bool IsLight(const Item& item);
  // Nothing waits and nothing that was taken is under way.
  [[nodiscard]] bool idle() const { return under_way_ == 0; }

 private:
  struct User;

 public:
  struct Opener {
    User* user = nullptr;
    Item* head = nullptr;
    Item* tail = nullptr;
    uint64_t under_way = 0;  // items, waiting or taken
    uint64_t bytes = 0;      // of them
    double start = 0;        // while it waits
    double finish = 0;
    bool light = false;  // in which heap it stands
    uint32_t place = UINT32_MAX;
  };

 private:
  struct OpenerPlace {
    static uint32_t& Of(Opener& opener) { return opener.place; }
  };
  using Openers = PlacedHeap<Opener, double, OpenerPlace>;

  // The light or the heavy openers of a user that wait.
  struct Set {
    Openers openers;
    double finish = 0;
  };
  struct User {
    FlowOrder* order = nullptr;
    uint64_t under_way = 0;
    uint64_t bytes = 0;
    uint64_t openers_active = 0;  // with something under way
    Set light, heavy;
    double sets_time = 0;       // virtual time of the two sets
    double openers_time = 0;    // of the openers
    double openers_latest = 0;  // the last finish of any of them
    double start = 0;           // while it waits
    uint64_t sequence = 0;      // since it waits
    double finish = 0;
    uint32_t place = UINT32_MAX;

    [[nodiscard]] bool waits() const { return !light.openers.empty() || !heavy.openers.empty(); }
    [[nodiscard]] bool TurnOfLight() const;
  };
  struct UserPlace {
    static uint32_t& Of(User& user) { return user.place; }
  };
  using Users = PlacedHeap<User, double, UserPlace>;
  [[nodiscard]] static Item* FirstOf(const User& user);
  struct KeyHash {
    size_t operator()(const FlowKey& key) const { return MixHash(key.user, key.opener); }
  };

  // A virtual time, when a request is taken whose start tag is `start`.
  static void Advance(double* time, double start, const Item& item, uint64_t active);
  Opener* Find(FlowKey key);
  // Drops those that have nothing under way.
  void Sweep();
  void Unlink(Item* item);
  // Puts opener and user where their tags and what they have under way belong.
  void File(Opener* opener);
  void FileUser(User* user);
  void End(Item* item);  // it is not under way any more

  std::unordered_map<uint64_t, User> users_;
  std::unordered_map<FlowKey, Opener, KeyHash> openers_;
  Users users_waiting_;
  FlowKey last_key_;
  Opener* last_ = nullptr;  // of last_key_
  double time_ = 0;         // virtual time of the users
  double latest_ = 0;       // the last finish of any
  uint64_t under_way_ = 0;
  uint64_t users_active_ = 0;  // with something under way
  uint64_t untold_ = 0;        // requests of openers that were not told apart
  uint64_t sequence_ = 0;
  size_t sweep_at_ = 64;  // openers
};

}  // namespace weir
