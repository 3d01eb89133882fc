// ColdKvStore: a KvStore above another of which nothing is in memory, not even what was just
// written, before it has been read: so that whoever reads memory only meets every case in which he
// has to wait. Stays so until Forget. Threads: any.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "common/kv/kv_store.h"

namespace weir::testing {

class ColdKvStore final : public KvStore {
 public:
  explicit ColdKvStore(KvStore& below) : below_(below) {}

  // Nothing is in memory any more.
  void Forget() {
    const std::lock_guard lock(mutex_);
    keys_.clear();
    steps_.clear();
    at_end_ = false;
  }
  // What is read is not kept either.
  void set_forgets(bool forgets) { forgets_ = forgets; }
  // Every read of the medium fails with this from now on; ok ends it.
  void FailWith(Status status) {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(status);
  }
  // Reads of the medium.
  [[nodiscard]] uint64_t reads() const {
    const std::lock_guard lock(mutex_);
    return reads_;
  }

  Result<std::string> Get(std::string_view key) override {
    {
      const std::lock_guard lock(mutex_);
      ++reads_;
      WEIR_RETURN_IF_ERROR(failure_);
      if (!forgets_) keys_.emplace(key);
    }
    return below_.Get(key);
  }
  Result<std::string> GetInMemory(std::string_view key) override {
    {
      const std::lock_guard lock(mutex_);
      if (!keys_.contains(key)) return Status(ErrorCode::kAgain, "not in memory");
    }
    return below_.Get(key);
  }
  Status Apply(const WriteBatch& batch, Durability durability) override {
    return below_.Apply(batch, durability);
  }
  bool HasRoom() override { return below_.HasRoom(); }
  bool AwaitRoom() override { return below_.AwaitRoom(); }
  std::unique_ptr<Iterator> NewIterator() override {
    return std::make_unique<Steps>(*this, below_.NewIterator(), false);
  }
  std::unique_ptr<Iterator> NewIteratorBefore(std::string_view end) override {
    return std::make_unique<Steps>(*this, below_.NewIteratorBefore(end), false);
  }
  std::unique_ptr<Iterator> NewIteratorInMemory(std::string_view end) override {
    return std::make_unique<Steps>(*this, below_.NewIteratorBefore(end), true);
  }

 private:
  // Every key that an iterator comes to is in memory or not.
  class Steps final : public Iterator {
   public:
    Steps(ColdKvStore& store, std::unique_ptr<Iterator> below, bool in_memory)
        : store_(store), below_(std::move(below)), in_memory_(in_memory) {}
    void Seek(std::string_view key) override {
      missing_ = false;
      below_->Seek(key);
      Arrive();
    }
    void Next() override {
      below_->Next();
      Arrive();
    }
    [[nodiscard]] bool Valid() const override { return !missing_ && below_->Valid(); }
    [[nodiscard]] std::string_view key() const override { return below_->key(); }
    [[nodiscard]] std::string_view value() const override { return below_->value(); }
    [[nodiscard]] Status status() const override {
      return missing_ ? Status(ErrorCode::kAgain, "not in memory") : below_->status();
    }

   private:
    void Arrive() {
      const std::lock_guard lock(store_.mutex_);
      if (in_memory_) {
        missing_ = below_->Valid() ? !store_.steps_.contains(below_->key()) : !store_.at_end_;
        return;
      }
      ++store_.reads_;
      if (store_.forgets_) return;
      if (below_->Valid()) {
        store_.steps_.emplace(below_->key());
      } else {
        store_.at_end_ = true;
      }
    }
    ColdKvStore& store_;
    const std::unique_ptr<Iterator> below_;
    const bool in_memory_;
    bool missing_ = false;
  };

  KvStore& below_;
  mutable std::mutex mutex_;
  std::set<std::string, std::less<>> keys_;   // that Get finds
  std::set<std::string, std::less<>> steps_;  // that iterators come to
  bool at_end_ = false;                       // behind all
  bool forgets_ = false;
  uint64_t reads_ = 0;
  Status failure_;
};

}  // namespace weir::testing
