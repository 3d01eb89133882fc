// Actor: a user of the simulated cluster on a mount of his own. He takes turns at files with the
// others (one writes, any number look), races them for lock directories, and checks everything that
// he sees against the history.
// Threads: one.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/crash/cluster/history.h"
#include "tests/crash/cluster/name_prefix.h"
#include "tests/crash/cluster/sim_mount.h"

namespace weir::crash {

class Actor;

// A file that has one of two names, or none.
struct Slot {
  struct Place {
    std::string directory, name;
    Register<uint64_t> inode{0};
  };
  std::array<Place, 2> places;
  const Actor* taken_by = nullptr;
  TimePoint rests_until;  // what a crashed user had on its way may still arrive
};

// What was closed and not synced, of which the others see all: when its user dies it may be lost.
struct ClosedData {
  const Actor* who = nullptr;
  std::shared_ptr<FileHistory> file;
  FileHistory::Places before, after;
};

// What all actors know.
struct Board {
  Board(World& the_world, size_t count) : world(the_world), slots(count) {}

  World& world;
  std::vector<Slot> slots;
  std::map<uint64_t, std::shared_ptr<FileHistory>> files;  // by inode
  uint64_t next_tag = 1;
  uint64_t cuts = 0;  // since the start: who is cut off may lose his session
  // Whether the MDS has given up that session, with what it closed and what was not durable of its
  // names; its mount may not know yet.
  std::function<bool(uint64_t session)> is_fenced;
  int lock_number = 0;
  const Actor* lock_holder = nullptr;
  std::set<const Actor*> racing;  // a mkdir or rmdir of the lock is on its way
  bool stopping = false;
  uint64_t operations = 0;
  std::string wrong;  // the first thing that is
  std::function<void(const std::string&)> trace;
  std::function<void(const Actor*)> evicted;  // he dies, and another takes his place

  std::vector<EarlyName> early;
  std::vector<NamePrefix> prefixes;  // of the dead
  std::vector<ClosedData> closed;
  TimePoint mds_died{INT64_MIN / 2};
  std::set<uint64_t> given_back;  // inodes whose making may be undone: their numbers come again

  void Wrong(const std::string& what);
  // `who` was told that it is done.
  void Named(const Actor* who, Register<uint64_t>& inode, size_t place);
  // Nobody else changes it now, and that is what it is.
  void FoundOut(const Actor* who, Register<uint64_t>& inode, uint64_t value);
  // Somebody who began to look then sees that value: others than who did it do once it is durable,
  // with all before it.
  void Saw(const Actor* who, const Register<uint64_t>& inode, uint64_t value, TimePoint since);
  // `who` has closed the file, or has found it as he had closed it: that is certain while he lives.
  void Closed(const Actor* who, const std::shared_ptr<FileHistory>& file,
              const FileHistory::Places& after);
  [[nodiscard]] bool HasClosed(const Actor* who, const FileHistory& file) const;
  // It is stored: `who` has synced it; or, for others, is told what they have closed. Null: of all
  // files.
  void Synced(const Actor* who, const FileHistory* file);
  void ToldToOthers(const Actor* who, const FileHistory& file);
  void Died(const Actor* who);
  void MdsDied();
  void ForgetDurable();
  void UndoOrphaned();
  // The history of that inode behind a name, which may just be being made.
  std::shared_ptr<FileHistory> FileOf(Slot::Place& place, uint64_t inode);
};

class Actor {
 public:
  // What somebody had on its way may arrive for so long after his death: a restarted MDS has it
  // wait for mounts that do not come back.
  static constexpr Duration kRest = std::chrono::seconds(16);
  static constexpr uint64_t kMaking = UINT64_MAX;  // behind a name: an inode not known yet

  Actor(Board& board, std::string name);
  ~Actor() { Crash(); }

  void Begin();
  void BeginAudit();  // of everything, at the end
  void Crash();
  [[nodiscard]] bool done() const { return task_.done(); }
  [[nodiscard]] const SimMount& mount() const { return *mount_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& doing() const { return doing_; }
  [[nodiscard]] TimePoint began() const { return began_; }  // to do that

 private:
  using File = std::shared_ptr<FileHistory>;
  Task Live();
  Task Audit();
  Task AuditSlot(Slot& slot, std::map<std::string, std::set<std::string>>* names);
  Task AuditFile(InodeId inode, File file);
  Task SetUp();
  Task TakeTurn(Slot& slot);
  Task FindOut(Slot::Place& place, InodeId* parent);
  Task Obtain(Slot& slot);  // fills open_
  Task WorkOn();
  Task WriteSome();
  Task SetMode();
  void Raise(FileHistory::Places* places, size_t begin, size_t end) const;
  Task LeaveIt(Slot& slot);
  Task Unlink();
  Task LookAt(Slot& slot);
  Task WatchSize(InodeId inode, File file);
  Task ReadSome(client::HandlePtr handle, File file, FileHistory::Places floors);
  Task RaceForLock();
  Task FindDirectory(const std::string& name, InodeId* found);
  Answer<bool> Pause(uint64_t most_us);
  void Say(const std::string& what);
  bool Ok(const Status& status);
  [[nodiscard]] bool WasEvicted(const Status& status) const;

  Board& board_;
  World& world_;
  const std::string name_;
  std::unique_ptr<SimMount> mount_;
  std::string doing_;
  TimePoint began_;
  // Of the turn.
  struct Open {
    Slot::Place* place = nullptr;
    InodeId parents[2];
    client::HandlePtr handle;
    File file;
    FileHistory::Places floors;  // what he himself must see at least
  };
  Open open_;
  Task task_;  // last: goes first
};

}  // namespace weir::crash
