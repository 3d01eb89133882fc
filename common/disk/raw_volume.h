// RawVolume: the few files of a RocksDB on a region of a block device, without a filesystem.
// Format and why it is cheap to sync: raw_format.h. RocksDB's view of it: raw_file_system.h.
//
// Units:   bytes; positions in a file are bytes from its start.
// Threads: every call from any thread; one RawFile is written by one thread at a time.
// Errors:  kNoSpace when no unit is free; kIo from the device: after a failed journal write the
//          volume refuses further changes, because nobody knows what the journal holds now.
// Durability: Create, Remove and changes of a size are durable after Commit; Rename on return.
//          Space of a removed file is reused only after its removal is durable and nobody has it
//          open.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/disk/block_device.h"
#include "common/disk/io_meter.h"
#include "common/disk/raw_format.h"

namespace weir {

struct Region {
  uint64_t offset = 0;
  uint64_t length = 0;
};

struct RawExtent {
  uint32_t unit;
  uint32_t count;
};

// All fields are guarded by the volume's mutex except ino, framed and table, which never change.
struct RawFile {
  uint64_t ino = 0;
  bool framed = false;
  bool table = false;  // of RocksDB: what flushes and compactions write
  std::string name;
  uint64_t size = 0;
  std::vector<RawExtent> extents;
  bool queued = false;  // for the next Commit
  bool dirty = false;   // changed and not yet durable
};
using RawFilePtr = std::shared_ptr<RawFile>;

inline bool IsTable(const std::string& name) {
  return name.ends_with(".sst");
}

class RawVolume {
 public:
  static constexpr uint64_t kMinBytes = 4 << 20;

  static Status Format(BlockDevice& device, Region region);
  // The volume may be smaller than its region. kGrows: it takes more of an image, which it makes
  // larger, when it is half full; the region then is the whole image.
  enum class Growth { kFixed, kGrows };
  static Result<std::unique_ptr<RawVolume>> Mount(BlockDevice& device, Region region,
                                                  Growth growth = Growth::kFixed);

  RawFilePtr Find(const std::string& name);
  // A new empty file; one of the same name is removed.
  RawFilePtr Create(const std::string& name, bool framed);
  Status Remove(const std::string& name);
  Status Rename(const std::string& from, const std::string& to);
  std::vector<std::string> List(const std::string& prefix);
  uint64_t SizeOf(const RawFile& file);
  void SetSize(const RawFilePtr& file, uint64_t size);  // journalled by the next Commit
  [[nodiscard]] bool IsDirty(const RawFile& file);
  // Makes sure that bytes [0, end) of the file have a place.
  Status Reserve(const RawFilePtr& file, uint64_t end);
  // Journals every change since the last one: one write, one flush.
  Status Commit();

  // Aligned I/O within the reserved space; Write is not durable before Flush or Commit.
  Status Read(const RawFile& file, uint64_t position, Buffer buffer);
  Status Write(const RawFile& file, uint64_t position, const Buffer& buffer);
  Status Flush() { return device_.Flush(); }

  // From now on the meter is asked for what background threads do to tables, piece by piece, and
  // the counters start anew. Null: nobody is asked; who asks already goes on.
  // Not asked for by design: logs (they carry writes that were charged), the few KiB of manifest
  // and journal behind each table, and table reads of the foreground (part of an operation that
  // was charged).
  void SetMeter(std::shared_ptr<IoMeter> meter);
  [[nodiscard]] uint64_t metered_bytes() const { return metered_bytes_; }
  // Bytes of tables that background threads moved, or that anybody wrote, with nobody asked.
  [[nodiscard]] uint64_t unmetered_bytes() const { return unmetered_bytes_; }

  [[nodiscard]] uint64_t fsid() const { return super_.fsid; }
  [[nodiscard]] uint64_t free_bytes();
  [[nodiscard]] uint64_t total_bytes();
  uint64_t CapacityOf(const RawFile& file);
  // For a checker: units that two files have, files larger than their space, wrong counts.
  std::vector<std::string> SpaceProblems();

 private:
  RawVolume(BlockDevice& device, Region region, Growth growth = Growth::kFixed)
      : device_(device), region_(region), growth_(growth) {}
  Status LoadSuperblock();
  Status CheckOtherHalf() const;
  Status ReplayJournal();
  bool IsRecord(const Buffer& half, uint64_t position, uint64_t epoch,
                raw::RecordHeader* header) const;
  Status CheckNoneFollows(const Buffer& half, uint64_t epoch, uint64_t seq, uint64_t from) const;
  Status ApplyRecord(std::string_view ops);
  Status ScanLogs();
  Status WriteSuperblock();
  void GrowIfHalfFull();
  Status GrowTo(uint64_t region_bytes);
  Status AppendRecord(const std::string& ops);  // requires journal_mutex_
  Status SwitchHalf(const std::string& snapshot);
  uint64_t FreeBytesLocked() const;
  // Requires mutex_ for the rest.
  std::string EncodeSnapshot() const;
  static void EncodeFile(const RawFile& file, std::string& out);
  static bool LogsAreHigh(const BlockDevice& device) { return device.rotational(); }
  uint64_t AllocateUnits(RawFile& file, uint64_t units);
  void ReleaseUnits(const RawFile& file);
  void RemoveLocked(const RawFilePtr& file);
  void ReclaimLocked();
  void MarkDirty(const RawFilePtr& file);
  template <typename Io>
  Status ForPieces(const RawFile& file, uint64_t position, const Buffer& buffer, Io io);
  template <typename Io>
  Status Metered(bool write, uint64_t offset, const Buffer& buffer, Io io);
  [[nodiscard]] uint64_t JournalOffset(uint32_t half) const;
  [[nodiscard]] uint64_t UnitOffset(uint32_t unit) const;

  BlockDevice& device_;
  const Region region_;
  const Growth growth_;
  std::atomic<bool> growth_failed_{false};  // and was told of
  raw::Superblock super_{};

  std::mutex journal_mutex_;  // held over journal I/O; taken before mutex_
  uint64_t journal_used_ = 0, next_seq_ = 0;
  Status failed_;

  std::mutex mutex_;  // short; never held over I/O
  std::map<std::string, RawFilePtr> files_;
  std::vector<RawFilePtr> dirty_;
  std::vector<uint64_t> removed_;          // not yet journalled
  std::vector<RawFilePtr> removed_files_;  // the same, with their space
  std::vector<RawFilePtr> reclaimable_;    // journalled; free as soon as nobody has them open
  std::vector<bool> units_;                // true: taken
  uint64_t free_units_ = 0, next_ino_ = 0;

  std::mutex meter_mutex_;  // short
  std::shared_ptr<IoMeter> meter_;
  std::atomic<uint64_t> metered_bytes_{0}, unmetered_bytes_{0};
};

}  // namespace weir
