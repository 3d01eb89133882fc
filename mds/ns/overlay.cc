#include "mds/ns/overlay.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "mds/format/ns_keys_format.h"

namespace weir::mds {
namespace {

// What is written once, scanned or deleted, would only take the place of what is asked for by key.
bool IsAskedFor(const std::string& key) {
  switch (static_cast<Table>(key.front())) {
    case Table::kAnswer:
    case Table::kCookie:
    case Table::kOrphan:
    case Table::kPurge:
      return false;
    default:
      return true;
  }
}

}  // namespace

// A key that is changed again and again stays pending, though its older changes are durable.
void Overlay::See(const Changes& changes, Seen* seen) const {
  const bool own = changes.session == seen->reader && changes.session != 0;
  const uint64_t others = own ? changes.others : changes.last;
  if (changes.last > committed_) seen->any = std::max(seen->any, changes.last);
  if (others > committed_) seen->others = std::max(seen->others, others);
}

Result<Overlay::Value> Overlay::Get(const std::string& key, Seen* seen,
                                    std::vector<Missing>* missing, Seen* contents) {
  if (const auto found = pending_.find(key); found != pending_.end()) {
    const Pending& pending = found->second;
    seen->counts = std::max(seen->counts, pending.counted);
    See(contents == nullptr ? pending.shown : pending.steady, seen);
    if (contents != nullptr) See(pending.shown, contents);
    return pending.value;
  }
  if (const auto cached = cache_.find(key); cached != cache_.end()) {
    Use(&cached->second);
    return cached->second.value;
  }
  Result<std::string> stored = missing == nullptr ? store_.Get(key) : store_.GetInMemory(key);
  if (missing != nullptr && stored.code() == ErrorCode::kAgain) missing->push_back({key, {}});
  if (!stored.ok() && stored.code() != ErrorCode::kNotFound) return stored.status();
  Value value;
  if (stored.ok()) value = std::move(*stored);
  Remember(key, value);
  return value;
}

Status Overlay::Scan(std::string_view begin, std::string_view end, Seen* seen, const Visit& visit,
                     std::vector<Missing>* missing) {
  const std::unique_ptr<KvStore::Iterator> stored =
      missing == nullptr ? store_.NewIteratorBefore(end) : store_.NewIteratorInMemory(end);
  std::string at(begin);  // up to here memory has them
  stored->Seek(begin);
  auto pending = pending_.lower_bound(begin);
  while (true) {
    if (missing != nullptr && !stored->Valid() && stored->status().code() == ErrorCode::kAgain) {
      missing->push_back({std::move(at), std::string(end)});
      return stored->status();
    }
    const bool has_stored = stored->Valid() && stored->key() < end;
    if (missing != nullptr && has_stored) at = stored->key();
    const bool has_pending = pending != pending_.end() && pending->first < end;
    if (!has_stored && !has_pending) return stored->status();
    if (has_pending && (!has_stored || pending->first <= stored->key())) {
      if (has_stored && pending->first == stored->key()) stored->Next();
      seen->counts = std::max(seen->counts, pending->second.counted);
      See(pending->second.shown, seen);
      const bool go_on =
          !pending->second.value.has_value() || visit(pending->first, *pending->second.value);
      if (!go_on) return Status::Ok();
      ++pending;
      continue;
    }
    if (!visit(stored->key(), stored->value())) return Status::Ok();
    stored->Next();
  }
}

Overlay::Pending& Overlay::Take(const std::string& key, Value value, uint64_t batch) {
  if (!IsAskedFor(key)) Forget(key);
  if (!loading_.empty()) loading_.erase(key);
  const auto pending = pending_.try_emplace(key).first;
  if (pending->second.batch() != batch) of_batch_[batch].push_back(pending);
  pending->second.value = std::move(value);
  return pending->second;
}

void Overlay::Put(const std::string& key, Value value, uint64_t batch, uint64_t session,
                  Change change) {
  Pending& pending = Take(key, std::move(value), batch);
  pending.shown.Add(batch, session);
  if (change == Change::kAny) pending.steady.Add(batch, session);
}

void Overlay::PutQuietly(const std::string& key, Value value, uint64_t batch) {
  Take(key, std::move(value), batch).counted = batch;
}

void Overlay::CopyBatch(uint64_t batch, WriteBatch* writes) const {
  const auto found = of_batch_.find(batch);
  if (found == of_batch_.end()) return;
  for (const auto& pending : found->second) {
    const Value& value = pending->second.value;
    if (value.has_value()) {
      writes->Put(pending->first, *value);
    } else {
      writes->Delete(pending->first);
    }
  }
}

void Overlay::Committed(uint64_t batch) {
  committed_ = batch;
  while (!of_batch_.empty() && of_batch_.begin()->first <= batch) {
    for (const auto& pending : of_batch_.begin()->second) {
      if (pending->second.batch() != of_batch_.begin()->first) continue;
      if (IsAskedFor(pending->first)) {
        Remember(pending->first, std::move(pending->second.value));
      }
      pending_.erase(pending);
    }
    of_batch_.erase(of_batch_.begin());
  }
}

void Overlay::Reset() {
  pending_.clear();
  of_batch_.clear();
  cache_.clear();
  once_.clear();
  again_.clear();
  loading_.clear();
}

uint64_t Overlay::BeginLoad(const std::string& key) {
  loading_[key] = ++last_load_;
  return last_load_;
}

// A key that is pending was written since, or is not loaded: it would have been found.
void Overlay::EndLoad(const std::string& key, uint64_t load, Value value) {
  if (TakeLoad(key, load)) Remember(key, std::move(value));
}

void Overlay::FailLoad(const std::string& key, uint64_t load) {
  (void)TakeLoad(key, load);
}

bool Overlay::TakeLoad(const std::string& key, uint64_t load) {
  const auto loading = loading_.find(key);
  if (loading == loading_.end() || loading->second != load) return false;
  loading_.erase(loading);
  return true;
}

// Written again is not read again: what is made is written twice, and then often asked for no more.
void Overlay::Remember(const std::string& key, Value value) {
  if (once_max_ == 0) return;
  const auto [cached, inserted] = cache_.try_emplace(key);
  cached->second.value = std::move(value);
  if (!inserted) return;
  cached->second.use = once_.insert(once_.end(), &cached->first);
  if (once_.size() > once_max_) Forget(*once_.front());
}

void Overlay::Use(Cached* cached) {
  again_.splice(again_.end(), cached->again ? again_ : once_, cached->use);
  cached->again = true;
  if (again_.size() > again_max_) Forget(*again_.front());
}

void Overlay::Forget(const std::string& key) {
  const auto cached = cache_.find(key);
  if (cached == cache_.end()) return;
  (cached->second.again ? again_ : once_).erase(cached->second.use);
  cache_.erase(cached);
}

}  // namespace weir::mds
