// Inode: what this mount knows of one file. InodeTable: all of them that the kernel or we refer to.
//
// Attributes come from the MDS. What this mount wrote and has not reported (MDS_WROTE) lies over
// them: a size can only be larger, an mtime is that of the write. A report captures the state when
// its flush starts; writes that happen meanwhile stay unreported. Attributes that are held
// (held_attributes.h) lie over all that, and go with the next report that is sent.
//
// Lookup counts: each entry handed to the kernel adds one, FORGET takes n away. Pins are ours: open
// handles, dirty data, reports. An inode leaves the table when it has neither.
// Threads: all methods from any thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "client/vfs/file_attr.h"
#include "client/vfs/held_attributes.h"
#include "common/base/result.h"

namespace weir::wire {
class Caller;
}

namespace weir::client {

// What was written and punched, in whole blocks: the most that the former, and all that the latter
// changed of the space that a file takes.
struct SpaceChange {
  uint64_t wrote = 0;
  uint64_t freed = 0;
  [[nodiscard]] bool empty() const { return wrote == 0 && freed == 0; }
  SpaceChange& operator+=(const SpaceChange& other);
  SpaceChange& operator-=(const SpaceChange& other);
};

// What a file loses when its data is changed: set-id bits, unless whoever changes it may keep them,
// and a file capability.
struct RightsLost {
  bool set_ids = false;
  bool capability = false;
};

// A name that this mount has given to a file it made.
struct MadeName {
  InodeId directory;
  std::string name;
  auto operator<=>(const MadeName&) const = default;
};

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
  [[nodiscard]] bool has_quota() const;
  // Whether there is something of that to lose; by that caller: set-gid without execution by the
  // group stays when it is his.
  [[nodiscard]] bool MayLose(const RightsLost& lost) const;
  [[nodiscard]] bool Loses(const RightsLost& lost, const wire::Caller& caller) const;

  // Data up to `end` was written here at that time, which cost the file `lost`; the report of it is
  // charged to `class_id`.
  void Wrote(uint64_t end, int64_t mtime_ns, const RightsLost& lost = {}, ClassId class_id = {},
             const SpaceChange& space = {});
  // Sets that here, to be reported, when the caller may. A later write moves a held mtime.
  bool Hold(const HeldAttributes& change, uint32_t caller_uid, ClassId class_id);
  // Some are held, or on their way.
  [[nodiscard]] bool holds_attributes() const;
  // Set when this mount makes the file, or moves it; none once all of it was reported.
  void Made(MadeName name);
  [[nodiscard]] std::optional<MadeName> made_name() const;
  // Its objects are about to be changed, if there are any.
  void Touch() { blank_.store(Blank::kNo, std::memory_order_relaxed); }
  // Made here, and not touched since: OSDs have nothing of it from this mount.
  void SetBlank() {
    Blank unknown = Blank::kUnknown;
    (void)blank_.compare_exchange_strong(unknown, Blank::kYes, std::memory_order_relaxed);
  }
  [[nodiscard]] bool is_blank() const {
    return blank_.load(std::memory_order_relaxed) == Blank::kYes;
  }
  // Its end was cut to nothing, and the MDS has not heard of what was written since: a crash would
  // leave it empty.
  [[nodiscard]] bool is_emptied() const { return emptied_.load(std::memory_order_relaxed); }
  // The MDS has set the size: nothing of ours that was written lies over it any more.
  void Resized(const FileAttr& from_mds);
  // Grows with every local change of data and when the MDS tells of one elsewhere: what was read
  // ahead under another generation is not valid.
  [[nodiscard]] uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

  // As the MDS knows it.
  [[nodiscard]] uint64_t told_size() const;

  // How far data may be written while the class has a capacity: to the size that the MDS knows, and
  // beyond to what it allowed until the file is closed or cut.
  [[nodiscard]] uint64_t allowed_end() const;
  void Allow(uint64_t end);
  void ForgetAllowed();

  struct Report {
    uint64_t sequence = 0;
    uint64_t size_at_least = 0;
    int64_t mtime_ns = 0;  // 0: nothing that was written moves it
    RightsLost lost;
    ClassId class_id;
    SpaceChange space;  // told by this report and no other
    // Nothing of what was written.
    bool attributes_only = false;
    HeldAttributes held;  // of Sending
    uint64_t epoch = 0;   // of the map, before it was known that nothing is lost
  };
  // None when the MDS knows everything. Ends with EndReport or FailReport.
  [[nodiscard]] std::optional<Report> BeginReport();
  // Of what is held alone, which needs no data to be stored before.
  [[nodiscard]] Report BeginAttributesReport() const;
  // The report as it is sent: with what is held by then, and without a time that somebody has set
  // since it began. One is on its way at a time.
  [[nodiscard]] Report Sending(Report report);
  // That, or a later one, has ended, and nothing is held.
  [[nodiscard]] bool Reported(const Report& report) const;
  FileAttr EndReport(const Report& report, const FileAttr& from_mds);
  void FailReport(const Report& report);
  [[nodiscard]] bool has_unreported() const;
  // What was not reported is nothing but times, without which the data can be read as well.
  [[nodiscard]] bool owes_only_times() const;
  // What was not reported is lost, also what a report on its way says; IsLost of that one.
  void LoseUnreported();
  [[nodiscard]] bool IsLost(const Report& report) const;

  // As of which stamp of file_leases.h the attributes may be answered; 0: the MDS must be asked.
  [[nodiscard]] uint64_t answerable() const { return answerable_.load(std::memory_order_acquire); }
  void set_answerable(uint64_t stamp) { answerable_.store(stamp, std::memory_order_release); }
  // Of the last change of ours that did not bring its attributes.
  [[nodiscard]] uint64_t changed_at() const { return changed_at_.load(std::memory_order_acquire); }
  void set_changed_at(uint64_t stamp) { changed_at_.store(stamp, std::memory_order_release); }
  // Which lease there is, of file_leases.h; 0: none.
  [[nodiscard]] uint64_t lease() const { return lease_.load(std::memory_order_acquire); }
  void set_lease(uint64_t number) { lease_.store(number, std::memory_order_release); }
  // Others change the file from now on.
  void Distrust() {
    set_answerable(0);
    set_lease(0);
    AskForCapability();
    generation_.fetch_add(1, std::memory_order_acq_rel);
  }

  // Kernel pages survive an open only if nobody else changed the file since this mount last saw it.
  // Remembers `version` as seen and says whether it was the one known before.
  bool SeenAtOpen(uint64_t version);

  // What went wrong with what was written is told once through each handle that was open then; each
  // keeps a mark of what it was told. What nobody has heard of is told to those who come later.
  // kFenced: only handles of openers that are fenced. What an eviction took may fail after it was
  // heard of, when others have opened the file who lost nothing.
  enum class Hears : uint8_t { kAll, kFenced };
  void RememberError(const Status& status, Hears hears);
  void RememberError(const Status& status) {  // kStale is what writes of fenced openers end with
    RememberError(status, status.code() == ErrorCode::kStale ? Hears::kFenced : Hears::kAll);
  }
  [[nodiscard]] uint64_t ErrorMark() const;  // of a new handle
  // The first error behind the mark that nobody had heard of, or the last; ok: there is none for
  // such a handle.
  Status TakeError(std::atomic<uint64_t>* mark, Hears handle = Hears::kAll);
  [[nodiscard]] bool has_error() const;  // for all, that nobody has heard of
  // The number of the last one that concerns such a handle; they are numbered from 1.
  [[nodiscard]] uint64_t errors(Hears handle) const;
  // Whoever took it is gone: it is for the next who comes.
  void NotHeard(const Status& status);

  // What was written here last, and answered before it was stored, found no room: until a write has
  // found some, each is stored before it is answered, so that whoever goes on writing hears of it.
  void MeetsNoRoom() { lacks_room_.store(true, std::memory_order_relaxed); }
  void FindsRoom() { lacks_room_.store(false, std::memory_order_relaxed); }
  [[nodiscard]] bool lacks_room() const { return lacks_room_.load(std::memory_order_relaxed); }

  // Whether a read would move its access time. `strict`: any does. `now_ns` need not be exact.
  [[nodiscard]] bool ReadCounts(int64_t now_ns, bool strict) const;
  // A read that counts: its time is shown here until the MDS has heard of it.
  void WasRead(int64_t now_ns);
  // Of a read that the MDS has not heard of; 0: none.
  [[nodiscard]] int64_t read_at() const;
  void ToldRead(int64_t at_ns);
  // Somebody sets the time himself.
  void ForgetRead();

  // When the MDS last told of it.
  void set_told(int64_t ns) { told_.store(ns, std::memory_order_relaxed); }
  [[nodiscard]] int64_t told() const { return told_.load(std::memory_order_relaxed); }
  // Handles open for writing, through which the kernel may have pages that were not written yet.
  void AddWriter() { writers_.fetch_add(1); }
  void RemoveWriter() {
    if (writers_.fetch_sub(1) == 1) AskForCapability();
  }
  [[nodiscard]] bool has_writers() const { return writers_.load() > 0; }

  // Of a symbolic link: where it points, once that was asked; it never changes.
  [[nodiscard]] std::string target() const;
  void set_target(std::string target);

  // It is listed as a directory; returns whether it was before.
  bool BeListed() { return listed_.exchange(true, std::memory_order_relaxed); }

  // The kernel keeps what it was told of the attributes; returns whether it did before.
  bool KernelKeeps(bool keeps) const { return kernel_keeps_.exchange(keeps); }

  // The kernel has written pages of it, of which it does not say through what they were changed.
  void WrotePages() { page_writes_.fetch_add(1); }
  [[nodiscard]] uint64_t page_writes() const { return page_writes_.load(); }
  // The kernel gets pages of it that it did not have, by a read or as the write of a whole page.
  void FillsPages() { page_fills_.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] uint64_t page_fills() const { return page_fills_.load(std::memory_order_relaxed); }

  // security.capability is asked for before every write; its absence is worth remembering as long
  // as the MDS tells of changes elsewhere. `as_of`: of capability_mark() before it was asked for.
  [[nodiscard]] uint64_t capability_mark() const { return capability_mark_.load(); }
  void HasNoCapability(uint64_t as_of) { no_capability_.store(as_of); }
  [[nodiscard]] bool has_no_capability() const { return no_capability_ == capability_mark_; }
  void AskForCapability() { capability_mark_.fetch_add(1); }

  // Where its data lies may have been changed: before the next is written the MDS is to be asked.
  // `as_of`: likewise, of layout_mark().
  [[nodiscard]] uint64_t layout_mark() const { return layout_mark_.load(); }
  void KnowsLayout(uint64_t as_of) { layout_known_.store(as_of); }
  [[nodiscard]] bool knows_layout() const { return layout_known_ == layout_mark_; }
  void AskForLayout() { layout_mark_.fetch_add(1); }

 private:
  FileAttr MergedLocked() const;
  void LayWrittenOver(FileAttr* attr) const;
  [[nodiscard]] bool HasUnreportedLocked() const;
  [[nodiscard]] bool MayLoseLocked(const RightsLost& lost) const;
  [[nodiscard]] Report AttributesReportLocked() const;

  static constexpr uint32_t kUntagged = UINT32_MAX;

  const InodeId id_;
  std::atomic<uint32_t> tag_class_{kUntagged};
  std::atomic<uint64_t> generation_{1};
  std::atomic<uint64_t> writers_{0};
  std::atomic<uint64_t> page_writes_{0};
  std::atomic<int64_t> told_{INT64_MIN};
  std::atomic<uint64_t> page_fills_{0};
  std::atomic<uint64_t> answerable_{0};
  std::atomic<uint64_t> changed_at_{0};
  std::atomic<uint64_t> lease_{0};
  std::atomic<uint64_t> capability_mark_{1};
  std::atomic<uint64_t> no_capability_{0};
  std::atomic<uint64_t> layout_mark_{1};
  std::atomic<uint64_t> layout_known_{1};
  mutable std::atomic<bool> kernel_keeps_{false};
  std::atomic<bool> lacks_room_{false};
  std::atomic<bool> emptied_{false};
  enum class Blank : uint8_t { kUnknown, kYes, kNo };
  std::atomic<Blank> blank_{Blank::kUnknown};
  std::atomic<bool> listed_{false};
  mutable std::mutex mutex_;
  FileAttr attr_;
  uint64_t local_end_ = 0;
  int64_t local_mtime_ns_ = 0;
  RightsLost local_lost_;
  ClassId local_class_;
  SpaceChange untold_;   // of what was written
  SpaceChange telling_;  // on its way to the MDS
  HeldAttributes held_;
  HeldAttributes telling_held_;  // on its way
  uint64_t time_set_ = 0;        // writes up to that one don't move mtime
  uint64_t written_ = 0;         // sequence of the last local write
  uint64_t reported_ = 0;        // of the last one the MDS knows
  uint64_t lost_ = 0;            // of the last one it shall not know
  uint64_t kept_version_ = 0;
  uint64_t allowed_end_ = 0;
  int64_t read_at_ns_ = 0;
  int64_t told_read_ns_ = 0;  // the last that the MDS has heard of
  // Of those that nobody had heard of the first, or the last; the second of those for all.
  Status error_, error_of_all_;
  uint64_t errors_ = 0;
  uint64_t errors_of_all_ = 0;  // the number of the last that is not for fenced handles alone
  uint64_t errors_heard_ = 0;   // so many of them by somebody
  std::string target_;
  std::optional<MadeName> made_name_;
};
using InodePtr = std::shared_ptr<Inode>;

class InodeTable {
 public:
  // Runs, with no lock held, when the kernel has forgotten an inode that is watched.
  explicit InodeTable(std::function<void(const InodePtr&)> on_forgotten = nullptr)
      : on_forgotten_(std::move(on_forgotten)) {}
  // The inode of that id, made when unknown. Lookup: the kernel gets one more reference to it.
  InodePtr Lookup(InodeId id);
  // The same of one that the kernel or we refer to already; else null. What was known of it before
  // counts for one that the kernel is told of only as long as it stays in the table.
  InodePtr LookupKnown(InodeId id);
  void Forget(InodeId id, uint64_t count);
  // It is told when the kernel forgets the inode. False: the kernel does not know it.
  bool Watch(InodeId id);
  // Null when neither the kernel nor we refer to it.
  [[nodiscard]] InodePtr Find(InodeId id) const;
  InodePtr Pin(InodeId id);
  void Unpin(InodeId id);
  [[nodiscard]] size_t size() const;
  // Inode::Update of one that may be a directory: those that are known to be are listed.
  FileAttr Update(const InodePtr& inode, const FileAttr& from_mds);
  // So many of them at most; costs nothing for what else is known.
  [[nodiscard]] std::vector<InodeId> Directories(size_t most) const;

 private:
  struct Entry {
    InodePtr inode;
    uint64_t lookups = 0;
    uint64_t pins = 0;
    bool watched = false;
  };
  Entry& EntryLocked(InodeId id);
  void DropIfUnusedLocked(InodeId id);

  const std::function<void(const InodePtr&)> on_forgotten_;
  mutable std::mutex mutex_;
  std::unordered_map<InodeId, Entry> entries_;
  std::unordered_set<InodeId> directories_;  // of entries_
};

}  // namespace weir::client
