// Actor: a user of the simulated cluster on a mount of his own. He takes turns at files with the
// others (one writes, any number look), races them for lock directories, and checks everything that
// he sees against the history.
// Threads: one.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "tests/crash/cluster/board.h"
#include "tests/crash/cluster/sim_mount.h"

namespace weir::crash {

class Actor {
 public:
  // What somebody had on its way may arrive for so long after his death: a restarted MDS has it
  // wait for mounts that do not come back.
  static constexpr Duration kRest = std::chrono::seconds(16);

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
  // actor.cc
  Task Live();
  Task SetUp();
  Task FindDirectory(const std::string& name, InodeId* found);
  Task RaceForLock();
  Task MakeRow();
  Answer<bool> Pause(uint64_t most_us);
  void Say(const std::string& what);
  // He goes on only if what he does is done, or what he sees is not wrong: else it is told, or he
  // was evicted, and is at his end.
  OnlyIf Done(const Status& status);
  OnlyIf Right(const std::string& wrong);    // empty: nothing is
  OnlyIf RightIn(const std::string& wrong);  // with a file
  OnlyIf Right(bool is_right, const std::string& otherwise);
  [[nodiscard]] bool WasEvicted(const Status& status) const;
  OnlyIf Evicted();
  void Holds(const File& file);  // from what he began last on
  // actor_turn.cc
  Task TakeTurn(Slot& slot);
  Task FindOut(Slot::Place& place, InodeId* parent);
  Task Obtain(Slot& slot);  // fills open_
  Task Make(Slot& slot, size_t k);
  Task OpenOwn(InodeId inode);
  Task WorkOn();
  Task WriteSome();
  Task SyncIt();
  Task CutSome();
  Task SetMode();
  void Raise(FileHistory::Places* places, size_t begin, size_t end) const;
  Task LeaveIt(Slot& slot);
  Task Unlink();
  // actor_looks.cc
  Task LookAt(Slot& slot);
  Task LookAtRow();
  Task LookUp(Slot::Place& place, InodeId* parent, uint64_t* inode);
  Task LookInto(InodeId inode, File file);
  Task WatchSize(InodeId inode, File file);
  Task ReadSome(client::HandlePtr handle, File file, FileHistory::Places floors);
  Task Audit();
  Task AuditSlot(Slot& slot, std::map<std::string, std::set<std::string>>* names);
  Task AuditFile(InodeId inode, File file);

  Board& board_;
  World& world_;
  const std::string name_;
  std::unique_ptr<SimMount> mount_;
  std::string doing_;
  TimePoint began_;
  uint64_t since_ = 0;  // the epoch of his map when he began, or opened the file that he has open
  bool holds_ = false;  // a file is open
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
