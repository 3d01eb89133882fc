#include "common/kv/rocks_kv_store.h"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/system_clock.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <bit>
#include <condition_variable>
#include <functional>
#include <mutex>

#include "common/disk/raw_file_system.h"
#include "common/kv/stall_watch.h"

namespace weir {
namespace {

Status FromRocks(const rocksdb::Status& status) {
  if (status.ok()) return {};
  ErrorCode code = ErrorCode::kIo;
  if (status.IsNotFound()) code = ErrorCode::kNotFound;
  if (status.IsCorruption()) code = ErrorCode::kCorrupt;
  if (status.IsNoSpace()) code = ErrorCode::kNoSpace;
  if (status.IsIncomplete()) code = ErrorCode::kAgain;  // not in memory
  // Of what is asked here only a database without its beginning.
  if (status.IsInvalidArgument()) code = ErrorCode::kCorrupt;
  return {code, "metadata store: " + status.ToString()};
}

rocksdb::Slice ToSlice(std::string_view text) {
  return {text.data(), text.size()};
}
std::string_view ToView(const rocksdb::Slice& slice) {
  return {slice.data(), slice.size()};
}

// RocksDB reports through statuses; its diary has no reader here.
class NullLogger final : public rocksdb::Logger {
 public:
  using Logger::Logv;
  void Logv(const char*, va_list) override {}
};

// All databases of a process share RocksDB's threads. A job may wait for its own disk's turn, so it
// must not hold the only one: each open database has one of each kind.
class BackgroundThreads {
 public:
  BackgroundThreads() { Add(1); }
  ~BackgroundThreads() { Add(-1); }
  BackgroundThreads(const BackgroundThreads&) = delete;
  BackgroundThreads& operator=(const BackgroundThreads&) = delete;

 private:
  static void Add(int databases) {
    static std::mutex mutex;
    static int open = 0;
    constexpr int kMost = 16;
    const std::lock_guard lock(mutex);
    open += databases;
    const int threads = std::clamp(open, 1, kMost);
    rocksdb::Env::Default()->SetBackgroundThreads(threads, rocksdb::Env::HIGH);
    rocksdb::Env::Default()->SetBackgroundThreads(threads, rocksdb::Env::LOW);
  }
};

// RocksDB rests for a second, on a thread that all databases share, after an error in the
// background. The device is as dead a moment later, and a store that closes must not wait.
class BriefClock final : public rocksdb::SystemClockWrapper {
 public:
  BriefClock() : SystemClockWrapper(rocksdb::SystemClock::Default()) {}
  [[nodiscard]] const char* Name() const override { return "WeirBriefClock"; }
  void SleepForMicroseconds(int micros) override {
    SystemClockWrapper::SleepForMicroseconds(std::min(micros, 5000));
  }
};

// How many jobs RocksDB has asked for that have not ended. Threads: any.
class JobCount {
 public:
  void Begin() {
    const std::lock_guard lock(mutex_);
    ++jobs_;
  }
  void End() {
    const std::lock_guard lock(mutex_);
    --jobs_;
    ended_.notify_all();
  }
  // Until `enough`, asked after each job, or until there are none.
  void Wait(const std::function<bool()>& enough) {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return jobs_ == 0 || enough(); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  int jobs_ = 0;
};

class RawEnv final : public rocksdb::EnvWrapper {
 public:
  explicit RawEnv(RawVolume& volume)
      : EnvWrapper(rocksdb::NewCompositeEnv(MakeRawFileSystem(volume))) {
    system_clock_ = std::make_shared<BriefClock>();
  }
  [[nodiscard]] const char* Name() const override { return "WeirRawEnv"; }
  // What RocksDB schedules: flushes and compactions, and the removal of what they leave.
  void Schedule(void (*function)(void*), void* arg, Priority pri, void* tag,
                void (*unscheduled)(void*)) override {
    jobs_->Begin();
    auto* job = new Job{jobs_, function, unscheduled, arg};
    EnvWrapper::Schedule(&Job::Run, job, pri, tag, &Job::Drop);
  }
  JobCount& jobs() { return *jobs_; }

 private:
  struct Job {
    const std::shared_ptr<JobCount> count;  // RocksDB, and this Env, may go while a job returns
    void (*function)(void*);
    void (*unscheduled)(void*);
    void* arg;

    static void Run(void* job) {
      const std::unique_ptr<Job> owned(static_cast<Job*>(job));
      const BackgroundThread mark;
      owned->function(owned->arg);
      owned->count->End();
    }
    static void Drop(void* job) {
      const std::unique_ptr<Job> owned(static_cast<Job*>(job));
      if (owned->unscheduled != nullptr) owned->unscheduled(owned->arg);
      owned->count->End();
    }
  };
  const std::shared_ptr<JobCount> jobs_ = std::make_shared<JobCount>();
};

class RocksIterator final : public KvStore::Iterator {
 public:
  // `end`: empty for none.
  RocksIterator(rocksdb::DB& db, std::string_view end, rocksdb::ReadTier tier)
      : end_(end), bound_(end_) {
    rocksdb::ReadOptions options;
    options.read_tier = tier;
    if (!end_.empty()) options.iterate_upper_bound = &bound_;
    iterator_.reset(db.NewIterator(options));
  }
  void Seek(std::string_view key) override { iterator_->Seek(ToSlice(key)); }
  [[nodiscard]] bool Valid() const override { return iterator_->Valid(); }
  void Next() override { iterator_->Next(); }
  [[nodiscard]] std::string_view key() const override { return ToView(iterator_->key()); }
  [[nodiscard]] std::string_view value() const override { return ToView(iterator_->value()); }
  [[nodiscard]] Status status() const override { return FromRocks(iterator_->status()); }

 private:
  const std::string end_;
  const rocksdb::Slice bound_;
  std::unique_ptr<rocksdb::Iterator> iterator_;  // looks at the bound
};

class RocksKvStore final : public RawKvStore {
 public:
  // volume and env: null in a directory.
  RocksKvStore(std::unique_ptr<RawVolume> volume, std::unique_ptr<RawEnv> env)
      : volume_(std::move(volume)), env_(std::move(env)) {}

  Status Open(const std::string& path, rocksdb::Options options) {
    if (env_ != nullptr) {
      options.env = env_.get();
      options.listeners.push_back(stalls_);
    }
    rocksdb::DB* db = nullptr;
    Status status = FromRocks(rocksdb::DB::Open(options, path, &db));
    db_.reset(db);
    return status;
  }
  ~RocksKvStore() override {
    if (db_ == nullptr) return;
    // Buffered batches survive a clean end. Not SyncWAL: that wants files whose Sync may run beside
    // their Append, and aborts after an earlier error, which Write checks first.
    rocksdb::WriteBatch nothing;
    rocksdb::WriteOptions sync;
    sync.sync = true;
    (void)db_->Write(sync, &nothing).ok();
    (void)db_->Close().ok();
  }

  Result<std::string> Get(std::string_view key) override {
    std::string value;
    WEIR_RETURN_IF_ERROR(FromRocks(db_->Get(rocksdb::ReadOptions(), ToSlice(key), &value)));
    return value;
  }

  Result<std::string> GetInMemory(std::string_view key) override {
    rocksdb::ReadOptions options;
    options.read_tier = rocksdb::kBlockCacheTier;
    std::string value;
    WEIR_RETURN_IF_ERROR(FromRocks(db_->Get(options, ToSlice(key), &value)));
    return value;
  }

  Status Apply(const WriteBatch& batch, Durability durability) override {
    rocksdb::WriteBatch out;
    for (const WriteBatch::Op& op : batch.ops()) {
      switch (op.kind) {
        case WriteBatch::Op::Kind::kPut:
          (void)out.Put(op.key, op.value).ok();
          break;
        case WriteBatch::Op::Kind::kDelete:
          (void)out.Delete(op.key).ok();
          break;
        case WriteBatch::Op::Kind::kDeleteRange:
          (void)out.DeleteRange(op.key, op.value).ok();
          break;
      }
    }
    rocksdb::WriteOptions options;
    options.sync = durability == Durability::kDurable;
    return FromRocks(db_->Write(options, &out));
  }

  std::unique_ptr<Iterator> NewIterator() override { return NewIteratorBefore({}); }
  std::unique_ptr<Iterator> NewIteratorBefore(std::string_view end) override {
    return std::make_unique<RocksIterator>(*db_, end, rocksdb::kReadAllTier);
  }
  std::unique_ptr<Iterator> NewIteratorInMemory(std::string_view end) override {
    return std::make_unique<RocksIterator>(*db_, end, rocksdb::kBlockCacheTier);
  }
  uint64_t free_bytes() override { return volume_ == nullptr ? 0 : volume_->free_bytes(); }
  uint64_t total_bytes() override { return volume_ == nullptr ? 0 : volume_->total_bytes(); }
  bool AwaitFree(uint64_t bytes) override {
    if (volume_ == nullptr || free_bytes() >= bytes) return true;
    stalls_->RoomWanted(true);
    env_->jobs().Wait([&] { return free_bytes() >= bytes; });
    stalls_->RoomWanted(false);
    return free_bytes() >= bytes;
  }
  void SetMeter(std::shared_ptr<IoMeter> meter) override {
    stalls_->SetMeter(meter);
    if (volume_ != nullptr) volume_->SetMeter(std::move(meter));
  }
  uint64_t metered_bytes() override { return volume_ == nullptr ? 0 : volume_->metered_bytes(); }
  uint64_t unmetered_bytes() override {
    return volume_ == nullptr ? 0 : volume_->unmetered_bytes();
  }
  Status VerifyTables() override { return FromRocks(db_->VerifyChecksum()); }
  uint64_t write_buffer_bytes() override { return db_->GetOptions().write_buffer_size; }

 private:
  const std::unique_ptr<RawVolume> volume_;
  const BackgroundThreads threads_;
  const std::unique_ptr<RawEnv> env_;
  const std::shared_ptr<StallWatch> stalls_ = std::make_shared<StallWatch>();
  std::unique_ptr<rocksdb::DB> db_;  // last: goes first
};

rocksdb::Options MakeOptions(const KvOptions& kv, uint64_t write_buffer_bytes) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.info_log = std::make_shared<NullLogger>();
  options.write_buffer_size = write_buffer_bytes;
  options.max_write_buffer_number = 3;
  options.max_total_wal_size = 4 * write_buffer_bytes;
  options.target_file_size_base = write_buffer_bytes;
  options.max_bytes_for_level_base = 4 * write_buffer_bytes;
  options.compression = rocksdb::kNoCompression;
  options.max_background_jobs = 2;
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  options.recycle_log_file_num = 0;
  options.avoid_unnecessary_blocking_io = true;
  options.keep_log_file_num = 2;
  options.max_manifest_file_size = 1 << 20;
  options.manifest_preallocation_size = 64 << 10;
  options.max_open_files = -1;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.use_direct_reads = true;
  options.use_direct_io_for_flush_and_compaction = true;
  options.compaction_readahead_size = 512 << 10;
  options.disable_auto_compactions = !kv.compact;
  options.delayed_write_rate = 64 << 20;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(kv.cache_bytes, 4);
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.format_version = 5;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

}  // namespace

Result<std::unique_ptr<KvStore>> OpenRocksKvStore(const std::string& directory,
                                                  const KvOptions& options) {
  auto store = std::make_unique<RocksKvStore>(nullptr, nullptr);
  const uint64_t buffer =
      options.write_buffer_bytes != 0 ? options.write_buffer_bytes : uint64_t{64} << 20;
  rocksdb::Options rocks = MakeOptions(options, buffer);
  WEIR_RETURN_IF_ERROR(store->Open(directory, rocks));
  return std::unique_ptr<KvStore>(std::move(store));
}

namespace {

// Whether there has ever been a database: one that lost its beginning is not to be made anew.
bool HoldsData(RawVolume& volume) {
  const std::vector<std::string> names = volume.List("");
  return std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name.ends_with(".sst") || name.ends_with(".log");
  });
}

}  // namespace

Status FormatRawKv(BlockDevice& device, Region region) {
  return RawVolume::Format(device, region);
}

Result<std::unique_ptr<RawKvStore>> OpenRawKvStore(BlockDevice& device, Region region,
                                                   const KvOptions& options) {
  WEIR_ASSIGN_OR_RETURN(auto volume, RawVolume::Mount(device, region,
                                                      options.grows ? RawVolume::Growth::kGrows
                                                                    : RawVolume::Growth::kFixed));
  auto env = std::make_unique<RawEnv>(*volume);
  const uint64_t total = volume->total_bytes();
  const uint64_t by_size = std::clamp<uint64_t>(std::bit_floor(total / 16), 256 << 10, 64 << 20);
  const bool holds_data = HoldsData(*volume);
  auto store = std::make_unique<RocksKvStore>(std::move(volume), std::move(env));
  const uint64_t buffer = options.write_buffer_bytes != 0 ? options.write_buffer_bytes : by_size;
  rocksdb::Options rocks = MakeOptions(options, buffer);
  // Logs, tables of the first two levels and what a compaction makes of these must fit.
  rocks.level0_stop_writes_trigger =
      static_cast<int>(std::clamp<uint64_t>(total / buffer / 3, 8, 36));
  rocks.level0_slowdown_writes_trigger = rocks.level0_stop_writes_trigger - 2;
  rocks.create_if_missing = !holds_data;
  WEIR_RETURN_IF_ERROR(store->Open("/kv", rocks).Annotate(device.name()));
  return std::unique_ptr<RawKvStore>(std::move(store));
}

}  // namespace weir
