// History: what clients asked and were told, and what members published; judged at the end.
//
// Published operations of an object, in the order of their versions, are its states. Every answer
// must fit one of them, in an order that agrees with real time: a read sees a state not older than
// any that was acknowledged or read before it began, and nothing that began after it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/crash/replication/world.h"

namespace weir::crash::replication {

class History {
 public:
  void Asked(const Request& request, TimePoint when);
  void Told(const OpId& id, const Reply& reply, TimePoint when);
  // A member has made it readable. What is wrong with that at once; empty: nothing.
  std::string Published(const Operation& operation);

  // The first thing that is wrong; empty: nothing.
  [[nodiscard]] std::string Judge() const;
  // What an object must be in the end; none: there is none.
  [[nodiscard]] std::optional<std::string> FinalBytes(ObjectId object) const;
  [[nodiscard]] uint64_t acknowledged() const { return acknowledged_; }
  [[nodiscard]] uint64_t refused() const { return refused_; }
  [[nodiscard]] uint64_t reads() const { return reads_; }

 private:
  struct Event {
    Request request;
    TimePoint asked;
    std::optional<TimePoint> told;
    Reply reply;
  };
  struct State {
    std::optional<std::string> bytes;
    Version version;       // of the operation that made it
    Version data_version;  // none(): there is no object
  };
  [[nodiscard]] std::vector<State> StatesOf(ObjectId object) const;
  [[nodiscard]] std::string JudgeObject(ObjectId object,
                                        const std::vector<const Event*>& events) const;
  [[nodiscard]] std::string JudgeChange(const Event& event) const;

  std::map<OpId, Event> events_;
  std::map<ObjectId, std::map<Version, Operation>> published_;
  std::map<OpId, Version> versions_;
  uint64_t acknowledged_ = 0, refused_ = 0, reads_ = 0;
};

}  // namespace weir::crash::replication
