// SimClient: a mount as the chain sees it: some requests at a time, retried under the same op id
// until they are answered or given up.
#pragma once

#include "tests/crash/replication/history.h"
#include "tests/crash/replication/machines.h"

namespace weir::crash::replication {

class SimClient {
 public:
  SimClient(World& world, History& history, const Setup& setup, Node node);

  void Start(const std::map<uint32_t, Chain>& chains);
  // Asks for nothing new, and goes on with what is open.
  void Stop() { stopped_ = true; }
  // Forgets what is open; goes on as another session.
  void Crash();
  [[nodiscard]] size_t open() const { return open_.size(); }

 private:
  struct Open {
    Request request;
    TimePoint sent_at, asked_at;
    uint32_t tries = 0;
    Node to = 0;
  };
  void Think();
  void Ask();
  [[nodiscard]] Request MakeRequest();
  void Send(Open* open);
  [[nodiscard]] Node Choose(const Open& open);
  [[nodiscard]] IdFloors FloorsOf(const Request& request) const;
  void Receive(Node from, const Packet& packet);
  void Retry();
  void After(Duration delay, std::function<void()> task);

  World& world_;
  History& history_;
  const Setup setup_;
  const Node node_;
  bool stopped_ = false;
  uint64_t session_;
  uint64_t lives_ = 0;
  uint64_t last_change_ = 0, last_read_ = 0;
  std::map<uint32_t, Chain> chains_;
  std::map<OpId, Open> open_;
  std::map<ObjectId, Version> seen_;
};

}  // namespace weir::crash::replication
