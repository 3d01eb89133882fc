// Operation: what a POSIX operation under ops/ works with while it is prepared: the transaction,
// who asks, the time, and the rules that many operations share. Preparing reads and decides and
// stamps the time; what it leaves is a list of absolute writes, so that applying them is
// deterministic.
//
// Errors:  codes as the errno that POSIX wants; a failed operation writes nothing.
// Threads: lives under the NamespaceDb lock.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/base/stamps.h"
#include "common/wire/mds.pb.h"
#include "mds/ns/class_resolver.h"
#include "mds/ns/cluster_view.h"
#include "mds/ns/credentials.h"
#include "mds/ns/dir_leases.h"
#include "mds/ns/file_leases.h"
#include "mds/ns/lingering.h"
#include "mds/ns/open_files.h"
#include "mds/ns/size_grants.h"
#include "mds/ns/txn.h"
#include "mds/ns/untold_directories.h"
#include "mds/ns/writers.h"

namespace weir::mds {

inline constexpr size_t kNameMax = 255;
inline constexpr uint32_t kLinksMax = 65000;
inline constexpr uint64_t kFirstCookie = 16;  // below: "." and ".." as the client makes them

struct Inode {
  uint64_t id = 0;
  InodeRecord rec;

  [[nodiscard]] bool IsDirectory() const;
  [[nodiscard]] bool IsRegular() const;
  // What of a file may take space: before its end never less than does, as it may be told of
  // writes, not of what they overwrite; and behind its end.
  [[nodiscard]] uint64_t DataBytes() const;
  [[nodiscard]] uint64_t DataBeforeEnd() const;
  // To where data lies or space is kept: what quotas and capacities count.
  [[nodiscard]] uint64_t Reach() const;
  // `data_bytes`: before the end. What is kept behind it comes to lie before it when the file
  // grows.
  void SetSize(uint64_t size, uint64_t data_bytes);
  // Nothing is kept behind the end any more.
  void DropBeyondEnd();
  // As st_blocks.
  [[nodiscard]] uint64_t Blocks() const;
};

// Its DataBeforeEnd behind such a change.
uint64_t DataAfter(const Inode& inode, const wire::SpaceChange& change);

struct PurgeJob {
  uint64_t inode = 0;
  LayoutRecord layout;
  uint64_t data_bytes = 0;  // that its data may take
};
struct TruncateJob {
  uint64_t inode = 0;
  TruncateRecord record;
};

// What must happen once the operation is durable.
struct Effects {
  std::vector<PurgeJob> purges;
  std::vector<uint64_t> gone;           // inodes
  std::optional<TruncateJob> truncate;  // the answer waits for it
  bool tags_changed = false;
  bool tree_moved = false;  // a directory got another path
  uint64_t opened_inode = 0;
  uint32_t open_flags = 0;
  bool may_write = false;  // from now on the session may have data on its way to OSDs
  uint64_t kept = 0;       // inode that has lost its last name and stays for the session, or 0
  uint64_t stays = 0;      // and for others
  bool must_last = false;  // no early answer: the session goes on with what a restart has to know
  bool shows_counts = false;  // what lies below directories: also of quiet changes (overlay.h)
};

class Operation {
 public:
  struct Context {
    ClusterView& cluster;
    OpenFiles& opens;
    ClassResolver& classes;
    DirLeases& leases;
    FileLeases& file_leases;
    SizeGrants& grants;
    Writers& writers;
    UntoldDirectories& untold;
    Stamps& stamps;
    Lingering& lingering;
    uint64_t session = 0;
    std::string mount_class;
    std::string client;  // name of the mount
    int64_t now_ns = 0;
    bool replayed = false;        // it is done again after a restart
    uint64_t replayed_inode = 0;  // number that it gave before, then
    bool in_grace = false;        // sessions may still reclaim what they have open
    bool awaits_holders = false;  // after a restart: what concerns files is prepared again later
    bool full = false;            // the store: what adds is refused, so that all else can go on
  };
  Operation(Overlay& overlay, Txn::Reads reads, Context context)
      : txn(overlay, reads, context.session), context(std::move(context)) {}

  void SetCaller(const wire::Caller& caller);
  [[nodiscard]] const Credentials& who() const { return who_; }
  [[nodiscard]] int64_t now() const { return context.now_ns; }

  // kStale: no such inode (any more).
  Result<Inode> Load(uint64_t inode);
  // kNotDirectory besides.
  Result<Inode> LoadDirectory(uint64_t inode);
  // The same for a name in it, or below: what its contents move (times, version, numbers of entries
  // and of links, though not that it has been removed) may be changed, and is not used, nor shown
  // but by FillParent.
  Result<Inode> LoadParent(uint64_t inode);
  // Before a number of them is loaded: notes at once which are missing from memory.
  Status Fetch(const std::vector<uint64_t>& inodes);
  void Store(const Inode& inode) {
    (inode.IsDirectory() ? changed_directories : changed).push_back(inode.id);
    AwaitWriters(inode);
    StoreQuietly(inode);
  }
  // A directory that has been loaded so, with other contents.
  void StoreParent(const Inode& directory) {
    changed_directories.push_back(directory.id);
    StoreContents(directory);
  }
  void StoreContents(const Inode& directory) {
    txn.PutContents(MakeKey(Table::kInode, directory.id), directory.rec);
  }
  // It gets another owner: whoever remembers a name of it judges by the one that came with that.
  Status TakeNames(const Inode& inode);
  // Its mode or owner decides: also a refusal waits for whoever may have set them without having
  // told yet.
  void Judges(const Inode& inode);
  // Nothing that mounts are told of has changed.
  void StoreQuietly(const Inode& inode) {
    txn.PutRecord(MakeKey(Table::kInode, inode.id), inode.rec);
  }
  // A new version of it, changed now.
  void Changed(Inode* inode) const;
  // Of what a mount has done and tells now: its time, unless the inode was changed later.
  void ChangedAt(int64_t ctime_ns, Inode* inode) const;
  // Takes a file capability away, as whatever changes data or owner does. The caller stores it.
  void DropCapability(Inode* inode);
  void Modified(Inode* directory) const;  // mtime and ctime too

  // kNotFound when there is none.
  Result<DentryRecord> FindDentry(uint64_t directory, std::string_view name);
  // Puts dentry and cookie; counts it in `directory`, which the caller stores.
  void AddDentry(Inode* directory, std::string_view name, const Inode& target);
  // Lets an existing name point at another inode, cookie unchanged.
  void RetargetDentry(uint64_t directory, std::string_view name, DentryRecord dentry,
                      const Inode& target);
  void RemoveDentry(Inode* directory, std::string_view name, const DentryRecord& dentry);

  // kNoSpace when nothing may be added.
  [[nodiscard]] Status CheckRoom() const;
  // A new inode below `parent`, with its inherited group and layout; not stored yet.
  Result<Inode> NewInode(const Inode& parent, std::string_view name, uint32_t mode);
  // The name `parent/name` of `inode` goes: counts links, finds another primary link, makes an
  // orphan or a purge of the last. Stores it. With `keeps` an orphan: it stays for the session.
  Status DropLink(Inode* inode, uint64_t parent, std::string_view name);
  // Removes every trace but the data, which is queued. `blank`: the session made it and says that
  // it changed nothing at the OSDs; if nobody else can have, there is no data.
  Status Purge(const Inode& inode, bool blank = false);
  // Purges it when it has neither a link nor a holder, and nobody may ask for it.
  Status PurgeIfUnused(uint64_t inode, bool blank = false);
  // Reads what PurgeIfUnused of these will: before a caller does what cannot be taken back. From
  // there on reads wait for the disk, should memory have lost it again.
  Status BeforePurge(const std::vector<uint64_t>& inodes);

  // Of whoever opens something under a map of that epoch: kStaleEpoch when the map tells of no
  // eviction of his yet, and there was one. What he holds he would take for opened before that:
  // rightly so of what he has opened in a former life and only repeats.
  [[nodiscard]] Status CheckHasHeard(uint64_t epoch) const;
  void Opened(uint64_t inode, uint32_t flags);
  // It is prepared again later: what it opened and may look at is not open and not leased
  // meanwhile. What else it has done in memory stays as it would be after it.
  void TakeBack();
  Status FillEntry(const Inode& inode, wire::EntryReply* reply);
  void FillAttr(const Inode& inode, wire::Attr* attr);
  // Of the directory that a name was made in, or taken out of; not when others have changed it and
  // that is not durable: whoever wants to know asks, and waits for it.
  void FillParent(const Inode& directory, wire::EntryReply* reply);
  void FillParent(const Inode& directory, wire::TouchedReply* reply);
  Result<wire::EntryReply> Entry(const Inode& inode);
  // Lets the asking mount answer looks into `directory` by itself, if nobody minds.
  Status OfferLease(const Inode& directory, wire::EntryReply* reply);
  // A restart must know that there were leases.
  Status RecordLeases();
  // Lets the asking mount remember what it is told of the inode, if nobody minds.
  Status OfferFileLease(uint64_t inode, wire::EntryReply* reply);
  // An entry with such an offer.
  Result<wire::EntryReply> LeasedEntry(const Inode& inode);
  // OSDs delete what lies behind `size` before the answer goes out, charged to what the file is.
  // `data_bytes`: TruncateRecord's.
  Status CutOff(const Inode& file, uint64_t size, uint32_t claimed_class, uint64_t data_bytes);
  // Whoever wrote to it ended without a word and may have left data behind its end.
  [[nodiscard]] bool HasLooseEnd(const Inode& file) const;
  void LooseEndIsCut(Inode* file) const;
  // Of a file nobody writes to: what may lie behind its end. Before somebody can make it grow.
  Status CutLooseEnd(Inode* file, uint32_t claimed_class);
  void TagsChanged() { effects.tags_changed = true; }

  // `directory` holds so many times that much more; see usage.h.
  void Count(uint64_t directory, const TreeUsage& share, int64_t times);
  // A file that reached so far has changed.
  void CountReach(const Inode& file, uint64_t before);
  // Writes what was counted. kQuota when there is no room for it.
  Status SettleUsage();
  Result<uint64_t> QuotaCount();
  Status AddQuotaCount(int64_t more);

  Txn txn;
  Context context;
  Effects effects;
  // What the answer shows, what it changes, and what will be written to: others' leases go first.
  std::vector<uint64_t> shown;
  std::vector<uint64_t> changed;
  std::vector<uint64_t> changed_directories;
  std::vector<uint64_t> claimed;
  std::vector<uint64_t> awaited;  // missing sessions that may write to a file of these
  std::vector<uint64_t> looks;    // leased to the session by the answer, if that is given
  bool quotas_bind = true;
  bool keeps = false;  // the session's kernel may know what it takes the last name of
  std::optional<uint64_t> waits_for_truncate;  // prepare again when that of this inode is done

 private:
  void AwaitWriters(const Inode& inode);
  // No other session can have changed an object of it.
  [[nodiscard]] bool IsWrittenByNobodyElse(const Inode& file) const;
  Status DropLastLink(Inode* inode, uint64_t parent);
  [[nodiscard]] bool IsNeeded(uint64_t inode) const;
  Result<StateRecord> LoadState();
  Credentials who_;
  std::optional<bool> opened_before_;  // OpenFiles::TakeBack of what was opened
  std::map<uint64_t, TreeUsage> usage_;
};

// The extended attribute of a program that gives capabilities.
inline constexpr std::string_view kFileCapability = "security.capability";
// Not of a store from before this was kept: there whatever has attributes may have that one.
bool MayHaveCapability(const InodeRecord& inode);

// kNameTooLong, kInvalid for '/' and NUL, kNotFound for the empty name, kExists for "." and "..".
Status CheckNewName(std::string_view name);

// A Status whose message names the inode: "inode 12 is not a directory".
Status InodeError(ErrorCode code, uint64_t inode, std::string_view what);

}  // namespace weir::mds
