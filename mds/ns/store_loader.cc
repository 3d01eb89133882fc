#include "mds/ns/store_loader.h"

#include <pthread.h>

#include <utility>

namespace weir::mds {
namespace {

// Of a range at a time: an operation that wants more finds the rest missing.
constexpr size_t kRangeKeys = 2048;
constexpr size_t kRangeBytes = 256 << 10;

}  // namespace

StoreLoader::StoreLoader(KvStore& store, size_t threads, Ended ended)
    : store_(store), most_threads_(threads), ended_(std::move(ended)) {}

void StoreLoader::Stop() {
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
  }
  work_.notify_all();
  for (std::thread& thread : threads) thread.join();
}

void StoreLoader::AddThreadLocked() {
  threads_.emplace_back([this] { Run(); });
  pthread_setname_np(threads_.back().native_handle(), "mds-load");
}

void StoreLoader::Submit(Job job) {
  auto running = std::make_shared<Running>();
  const size_t items = job.items.size();
  running->left = items;
  running->job = std::move(job);
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(running));
    // An idle one may be on its way to another job.
    const size_t wanted = items + waiting_.size() - 1;
    for (size_t i = idle_; i < wanted && threads_.size() < most_threads_ && !stopping_; ++i) {
      AddThreadLocked();
    }
  }
  work_.notify_one();
}

bool StoreLoader::RunHere() {
  std::unique_lock lock(mutex_);
  bool any = false;
  while (TakeTurn(&lock)) any = true;
  return any;
}

void StoreLoader::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    work_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    --idle_;
    if (stopping_) return;
    TakeTurn(&lock);
  }
}

// An item of the next job.
bool StoreLoader::TakeTurn(std::unique_lock<std::mutex>* lock) {
  if (waiting_.empty()) return false;
  const std::shared_ptr<Running> running = std::move(waiting_.front());
  waiting_.pop_front();
  Item& item = running->job.items[running->next++];
  if (running->next < running->job.items.size()) {
    waiting_.push_back(running);
    work_.notify_one();
  }
  lock->unlock();
  Read(&item);
  lock->lock();
  if (--running->left > 0) return true;
  done_.push_back(std::move(running->job));
  HandOver(lock);
  return true;
}

// By one thread at a time: what ends meanwhile goes with its next round.
void StoreLoader::HandOver(std::unique_lock<std::mutex>* lock) {
  if (std::exchange(handing_over_, true)) return;
  while (!done_.empty()) {
    std::vector<Job> done = std::exchange(done_, {});
    lock->unlock();
    ended_(std::move(done));
    lock->lock();
  }
  handing_over_ = false;
}

void StoreLoader::Read(Item* item) {
  if (item->what.is_key()) {
    Result<std::string> stored = store_.Get(item->what.begin);
    if (stored.ok()) {
      item->value = Overlay::Value(*std::move(stored));
    } else if (stored.code() == ErrorCode::kNotFound) {
      item->value = Overlay::Value();
    } else {
      item->value = stored.status();
    }
    return;
  }
  // What is wrong with it is found by whoever asks for it next.
  const std::unique_ptr<KvStore::Iterator> it = store_.NewIteratorBefore(item->what.end);
  size_t keys = 0;
  size_t bytes = 0;
  for (it->Seek(item->what.begin); it->Valid() && it->key() < item->what.end; it->Next()) {
    bytes += it->key().size() + it->value().size();
    if (++keys == kRangeKeys || bytes > kRangeBytes) return;
  }
}

}  // namespace weir::mds
