// StoreLoader: reads for operations that found their keys missing from memory, so that whoever
// prepares them need not wait for the disk. What it has read is in the store's memory for a while;
// the values of single keys it also hands over.
//
// Order:   jobs take turns, an item each: a large one does not hold up a small one. Those that have
//          ended are handed over together.
// Threads: Submit from any thread, also under a lock that `ended` takes: that is called on a thread
//          of the loader, or in RunHere. They begin with the first jobs. Without threads of its own
//          the owner calls RunHere.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "mds/ns/overlay.h"

namespace weir::mds {

class StoreLoader {
 public:
  struct Item {
    Overlay::Missing what;
    uint64_t load = 0;  // Overlay::BeginLoad of a single key
    Result<Overlay::Value> value{Status(ErrorCode::kCancelled)};  // of a single key
  };
  struct Job {
    uint64_t id = 0;  // the owner's
    std::vector<Item> items;
  };
  using Ended = std::function<void(std::vector<Job>)>;

  StoreLoader(KvStore& store, size_t threads, Ended ended);
  ~StoreLoader() { Stop(); }
  StoreLoader(const StoreLoader&) = delete;
  StoreLoader& operator=(const StoreLoader&) = delete;

  void Submit(Job job);
  // Ends the threads; nothing that has not been handed over will be, but by RunHere.
  void Stop();
  // Reads whatever waits, on this thread. False: nothing did.
  bool RunHere();

 private:
  struct Running {
    Job job;
    size_t next = 0;  // item to be read
    size_t left = 0;  // items not read yet
  };
  void AddThreadLocked();
  void Run();
  bool TakeTurn(std::unique_lock<std::mutex>* lock);
  void HandOver(std::unique_lock<std::mutex>* lock);
  void Read(Item* item);

  KvStore& store_;
  const size_t most_threads_;
  const Ended ended_;
  std::mutex mutex_;
  std::condition_variable work_;
  std::deque<std::shared_ptr<Running>> waiting_;  // have items that nobody has taken
  std::vector<Job> done_;
  bool handing_over_ = false;
  bool stopping_ = false;
  size_t idle_ = 0;  // threads that wait for work
  std::vector<std::thread> threads_;
};

}  // namespace weir::mds
