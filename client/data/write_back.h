// WriteBack: holds buffered writes in bounded memory until they are worth a request.
//
// Writes of an inode are joined into runs that never cross a multiple of `run_bytes` of the file. A
// run leaves when it is full, too old, when memory is short, or when somebody flushes the inode.
// Two overlapping pieces of an inode are never on their way at the same time, so the newer bytes
// win. A class may fill a quarter of the memory; whoever has nothing in it always gets one write
// in. A failure drops the data and is remembered by the inode for its next fsync or close.
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
#include <vector>

#include "client/data/object_reader.h"
#include "client/data/object_writer.h"
#include "client/vfs/inode_table.h"
#include "common/base/time.h"

namespace weir::client {

class WriteBack {
 public:
  struct Options {
    uint64_t bytes_max = 64 << 20;
    uint64_t run_bytes = 1 << 20;
    Duration age_max = std::chrono::seconds(4);  // checked by Tick; data is never 5 s old
  };
  // Brings one run to the OSDs.
  using Store =
      std::function<void(const InodePtr&, uint64_t offset, Buffer data, WriteCallback done)>;

  // Bytes of a file that are newer than the OSDs'.
  struct Piece {
    uint64_t offset;
    Buffer data;
  };

  WriteBack(Clock& clock, Options options, Store store);

  // Takes the bytes. `accepted` runs before it returns, or later when memory was short.
  void Write(const InodePtr& inode, uint64_t offset, std::span<const uint8_t> data,
             WriteCallback accepted);
  // What a read that starts now must lay over what the OSDs answer, in that order.
  std::vector<Piece> Overlapping(InodeId inode, uint64_t offset, uint64_t length);
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
    ClassId class_id;
    TimePoint born;
    [[nodiscard]] std::span<const uint8_t> bytes() const { return {buffer.data(), size}; }
  };
  struct Flight {
    uint64_t offset = 0;
    Buffer data;
    uint64_t sequence = 0;
    ClassId class_id;
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
    uint64_t offset;
    Buffer data;
    WriteCallback accepted;
  };
  // What to do once the lock is gone.
  struct Work {
    struct Start {
      InodePtr inode;
      std::list<Flight>::iterator flight;
      uint64_t offset;
      Buffer data;
    };
    std::vector<Start> starts;
    std::vector<std::function<void()>> calls;
  };

  bool AdmitsLocked(ClassId class_id, uint64_t bytes) const;
  void InsertLocked(const InodePtr& inode, uint64_t offset, std::span<const uint8_t> data,
                    Work* work);
  void InsertPieceLocked(File& file, uint64_t offset, std::span<const uint8_t> data);
  void AppendLocked(Run& run, std::span<const uint8_t> data);
  void LaunchLocked(File& file, std::map<uint64_t, Run>::iterator run, Work* work);
  void LaunchAllLocked(File& file, Work* work);
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
  std::map<ClassId, uint64_t> class_bytes_;
  uint64_t bytes_ = 0;        // held
  uint64_t dirty_bytes_ = 0;  // of them not on their way
  uint64_t last_sequence_ = 0;
  std::map<ClassId, std::deque<Blocked>> blocked_;
};

}  // namespace weir::client
