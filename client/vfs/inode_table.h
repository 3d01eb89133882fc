// Inode: what this mount knows of one file. InodeTable: all of them that the kernel or we refer to.
//
// Attributes come from the MDS. What this mount wrote and has not reported (MDS_WROTE) lies over
// them: a size can only be larger, an mtime only newer. A report captures the state when its flush
// starts; writes that happen meanwhile stay unreported.
//
// Lookup counts: each entry handed to the kernel adds one, FORGET takes n away. Pins are ours: open
// handles, dirty data, reports. An inode leaves the table when it has neither.
// Threads: all methods from any thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "client/vfs/file_attr.h"
#include "common/base/result.h"

namespace weir::client {

class Inode {
 public:
  explicit Inode(InodeId id) : id_(id) {}

  [[nodiscard]] InodeId id() const { return id_; }
  // Of the tag that covers it, if one does: then it holds for everybody; else see caller_classes.h.
  [[nodiscard]] std::optional<ClassId> tag_class() const {
    const uint32_t id = tag_class_.load(std::memory_order_relaxed);
    return id == kUntagged ? std::nullopt : std::optional(ClassId(id));
  }
  void set_tag_class(std::optional<ClassId> id) {
    tag_class_.store(id.has_value() ? id->value : kUntagged, std::memory_order_relaxed);
  }

  // Takes news from the MDS; returns what the kernel shall see.
  FileAttr Update(const FileAttr& from_mds);
  [[nodiscard]] FileAttr attr() const;
  [[nodiscard]] uint64_t size() const;
  [[nodiscard]] FileLayout layout() const;
  // Whether quotas let the file reach that far, as far as the MDS has told.
  [[nodiscard]] bool QuotaAllows(uint64_t end) const;
  [[nodiscard]] bool has_suid_or_sgid() const;

  // Data up to `end` was written here at that time. `kill_suid`: by somebody who loses such bits;
  // the report of it is charged to `class_id`.
  void Wrote(uint64_t end, int64_t mtime_ns, bool kill_suid = false, ClassId class_id = {});
  // The MDS has set the size: nothing of ours lies over it any more.
  void Resized(const FileAttr& from_mds);
  // Grows with every local change of data and when the MDS tells of one elsewhere: what was read
  // ahead under another generation is not valid.
  [[nodiscard]] uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

  // How far data may be written while the class has a capacity: to the size that the MDS knows, and
  // beyond to what it allowed until the file is closed or cut.
  [[nodiscard]] uint64_t allowed_end() const;
  void Allow(uint64_t end);
  void ForgetAllowed();

  struct Report {
    uint64_t sequence = 0;
    uint64_t size_at_least = 0;
    int64_t mtime_ns = 0;
    bool kill_suid = false;
    ClassId class_id;
  };
  // None when the MDS knows everything.
  [[nodiscard]] std::optional<Report> BeginReport() const;
  // That, or a later one, has ended.
  [[nodiscard]] bool Reported(const Report& report) const;
  FileAttr EndReport(const Report& report, const FileAttr& from_mds);
  [[nodiscard]] bool has_unreported() const;

  // Kernel pages survive an open only if nobody else changed the file since this mount last saw it.
  // Remembers `version` as seen and says whether it was the one known before.
  bool SeenAtOpen(uint64_t version);

  // The first error of a write-back since it was last taken; ok when there is none.
  void RememberError(const Status& status);
  Status TakeError();

  // When the MDS last told of it.
  void set_told(int64_t ns) { told_.store(ns, std::memory_order_relaxed); }
  [[nodiscard]] int64_t told() const { return told_.load(std::memory_order_relaxed); }

  // security.capability is asked for before every write; its absence is worth remembering.
  void set_no_capability_until(int64_t ns) { no_capability_until_.store(ns); }
  [[nodiscard]] int64_t no_capability_until() const { return no_capability_until_.load(); }

 private:
  FileAttr MergedLocked() const;

  static constexpr uint32_t kUntagged = UINT32_MAX;

  const InodeId id_;
  std::atomic<uint32_t> tag_class_{kUntagged};
  std::atomic<uint64_t> generation_{1};
  std::atomic<int64_t> no_capability_until_{0};
  std::atomic<int64_t> told_{INT64_MIN};
  mutable std::mutex mutex_;
  FileAttr attr_;
  uint64_t local_end_ = 0;
  int64_t local_mtime_ns_ = 0;
  bool local_kill_suid_ = false;
  ClassId local_class_;
  uint64_t written_ = 0;   // sequence of the last local write
  uint64_t reported_ = 0;  // of the last one the MDS knows
  uint64_t kept_version_ = 0;
  uint64_t allowed_end_ = 0;
  Status error_;
};
using InodePtr = std::shared_ptr<Inode>;

class InodeTable {
 public:
  // The inode of that id, made when unknown. Lookup: the kernel gets one more reference to it.
  InodePtr Lookup(InodeId id);
  void Forget(InodeId id, uint64_t count);
  // Null when neither the kernel nor we refer to it.
  [[nodiscard]] InodePtr Find(InodeId id) const;
  InodePtr Pin(InodeId id);
  void Unpin(InodeId id);
  [[nodiscard]] size_t size() const;
  // Those that are known to be directories, so many at most.
  [[nodiscard]] std::vector<InodeId> Directories(size_t most) const;

 private:
  struct Entry {
    InodePtr inode;
    uint64_t lookups = 0;
    uint64_t pins = 0;
  };
  Entry& EntryLocked(InodeId id);
  void DropIfUnusedLocked(InodeId id);

  mutable std::mutex mutex_;
  std::unordered_map<InodeId, Entry> entries_;
};

}  // namespace weir::client
