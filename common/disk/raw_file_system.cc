#include "common/disk/raw_file_system.h"

#include <algorithm>

#include "common/disk/raw_log.h"

namespace weir {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

constexpr size_t kBufferBytes = 1 << 20;      // of unaligned appends before they are written
constexpr size_t kReadAheadBytes = 64 << 10;  // of sequential readers

IOStatus ToIo(const Status& status) {
  if (status.ok()) return IOStatus::OK();
  if (status.code() == ErrorCode::kNoSpace) return IOStatus::NoSpace(status.message());
  if (status.code() == ErrorCode::kNotFound) return IOStatus::PathNotFound(status.message());
  if (status.code() == ErrorCode::kCorrupt) return IOStatus::Corruption(status.message());
  return IOStatus::IOError(status.message());
}

uint64_t Down(uint64_t value) {
  return value / kBlockSize * kBlockSize;
}
uint64_t Up(uint64_t value) {
  return Down(value + kBlockSize - 1);
}

// Reads any range of a plain file; returns what lies before its end.
Status ReadPlain(RawVolume& volume, const RawFile& file, uint64_t offset, size_t n, Slice* result,
                 char* scratch) {
  const uint64_t size = volume.SizeOf(file);
  n = offset >= size ? 0 : std::min<uint64_t>(n, size - offset);
  *result = Slice(scratch, n);
  if (n == 0) return {};
  const uint64_t start = Down(offset), end = Up(offset + n);
  auto* to = reinterpret_cast<uint8_t*>(scratch);
  if (start == offset && end == offset + n && reinterpret_cast<uintptr_t>(to) % kBlockSize == 0) {
    return volume.Read(file, start, Buffer(nullptr, to, n));
  }
  Buffer blocks = Buffer::Aligned(end - start);
  WEIR_RETURN_IF_ERROR(volume.Read(file, start, blocks));
  std::memcpy(scratch, blocks.data() + (offset - start), n);
  return {};
}

class PlainRandomFile final : public rocksdb::FSRandomAccessFile {
 public:
  PlainRandomFile(RawVolume& volume, RawFilePtr file, bool direct)
      : volume_(volume), file_(std::move(file)), direct_(direct) {}
  IOStatus Read(uint64_t offset, size_t n, const IOOptions&, Slice* result, char* scratch,
                IODebugContext*) const override {
    return ToIo(ReadPlain(volume_, *file_, offset, n, result, scratch));
  }
  [[nodiscard]] bool use_direct_io() const override { return direct_; }
  [[nodiscard]] size_t GetRequiredBufferAlignment() const override { return kBlockSize; }

 private:
  RawVolume& volume_;
  const RawFilePtr file_;
  const bool direct_;
};

class PlainSequentialFile final : public rocksdb::FSSequentialFile {
 public:
  PlainSequentialFile(RawVolume& volume, RawFilePtr file)
      : volume_(volume), file_(std::move(file)) {}
  IOStatus Read(size_t n, const IOOptions&, Slice* result, char* scratch,
                IODebugContext*) override {
    size_t filled = 0;
    while (filled < n) {
      if (used_ == ahead_.size()) {
        ahead_.resize(std::max(kReadAheadBytes, n - filled));
        Slice piece;
        const Status status =
            ReadPlain(volume_, *file_, position_, ahead_.size(), &piece, ahead_.data());
        ahead_.resize(status.ok() ? piece.size() : 0);
        used_ = 0;
        if (!status.ok()) return ToIo(status);
        if (ahead_.empty()) break;
        position_ += ahead_.size();
      }
      const size_t piece = std::min(n - filled, ahead_.size() - used_);
      std::memcpy(scratch + filled, ahead_.data() + used_, piece);
      filled += piece;
      used_ += piece;
    }
    *result = Slice(scratch, filled);
    return IOStatus::OK();
  }
  IOStatus Skip(uint64_t n) override {
    const uint64_t have = std::min<uint64_t>(n, ahead_.size() - used_);
    used_ += have;
    position_ += n - have;
    return IOStatus::OK();
  }

 private:
  RawVolume& volume_;
  const RawFilePtr file_;
  std::string ahead_;
  size_t used_ = 0;
  uint64_t position_ = 0;  // of the byte behind ahead_
};

class FramedSequentialFile final : public rocksdb::FSSequentialFile {
 public:
  FramedSequentialFile(RawVolume& volume, RawFilePtr file) : reader_(volume, std::move(file)) {}
  IOStatus Read(size_t n, const IOOptions&, Slice* result, char* scratch,
                IODebugContext*) override {
    size_t filled = 0;
    while (filled < n) {
      if (payload_.empty()) {
        Result<bool> more = reader_.Next(&payload_);
        if (!more.ok()) return ToIo(more.status());
        if (!*more) break;
        continue;
      }
      const size_t piece = std::min(n - filled, payload_.size());
      std::memcpy(scratch + filled, payload_.data(), piece);
      payload_.remove_prefix(piece);
      filled += piece;
    }
    *result = Slice(scratch, filled);
    return IOStatus::OK();
  }
  IOStatus Skip(uint64_t n) override {
    while (n > 0) {
      if (payload_.empty()) {
        Result<bool> more = reader_.Next(&payload_);
        if (!more.ok()) return ToIo(more.status());
        if (!*more) break;
        continue;
      }
      const uint64_t piece = std::min<uint64_t>(n, payload_.size());
      payload_.remove_prefix(piece);
      n -= piece;
    }
    return IOStatus::OK();
  }

 private:
  FrameReader reader_;
  std::string_view payload_;
};

class FramedWritableFile final : public rocksdb::FSWritableFile {
 public:
  FramedWritableFile(RawVolume& volume, RawFilePtr file) : writer_(volume, std::move(file)) {}
  Status OpenAtEnd() { return writer_.OpenAtEnd(); }
  using FSWritableFile::Append;
  IOStatus Append(const Slice& data, const IOOptions&, IODebugContext*) override {
    return ToIo(writer_.Append({data.data(), data.size()}));
  }
  IOStatus Append(const Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo&,
                  IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus Flush(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Sync(const IOOptions&, IODebugContext*) override { return ToIo(writer_.Sync()); }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return ToIo(writer_.WriteOut()); }
  uint64_t GetFileSize(const IOOptions&, IODebugContext*) override { return writer_.logical_end(); }

 private:
  FrameWriter writer_;
};

// Appends of any size, or aligned writes at a position (RocksDB never mixes the two).
class PlainWritableFile final : public rocksdb::FSWritableFile {
 public:
  PlainWritableFile(RawVolume& volume, RawFilePtr file, bool direct)
      : volume_(volume), file_(std::move(file)), direct_(direct) {}

  Status OpenAtEnd() {
    size_ = volume_.SizeOf(*file_);
    start_ = Down(size_);
    if (start_ == size_) return {};
    Buffer block = Buffer::Aligned(kBlockSize);
    WEIR_RETURN_IF_ERROR(volume_.Read(*file_, start_, block));
    buffer_.assign(block.view().substr(0, size_ - start_));
    return {};
  }

  using FSWritableFile::Append;
  using FSWritableFile::PositionedAppend;
  IOStatus Append(const Slice& data, const IOOptions&, IODebugContext*) override {
    buffer_.append(data.data(), data.size());
    size_ += data.size();
    return buffer_.size() < kBufferBytes ? IOStatus::OK() : ToIo(WriteOut());
  }
  IOStatus Append(const Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo&,
                  IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions&,
                            IODebugContext*) override {
    if (Status status = volume_.Reserve(file_, offset + data.size()); !status.ok()) {
      return ToIo(status);
    }
    size_ = std::max(size_, offset + data.size());
    auto* bytes = const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(data.data()));
    return ToIo(volume_.Write(*file_, offset, Buffer(nullptr, bytes, data.size())));
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            const rocksdb::DataVerificationInfo&, IODebugContext* debug) override {
    return PositionedAppend(data, offset, options, debug);
  }
  IOStatus Truncate(uint64_t size, const IOOptions&, IODebugContext*) override {
    size_ = size;
    return IOStatus::OK();
  }
  IOStatus Flush(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    if (Status status = WriteOut(); !status.ok()) return ToIo(status);
    // The bytes before the size that promises them.
    if (Status status = volume_.Flush(); !status.ok()) return ToIo(status);
    return ToIo(volume_.Commit());
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return ToIo(WriteOut()); }
  uint64_t GetFileSize(const IOOptions&, IODebugContext*) override { return size_; }
  [[nodiscard]] bool use_direct_io() const override { return direct_; }
  [[nodiscard]] size_t GetRequiredBufferAlignment() const override { return kBlockSize; }

 private:
  // Writes the buffered appends; keeps the bytes of a last, partly filled block.
  Status WriteOut() {
    if (!buffer_.empty()) {
      const uint64_t rounded = Up(buffer_.size());
      WEIR_RETURN_IF_ERROR(volume_.Reserve(file_, start_ + rounded));
      Buffer out = Buffer::AlignedZeros(rounded);
      std::memcpy(out.data(), buffer_.data(), buffer_.size());
      WEIR_RETURN_IF_ERROR(volume_.Write(*file_, start_, out));
      const uint64_t whole = Down(buffer_.size());
      buffer_.erase(0, whole);
      start_ += whole;
    }
    volume_.SetSize(file_, size_);
    return {};
  }

  RawVolume& volume_;
  const RawFilePtr file_;
  const bool direct_;
  std::string buffer_;  // bytes of the file from start_ that may not be written yet
  uint64_t start_ = 0;
  uint64_t size_ = 0;
};

class RawDirectory final : public rocksdb::FSDirectory {
 public:
  explicit RawDirectory(RawVolume& volume) : volume_(volume) {}
  IOStatus Fsync(const IOOptions&, IODebugContext*) override { return ToIo(volume_.Commit()); }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }

 private:
  RawVolume& volume_;
};

class RawFileSystem final : public rocksdb::FileSystem {
 public:
  explicit RawFileSystem(RawVolume& volume) : volume_(volume) {}
  [[nodiscard]] const char* Name() const override { return "WeirRawFileSystem"; }

  IOStatus NewSequentialFile(const std::string& name, const FileOptions&,
                             std::unique_ptr<rocksdb::FSSequentialFile>* result,
                             IODebugContext*) override {
    const RawFilePtr file = volume_.Find(name);
    if (file == nullptr) return Missing(name);
    if (file->framed) {
      *result = std::make_unique<FramedSequentialFile>(volume_, file);
    } else {
      *result = std::make_unique<PlainSequentialFile>(volume_, file);
    }
    return IOStatus::OK();
  }

  IOStatus NewRandomAccessFile(const std::string& name, const FileOptions& options,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                               IODebugContext*) override {
    const RawFilePtr file = volume_.Find(name);
    if (file == nullptr) return Missing(name);
    if (file->framed) return IOStatus::NotSupported(name + ": logs are read in order");
    *result = std::make_unique<PlainRandomFile>(volume_, file, options.use_direct_reads);
    return IOStatus::OK();
  }

  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                           IODebugContext*) override {
    const bool framed = name.ends_with(".log");
    const RawFilePtr file = volume_.Create(name, framed);
    if (framed) {
      *result = std::make_unique<FramedWritableFile>(volume_, file);
    } else {
      *result = std::make_unique<PlainWritableFile>(volume_, file, options.use_direct_writes);
    }
    return IOStatus::OK();
  }

  IOStatus ReopenWritableFile(const std::string& name, const FileOptions& options,
                              std::unique_ptr<rocksdb::FSWritableFile>* result,
                              IODebugContext* debug) override {
    const RawFilePtr file = volume_.Find(name);
    if (file == nullptr) return NewWritableFile(name, options, result, debug);
    return file->framed ? Reopen(std::make_unique<FramedWritableFile>(volume_, file), result)
                        : Reopen(std::make_unique<PlainWritableFile>(volume_, file, false), result);
  }

  IOStatus NewDirectory(const std::string&, const IOOptions&,
                        std::unique_ptr<rocksdb::FSDirectory>* result, IODebugContext*) override {
    *result = std::make_unique<RawDirectory>(volume_);
    return IOStatus::OK();
  }
  IOStatus FileExists(const std::string& name, const IOOptions&, IODebugContext*) override {
    return volume_.Find(name) != nullptr ? IOStatus::OK() : IOStatus::NotFound(name);
  }
  IOStatus GetChildren(const std::string& directory, const IOOptions&,
                       std::vector<std::string>* result, IODebugContext*) override {
    *result = volume_.List(directory.ends_with('/') ? directory : directory + "/");
    return IOStatus::OK();
  }
  IOStatus DeleteFile(const std::string& name, const IOOptions&, IODebugContext*) override {
    const Status status = volume_.Remove(name);
    return ToIo(status.ok() ? volume_.Commit() : status);
  }
  IOStatus CreateDir(const std::string&, const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }
  IOStatus CreateDirIfMissing(const std::string&, const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }
  IOStatus DeleteDir(const std::string&, const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }
  IOStatus GetFileSize(const std::string& name, const IOOptions&, uint64_t* size,
                       IODebugContext*) override {
    const RawFilePtr file = volume_.Find(name);
    if (file == nullptr) return Missing(name);
    *size = volume_.SizeOf(*file);
    return IOStatus::OK();
  }
  IOStatus GetFileModificationTime(const std::string&, const IOOptions&, uint64_t*,
                                   IODebugContext*) override {
    return IOStatus::NotSupported("files of a raw volume have no times");
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions&,
                      IODebugContext*) override {
    return ToIo(volume_.Rename(from, to));
  }
  // The device itself is locked by whoever opened it.
  IOStatus LockFile(const std::string&, const IOOptions&, rocksdb::FileLock** lock,
                    IODebugContext*) override {
    *lock = new rocksdb::FileLock();
    return IOStatus::OK();
  }
  IOStatus UnlockFile(rocksdb::FileLock* lock, const IOOptions&, IODebugContext*) override {
    delete lock;
    return IOStatus::OK();
  }
  IOStatus GetTestDirectory(const IOOptions&, std::string* path, IODebugContext*) override {
    *path = "/test";
    return IOStatus::OK();
  }
  IOStatus GetAbsolutePath(const std::string& path, const IOOptions&, std::string* result,
                           IODebugContext*) override {
    *result = path;
    return IOStatus::OK();
  }
  IOStatus GetFreeSpace(const std::string&, const IOOptions&, uint64_t* bytes,
                        IODebugContext*) override {
    *bytes = volume_.free_bytes();
    return IOStatus::OK();
  }
  IOStatus IsDirectory(const std::string& path, const IOOptions&, bool* result,
                       IODebugContext*) override {
    *result = volume_.Find(path) == nullptr;
    return IOStatus::OK();
  }

 private:
  static IOStatus Missing(const std::string& name) { return IOStatus::PathNotFound(name); }
  template <typename File>
  static IOStatus Reopen(std::unique_ptr<File> file,
                         std::unique_ptr<rocksdb::FSWritableFile>* result) {
    if (Status status = file->OpenAtEnd(); !status.ok()) return ToIo(status);
    *result = std::move(file);
    return IOStatus::OK();
  }

  RawVolume& volume_;
};

}  // namespace

std::shared_ptr<rocksdb::FileSystem> MakeRawFileSystem(RawVolume& volume) {
  return std::make_shared<RawFileSystem>(volume);
}

}  // namespace weir
