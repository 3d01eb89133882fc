// ForwardingKv: a RawKvStore on another one, for tests that change a call or two. Threads: any.
#pragma once

#include <memory>
#include <utility>

#include "common/kv/rocks_kv_store.h"

namespace weir::osd::testing {

class ForwardingKv : public RawKvStore {
 public:
  explicit ForwardingKv(std::unique_ptr<RawKvStore> below) : below_(std::move(below)) {}
  Result<std::string> Get(std::string_view key) override { return below_->Get(key); }
  Status Apply(const WriteBatch& batch, Durability durability) override {
    return below_->Apply(batch, durability);
  }
  std::unique_ptr<Iterator> NewIterator() override { return below_->NewIterator(); }
  uint64_t free_bytes() override { return below_->free_bytes(); }
  uint64_t total_bytes() override { return below_->total_bytes(); }
  uint64_t write_buffer_bytes() override { return below_->write_buffer_bytes(); }
  void SetMeter(std::shared_ptr<IoMeter> meter) override { below_->SetMeter(std::move(meter)); }
  uint64_t metered_bytes() override { return below_->metered_bytes(); }
  uint64_t unmetered_bytes() override { return below_->unmetered_bytes(); }
  Status VerifyTables() override { return below_->VerifyTables(); }

 protected:
  const std::unique_ptr<RawKvStore> below_;
};

}  // namespace weir::osd::testing
