// FakeOsds: an ObjectSender over in-memory objects whose answers come when the test says so, in the
// order it says, or fail.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "client/remote/object_io.h"
#include "common/base/crc32c.h"
#include "common/placement/striper.h"

namespace weir::client {

class FakeOsds final : public ObjectSender {
 public:
  struct Flight {
    ObjectOp op;
    Stamp stamp;
    Callback callback;
  };

  void Send(const ObjectOp& op, const Stamp& stamp, Callback callback) override {
    flights.push_back({op, stamp, std::move(callback)});
    ++sent;
    charged.insert(op.class_id);
    tiers.insert(op.tier.ToString());
    flows.insert({op.flow.uid, op.flow.opener});
    ++lanes[op.lane()];
    if (immediate) Answer(flights.size() - 1);
  }
  [[nodiscard]] bool Reachable(OsdId osd) const override { return !unreachable.contains(osd); }

  // Applies and answers the flight at this place.
  void Answer(size_t place, uint64_t window_bytes = 0) {
    Flight flight = Take(place);
    if (flight.op.verb != ObjectOp::Verb::kData) {
      flight.callback({AnswerRange(flight)});
      return;
    }
    std::string& object = objects[flight.op.object];
    ObjectOutcome outcome;
    if (flight.op.write) {
      outcome.grown_bytes = grown;
      outcome.free_bytes = free_bytes;
      if (object.size() < flight.op.offset + flight.op.length) {
        object.resize(flight.op.offset + flight.op.length);
      }
      std::memcpy(object.data() + flight.op.offset, flight.op.payload.data(), flight.op.length);
      crc_matches &= Crc32c(flight.op.payload.data(), flight.op.length) == flight.op.payload_crc;
    } else if (flight.op.offset < object.size()) {
      outcome.payload =
          Buffer::CopyOf(std::string_view(object).substr(flight.op.offset, flight.op.length));
    }
    outcome.object_size = object.size();
    outcome.window_bytes = window_bytes;
    outcome.server_time = server_time;
    outcome.limit_time = limit_time;
    flight.callback({std::move(outcome)});
  }
  void Fail(size_t place, ErrorCode code) { Take(place).callback({Status(code, "told to fail")}); }
  // The OSD knows a newer chain of the object's slot.
  void Refuse(size_t place, const Chain& newer) {
    Take(place).callback({Status(ErrorCode::kStaleEpoch, "another chain is in force"), newer});
  }
  void AnswerAll() {
    while (!flights.empty()) Answer(0);
  }

  // What is not zero counts as data, byte by byte.
  ObjectOutcome AnswerRange(const Flight& flight) {
    const ObjectOp& op = flight.op;
    ObjectOutcome outcome;
    outcome.osd = flight.stamp.osd;
    const auto end = [&op](const std::string& bytes) {
      return std::min<uint64_t>(bytes.size(), op.offset + op.length);
    };
    if (op.verb == ObjectOp::Verb::kCopy) {
      std::string bytes = objects[op.source];
      bytes.resize(std::max<size_t>(bytes.size(), op.source_offset + op.length));
      std::string& target = objects[op.object];
      target.resize(std::max<size_t>(target.size(), op.offset + op.length));
      target.replace(op.offset, op.length, bytes, op.source_offset, op.length);
      copied += op.length;
      return outcome;
    }
    if (op.verb == ObjectOp::Verb::kAllocate || op.verb == ObjectOp::Verb::kGiveBack) {
      const bool gives = op.verb == ObjectOp::Verb::kGiveBack;
      const uint64_t first = op.offset / kBlockSize;
      const uint64_t last = (op.offset + op.length + kBlockSize - 1) / kBlockSize;
      outcome.grown_bytes = 0;
      for (uint64_t block = first; block < last; ++block) {
        if (gives) kept[op.object].erase(block);
        if (gives || !kept[op.object].insert(block).second) continue;
        outcome.extents.emplace_back(block * kBlockSize, kBlockSize);
        *outcome.grown_bytes += kBlockSize;
      }
      return outcome;
    }
    const auto found = objects.find(op.object);
    for (uint64_t i = op.offset; found != objects.end() && i < end(found->second); ++i) {
      if (op.verb == ObjectOp::Verb::kPunch) found->second[i] = 0;
      if (found->second[i] == 0) continue;
      if (!outcome.extents.empty() &&
          outcome.extents.back().first + outcome.extents.back().second == i) {
        ++outcome.extents.back().second;
      } else {
        outcome.extents.emplace_back(i, 1);
      }
    }
    asked.insert(op.object);
    std::set<ObjectId> known = asked;  // like an OSD that remembers what does not exist
    for (const auto& [id, bytes] : objects) known.insert(id);
    for (const ObjectId id : known) {
      if (!op.want_next || id.inode != op.object.inode || id.index <= op.object.index) continue;
      if (map != nullptr && map->ChainOf(op.pool, id)->head() != flight.stamp.osd) continue;
      outcome.next_object = std::min(outcome.next_object, id.index);
    }
    return outcome;
  }

  std::shared_ptr<const ClusterMap> map;   // who has which object, for next_object
  uint64_t copied = 0;                     // bytes, inside an OSD
  Duration server_time{0}, limit_time{0};  // what answers say
  std::optional<uint64_t> grown;           // what answers to writes say, as an OSD of today
  std::optional<uint64_t> free_bytes;      // the same
  bool immediate = false;
  bool crc_matches = true;
  uint64_t sent = 0;
  std::multiset<ClassId> charged;  // of all that was sent
  std::set<std::string> tiers;     // too
  std::set<std::pair<uint32_t, uint64_t>> flows;
  std::map<Lane, int> lanes;
  std::set<ObjectId> asked;  // for ranges
  std::vector<Flight> flights;
  std::map<ObjectId, std::string> objects;
  std::map<ObjectId, std::set<uint64_t>> kept;  // blocks
  std::map<OsdId, bool> unreachable;

 private:
  Flight Take(size_t place) {
    Flight flight = std::move(flights.at(place));
    flights.erase(flights.begin() + static_cast<ptrdiff_t>(place));
    return flight;
  }
};

// A map of one pool (id 1) whose slots go round robin over `osds` OSDs.
inline std::shared_ptr<const ClusterMap> MapOf(uint32_t osds, uint64_t epoch = 1) {
  auto map = std::make_shared<ClusterMap>();
  map->epoch = Epoch(epoch);
  map->cluster_uuid = "test";
  Pool pool;
  pool.id = PoolId(1);
  pool.name = "default";
  for (uint32_t i = 0; i < osds; ++i) {
    map->osds[OsdId(i)].id = OsdId(i);
    pool.osds.emplace_back(OsdId(i));
  }
  for (uint32_t slot = 0; osds > 0 && slot < 16; ++slot) {
    pool.chains.push_back({1, {{OsdId(slot % osds), 0, replication::MemberState::kServing}}});
  }
  map->pools[pool.id] = pool;
  return map;
}

inline FileLayout LayoutOf(uint64_t unit, uint32_t count, uint64_t object_size) {
  FileLayout layout;
  layout.stripe_unit = unit;
  layout.stripe_count = count;
  layout.object_size = object_size;
  layout.pool = PoolId(1);
  return layout;
}

}  // namespace weir::client
