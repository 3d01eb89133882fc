// WriteBack: holds buffered writes in bounded memory until they are worth a request.
//
// Writes of an inode are joined into runs that never cross a multiple of `run_bytes` of the file. A
// run leaves when it is full, too old, when memory is short, or when somebody flushes the inode.
// Two overlapping pieces of an inode are never on their way at the same time, so the newer bytes
// win. Each class has a budget of the memory (dirty_budget.h), in whole blocks, which is what a
// small file takes; whoever has nothing in it always gets one write in. A run belongs to the one
// class whose writer began it. A failure drops the data and is remembered by the inode for its next
// fsync or close.
//
// Threads: any; Store and callbacks run with no lock held.
#pragma once

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "client/data/dirty_budget.h"
#include "client/data/object_reader.h"
#include "client/data/object_writer.h"
#include "client/vfs/caller_classes.h"
#include "common/base/time.h"

namespace weir::client {

class WriteBack {
 public:
  struct Options {
    uint64_t bytes_max = 64 << 20;
    uint64_t run_bytes = 1 << 20;
    uint64_t block_bytes = kBlockSize;           // a run takes a multiple of it of the memory
    Duration age_max = std::chrono::seconds(4);  // checked by Tick; data is never 5 s old
  };
  // Who wrote, and the class of his data at that time.
  struct Writer {
    OpenerPtr opener;
    ClassId class_id;
  };
  // Brings one run to the OSDs, in the name of whoever began it. `aged`: it has grown old, and
  // nobody waited for it when it left.
  using Store = std::function<void(const InodePtr&, const OpenerPtr&, uint64_t offset, Buffer data,
                                   bool aged, WriteCallback done)>;

  // Bytes of a file that are newer than the OSDs'.
  struct Piece {
    uint64_t offset;
    Buffer data;
  };

  WriteBack(Clock& clock, Options options, Store store);

  // Takes the bytes. `accepted` runs before it returns, or later when memory was short.
  void Write(const InodePtr& inode, const Writer& writer, uint64_t offset,
             std::span<const uint8_t> data, WriteCallback accepted, Abandoned abandoned = nullptr);
  // Bytes per second of the classes that have a limit, from now on.
  void SetLimits(std::map<ClassId, uint64_t> bytes_per_s);
  // Ends with kCancelled what is abandoned and not accepted yet.
  void DropAbandoned();
  // What a read that starts now must lay over what the OSDs answer, in that order.
  std::vector<Piece> Overlapping(InodeId inode, uint64_t offset, uint64_t length);
  // Drops what has not left, of a file that nobody can read any more.
  void Drop(InodeId inode);
  // Done when everything that was accepted before has been stored or has failed.
  void Flush(InodeId inode, std::function<void()> done);
  [[nodiscard]] bool Holds(InodeId inode) const;
  // Sends off what is too old.
  void Tick();
  [[nodiscard]] std::vector<InodeId> Files() const;
  [[nodiscard]] uint64_t held_bytes() const;

 private:
  struct Run {
    Buffer buffer;  // grows by doubling
    uint64_t size = 0;
    uint64_t sequence = 0;
    Writer writer;
    TimePoint born;
    [[nodiscard]] std::span<const uint8_t> bytes() const { return {buffer.data(), size}; }
  };
  struct Flight {
    uint64_t offset = 0;
    Buffer data;
    uint64_t sequence = 0;
    Writer writer;
    bool aged = false;
    bool started = false;
  };
  struct FlushWaiter {
    uint64_t sequence;  // runs up to this one
    std::function<void()> done;
  };
  struct File {
    InodePtr inode;
    std::map<uint64_t, Run> dirty;
    std::list<Flight> flying;  // oldest first
    std::vector<FlushWaiter> waiters;
  };
  struct Blocked {
    InodePtr inode;
    Writer writer;
    uint64_t offset;
    Buffer data;
    WriteCallback accepted;
    Abandoned abandoned;
  };
  // What to do once the lock is gone.
  struct Work {
    struct Start {
      InodePtr inode;
      OpenerPtr opener;
      std::list<Flight>::iterator flight;
      uint64_t offset;
      Buffer data;
      bool aged;
    };
    std::vector<Start> starts;
    std::vector<std::function<void()>> calls;
  };

  // What a run of so many bytes takes of the memory.
  [[nodiscard]] uint64_t Memory(uint64_t bytes) const {
    return (bytes + options_.block_bytes - 1) / options_.block_bytes * options_.block_bytes;
  }
  bool AdmitsLocked(ClassId class_id, uint64_t bytes) const;
  void InsertLocked(const InodePtr& inode, const Writer& writer, uint64_t offset,
                    std::span<const uint8_t> data, Work* work);
  void InsertPieceLocked(File& file, const Writer& writer, uint64_t offset,
                         std::span<const uint8_t> data);
  // The run is in the file no more.
  void LeftLocked(const File& file, ClassId class_id);
  void AppendLocked(Run& run, std::span<const uint8_t> data);
  void LaunchLocked(File& file, std::map<uint64_t, Run>::iterator run, Work* work,
                    bool aged = false);
  void LaunchAllLocked(File& file, Work* work);
  void LaunchClassLocked(ClassId class_id, Work* work);
  void StartReadyLocked(File& file, Work* work);
  void FinishWaitersLocked(File& file, Work* work);
  void AdmitBlockedLocked(Work* work);
  void Landed(const InodePtr& inode, std::list<Flight>::iterator flight, const Status& status);
  void Do(Work work);

  Clock& clock_;
  const Options options_;
  const Store store_;
  mutable std::mutex mutex_;
  std::unordered_map<InodeId, File> files_;
  std::unordered_map<ClassId, std::unordered_set<InodeId>> dirty_files_;  // with runs of the class
  DirtyBudget budget_;
  uint64_t dirty_bytes_ = 0;  // of those held, not on their way
  uint64_t last_sequence_ = 0;
  std::map<ClassId, std::deque<Blocked>> blocked_;
};

}  // namespace weir::client
