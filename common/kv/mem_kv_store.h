// MemKvStore: a KvStore in a std::map, for tests. An iterator copies the map. Threads: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

#include "common/kv/kv_store.h"

namespace weir {

class MemKvStore final : public KvStore {
 public:
  Result<std::string> Get(std::string_view key) override;
  Status Apply(const WriteBatch& batch, Durability durability) override;
  std::unique_ptr<Iterator> NewIterator() override;
  bool HasRoom() override { return has_room_; }
  void SetRoom(bool has_room) { has_room_ = has_room; }
  // Every Apply, after so many more, fails with this and changes nothing; ok ends it.
  void FailWith(Status status, uint64_t after = 0);

 private:
  using Map = std::map<std::string, std::string, std::less<>>;
  class MapIterator;
  mutable std::mutex mutex_;
  Map map_;
  Status failure_;
  uint64_t sound_ = 0;  // before it fails
  std::atomic<bool> has_room_{true};
};

}  // namespace weir
