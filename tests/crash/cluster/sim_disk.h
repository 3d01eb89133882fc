// The disk of a simulated machine, which outlives its daemons: blocks that forget what was not
// flushed (FaultyDevice), and beside them a key-value store in memory with the same manners.
// RocksDB itself has threads, whose order no seed decides. Threads: one.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/prng.h"
#include "common/disk/faulty_device.h"
#include "common/kv/rocks_kv_store.h"
#include "common/testing/sim_transport.h"

namespace weir::crash {

// What the key-value store keeps. A batch is atomic; a power loss keeps every durable one, and of
// the others some of the first.
struct SimTable {
  using Map = std::map<std::string, std::string, std::less<>>;
  std::shared_ptr<Map> visible = std::make_shared<Map>();
  Map durable;
  std::vector<WriteBatch> buffered;  // visible, not durable

  void PowerOn(Prng& prng);
};

// One life of the store: opened by a daemon, gone with it. `device`: flushed by every durable
// Apply, as RocksDB on a raw disk does; may be null.
class SimKv final : public RawKvStore {
 public:
  // What a wrong store does with a batch: changes it. False: it is answered before it is durable.
  using Bug = std::function<bool(WriteBatch*)>;
  SimKv(SimTable& table, BlockDevice* device, Prng& prng)
      : table_(table), device_(device), prng_(prng) {}

  Result<std::string> Get(std::string_view key) override;
  Status Apply(const WriteBatch& batch, Durability durability) override;
  std::unique_ptr<Iterator> NewIterator() override;
  uint64_t free_bytes() override { return 1 << 30; }
  uint64_t total_bytes() override { return 1 << 30; }
  uint64_t write_buffer_bytes() override { return 1 << 20; }
  void SetMeter(std::shared_ptr<IoMeter>) override {}
  uint64_t metered_bytes() override { return 0; }
  uint64_t unmetered_bytes() override { return 0; }
  Status VerifyTables() override { return {}; }

  void SetBug(Bug bug) { bug_ = std::move(bug); }
  // What a wrong store makes of the batch in which the power fails.
  void SetTearing(Bug tearing) { tearing_ = std::move(tearing); }
  // The power fails at the nth durable Apply from now, before or after it reached the disk.
  void FailAt(uint64_t nth, std::function<void()> power_lost);

 private:
  SimTable& table_;
  BlockDevice* const device_;
  Prng& prng_;
  Bug bug_, tearing_;
  uint64_t applies_ = 0, fail_at_ = UINT64_MAX;
  std::function<void()> power_lost_;
  bool powerless_ = false;
};

// One life of the device: requests take their time, in which others overtake them. The synchronous
// calls, which the store's own workers make, take none.
class SimDevice final : public BlockDevice {
 public:
  struct Timing {
    Duration least = std::chrono::microseconds(50);
    Duration most = std::chrono::microseconds(400);
  };
  SimDevice(FaultyDevice& below, testing::SimNetwork& events, testing::ManualClock& clock,
            Prng& prng)
      : below_(below), events_(events), clock_(clock), prng_(prng) {}
  ~SimDevice() override;

  [[nodiscard]] uint64_t size() const override { return below_.size(); }
  [[nodiscard]] const std::string& name() const override { return below_.name(); }

  void SetTiming(const Timing& timing) { timing_ = timing; }
  // Requests are done at once, for those who wait for them.
  void SetImmediate(bool immediate) { immediate_ = immediate; }
  // Called when the device below has lost its power.
  void OnPowerLoss(std::function<void()> lost) { lost_ = std::move(lost); }
  // Everything under way fails, or not, and everything later does.
  void PowerOff();

 protected:
  void DoRead(uint64_t offset, Buffer buffer, Done done) override;
  void DoWrite(uint64_t offset, Buffer buffer, Done done) override;
  void DoFlush(Done done) override;
  Status DoDiscard(uint64_t, uint64_t) override { return {}; }
  Status DoReadSync(uint64_t offset, Buffer buffer) override;
  Status DoWriteSync(uint64_t offset, Buffer buffer) override;
  Status DoFlushSync() override;

 private:
  struct Request {
    std::function<Status()> run;
    Done done;
  };
  void Begin(std::function<Status()> run, Done done);
  Status Noted(Status status);

  FaultyDevice& below_;
  testing::SimNetwork& events_;
  testing::ManualClock& clock_;
  Prng& prng_;
  Timing timing_;
  bool immediate_ = false, off_ = false, told_ = false;
  std::function<void()> lost_;
  std::list<std::shared_ptr<Request>> under_way_;
};

}  // namespace weir::crash
