// FaultyDevice: a MemDevice with a volatile write cache and everything that goes wrong with disks:
// power loss that drops, keeps or tears unflushed writes by seed, EIO at the nth request, bit rot,
// requests that stall until the test releases them, and a cache that lies about flushes (the proof
// that a crash test would notice a missing flush).
//
// Sectors of 512 bytes are atomic, 4 KiB blocks are not: a torn block has some sectors of an older
// and some of a newer write.
// Threads: any. `done` runs inside the call, or inside ReleaseStalled.
#pragma once

#include <array>
#include <map>
#include <mutex>
#include <vector>

#include "common/disk/mem_device.h"

namespace weir {

class FaultyDevice final : public BlockDevice {
 public:
  explicit FaultyDevice(std::unique_ptr<MemDevice> medium);

  // Power fails at the nth write or flush from now (0: the next one): it and all requests after it
  // fail with kIo and change nothing.
  void PowerLossAt(uint64_t nth);
  [[nodiscard]] bool powerless() const;
  // Writes and flushes seen so far.
  [[nodiscard]] uint64_t mutations() const;
  // Power returns, all pending faults are forgotten. Every block with unflushed writes now has, by
  // `seed`, its flushed bytes, those of one of the later writes, or a mix of sectors.
  void PowerOn(uint64_t seed);

  // What is on the medium now, for another device: one that failed a flush stays suspect.
  [[nodiscard]] std::unique_ptr<MemDevice> CloneMedium() const { return medium_->Clone(); }

  // Flushes succeed and do nothing, as in a disk that lies.
  void IgnoreFlushes(bool ignore);
  // The nth request from now of any kind (0: the next) and every `period`th after it fail with kIo;
  // period 0: only that one.
  void FailAt(uint64_t nth, uint64_t period = 0);
  void ClearFaults();
  // Flips bits of one byte on the medium, as bit rot does: durable, no error reported.
  void FlipBits(uint64_t offset, uint8_t mask);
  // Requests wait from now on until ReleaseStalled, which runs them and ends the stall.
  void Stall();
  void ReleaseStalled();
  [[nodiscard]] size_t stalled() const;

  Status Grow(uint64_t size) override;
  [[nodiscard]] uint64_t size() const override { return medium_->size(); }
  [[nodiscard]] const std::string& name() const override { return medium_->name(); }

 protected:
  void DoRead(uint64_t offset, Buffer buffer, Done done) override;
  void DoWrite(uint64_t offset, Buffer buffer, Done done) override;
  void DoFlush(Done done) override;
  Status DoDiscard(uint64_t, uint64_t) override { return {}; }

 private:
  using Block = std::array<uint8_t, kBlockSize>;
  // Puts the request aside when stalling; true: it will run later.
  bool StallThis(std::function<void()> run);
  Status Admit(bool mutation);  // counts the request; the fault that hits it. Requires mutex_.
  Status ApplyWrite(uint64_t offset, const Buffer& buffer);
  Status ApplyFlush();
  Status ReadMedium(uint64_t offset, const Buffer& buffer);

  const std::unique_ptr<MemDevice> medium_;  // what a reader sees now
  mutable std::mutex mutex_;
  // Per block with unflushed writes: the flushed bytes first, then what was written since.
  std::map<uint64_t, std::vector<Block>> unflushed_;
  std::vector<std::function<void()>> stalled_;
  bool stalling_ = false, powerless_ = false, ignore_flushes_ = false;
  uint64_t requests_ = 0, mutations_ = 0;
  uint64_t power_loss_at_ = UINT64_MAX, fail_at_ = UINT64_MAX, fail_period_ = 0;
};

}  // namespace weir
