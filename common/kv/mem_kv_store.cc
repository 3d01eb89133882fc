#include "common/kv/mem_kv_store.h"

namespace weir {

class MemKvStore::MapIterator final : public KvStore::Iterator {
 public:
  explicit MapIterator(Map map) : map_(std::move(map)), at_(map_.end()) {}
  void Seek(std::string_view key) override { at_ = map_.lower_bound(key); }
  [[nodiscard]] bool Valid() const override { return at_ != map_.end(); }
  void Next() override { ++at_; }
  [[nodiscard]] std::string_view key() const override { return at_->first; }
  [[nodiscard]] std::string_view value() const override { return at_->second; }
  [[nodiscard]] Status status() const override { return {}; }

 private:
  const Map map_;
  Map::const_iterator at_;
};

Result<std::string> MemKvStore::Get(std::string_view key) {
  std::lock_guard lock(mutex_);
  const auto it = map_.find(key);
  if (it == map_.end()) return Status(ErrorCode::kNotFound);
  return it->second;
}

Status MemKvStore::Apply(const WriteBatch& batch, Durability) {
  std::lock_guard lock(mutex_);
  if (!failure_.ok() && sound_ == 0) return failure_;
  if (!failure_.ok()) --sound_;
  for (const WriteBatch::Op& op : batch.ops()) {
    switch (op.kind) {
      case WriteBatch::Op::Kind::kPut:
        map_.insert_or_assign(op.key, op.value);
        break;
      case WriteBatch::Op::Kind::kDelete:
        map_.erase(op.key);
        break;
      case WriteBatch::Op::Kind::kDeleteRange:
        if (op.key < op.value) map_.erase(map_.lower_bound(op.key), map_.lower_bound(op.value));
        break;
    }
  }
  return {};
}

std::unique_ptr<KvStore::Iterator> MemKvStore::NewIterator() {
  std::lock_guard lock(mutex_);
  return std::make_unique<MapIterator>(map_);
}

void MemKvStore::FailWith(Status status, uint64_t after) {
  std::lock_guard lock(mutex_);
  failure_ = std::move(status);
  sound_ = after;
}

}  // namespace weir
