#include "tests/crash/cluster/sim_disk.h"

#include <utility>

namespace weir::crash {
namespace {

void Change(const WriteBatch& batch, SimTable::Map* map) {
  for (const WriteBatch::Op& op : batch.ops()) {
    switch (op.kind) {
      case WriteBatch::Op::Kind::kPut:
        map->insert_or_assign(op.key, op.value);
        break;
      case WriteBatch::Op::Kind::kDelete:
        map->erase(op.key);
        break;
      case WriteBatch::Op::Kind::kDeleteRange:
        if (op.key < op.value) map->erase(map->lower_bound(op.key), map->lower_bound(op.value));
        break;
    }
  }
}

class SimIterator final : public KvStore::Iterator {
 public:
  explicit SimIterator(std::shared_ptr<const SimTable::Map> map)
      : map_(std::move(map)), at_(map_->end()) {}
  void Seek(std::string_view key) override { at_ = map_->lower_bound(key); }
  [[nodiscard]] bool Valid() const override { return at_ != map_->end(); }
  void Next() override { ++at_; }
  [[nodiscard]] std::string_view key() const override { return at_->first; }
  [[nodiscard]] std::string_view value() const override { return at_->second; }
  [[nodiscard]] Status status() const override { return {}; }

 private:
  const std::shared_ptr<const SimTable::Map> map_;
  SimTable::Map::const_iterator at_;
};

Status NoPower() {
  return {ErrorCode::kIo, "the key-value store: no power"};
}

}  // namespace

void SimTable::PowerOn(Prng& prng) {
  const uint64_t kept = prng.Uniform(0, buffered.size());
  for (uint64_t i = 0; i < kept; ++i) Change(buffered[i], &durable);
  buffered.clear();
  visible = std::make_shared<Map>(durable);
}

Result<std::string> SimKv::Get(std::string_view key) {
  const auto it = table_.visible->find(key);
  if (it == table_.visible->end()) return Status(ErrorCode::kNotFound);
  return it->second;
}

void SimKv::FailAt(uint64_t nth, std::function<void()> power_lost) {
  fail_at_ = applies_ + nth;
  power_lost_ = std::move(power_lost);
}

Status SimKv::Apply(const WriteBatch& batch, Durability durability) {
  if (powerless_) return NoPower();
  WriteBatch changed;
  for (const WriteBatch::Op& op : batch.ops()) {
    switch (op.kind) {
      case WriteBatch::Op::Kind::kPut:
        changed.Put(op.key, op.value);
        break;
      case WriteBatch::Op::Kind::kDelete:
        changed.Delete(op.key);
        break;
      case WriteBatch::Op::Kind::kDeleteRange:
        changed.DeleteRange(op.key, op.value);
        break;
    }
  }
  bool durable = durability == Durability::kDurable;
  if (bug_ != nullptr && !bug_(&changed)) durable = false;
  Status flushed;
  if (durable && device_ != nullptr) flushed = device_->Flush();
  if (durability == Durability::kDurable && applies_++ == fail_at_) {
    flushed = NoPower();
    if (tearing_ != nullptr) tearing_(&changed);
    power_lost_();
  }
  // The log was written before the flush that failed: it may have come through.
  powerless_ = !flushed.ok();
  if (powerless_ && prng_.Chance(0.5)) return flushed;
  if (table_.visible.use_count() > 1) {
    table_.visible = std::make_shared<SimTable::Map>(*table_.visible);
  }
  Change(changed, table_.visible.get());
  table_.buffered.push_back(std::move(changed));
  if (!durable) return flushed;
  for (const WriteBatch& one : table_.buffered) Change(one, &table_.durable);
  table_.buffered.clear();
  return flushed;
}

std::unique_ptr<KvStore::Iterator> SimKv::NewIterator() {
  return std::make_unique<SimIterator>(table_.visible);
}

SimDevice::~SimDevice() {
  PowerOff();
}

Status SimDevice::Noted(Status status) {
  if (below_.powerless() && !told_) {
    told_ = true;
    if (lost_ != nullptr) lost_();
  }
  return status;
}

void SimDevice::Begin(std::function<Status()> run, Done done) {
  if (off_) return done({ErrorCode::kIo, name() + ": no power"});
  if (immediate_) return done(Noted(run()));
  const auto least = static_cast<uint64_t>(timing_.least.count());
  const auto most = static_cast<uint64_t>(timing_.most.count());
  const TimePoint when = clock_.Now() + Duration(static_cast<int64_t>(prng_.Uniform(least, most)));
  auto request = std::make_shared<Request>(Request{std::move(run), std::move(done)});
  const auto place = under_way_.insert(under_way_.end(), request);
  events_.At(when, [this, place, alive = std::weak_ptr(request)] {
    const auto due = alive.lock();
    if (due == nullptr) return;
    under_way_.erase(place);
    due->done(Noted(due->run()));
  });
}

// Of writes that were under way some have reached the medium.
void SimDevice::PowerOff() {
  off_ = true;
  told_ = true;
  const auto under_way = std::exchange(under_way_, {});
  for (const auto& request : under_way) {
    if (prng_.Chance(0.5)) (void)request->run().ok();
    request->done({ErrorCode::kIo, name() + ": no power"});
  }
}

void SimDevice::DoRead(uint64_t offset, Buffer buffer, Done done) {
  Begin([this, offset, buffer] { return below_.Read(offset, buffer); }, std::move(done));
}

void SimDevice::DoWrite(uint64_t offset, Buffer buffer, Done done) {
  Begin([this, offset, buffer] { return below_.Write(offset, buffer); }, std::move(done));
}

void SimDevice::DoFlush(Done done) {
  Begin([this] { return below_.Flush(); }, std::move(done));
}

Status SimDevice::DoReadSync(uint64_t offset, Buffer buffer) {
  if (off_) return {ErrorCode::kIo, name() + ": no power"};
  return Noted(below_.Read(offset, std::move(buffer)));
}

Status SimDevice::DoWriteSync(uint64_t offset, Buffer buffer) {
  if (off_) return {ErrorCode::kIo, name() + ": no power"};
  return Noted(below_.Write(offset, std::move(buffer)));
}

Status SimDevice::DoFlushSync() {
  if (off_) return {ErrorCode::kIo, name() + ": no power"};
  return Noted(below_.Flush());
}

}  // namespace weir::crash
