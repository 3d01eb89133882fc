#include "client/takeover/record_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/base/crc32c.h"

namespace weir::client {
namespace {

constexpr uint64_t kMagic = 0x5745'4952'4845'4c44;
constexpr uint64_t kHeaderBytes = 4096;
constexpr uint64_t kAlign = 8;

struct FileHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t active;  // 0 or 1
};
struct RecordHeader {
  uint32_t length;
  uint32_t crc;
};
static_assert(sizeof(RecordHeader) == kAlign);

constexpr uint64_t Padded(uint64_t length) {
  return (length + kAlign - 1) / kAlign * kAlign;
}

// The writer may die between any two stores: they must be made in this order.
void Publish(uint32_t* word, uint32_t value) {
  std::atomic_ref<uint32_t>(*word).store(value, std::memory_order_release);
}

}  // namespace

Result<int> RecordFile::Create(uint64_t area_bytes) {
  const int fd = memfd_create("weirfs-mount", MFD_CLOEXEC);
  if (fd < 0) return Status::FromErrno(errno, "cannot make a file in memory");
  const FileHeader header{kMagic, kVersion, 0};
  const auto size = static_cast<off_t>(kHeaderBytes + 2 * area_bytes);
  if (ftruncate(fd, size) != 0 || pwrite(fd, &header, sizeof(header), 0) != sizeof(header)) {
    const Status failed = Status::FromErrno(errno, "cannot make a file in memory");
    close(fd);
    return failed;
  }
  return fd;
}

Result<RecordFile> RecordFile::Open(int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return Status::FromErrno(errno, "the state of a mount");
  const auto bytes = static_cast<uint64_t>(info.st_size);
  if (bytes <= kHeaderBytes)
    return Status(ErrorCode::kCorrupt, "the state of a mount is too short");
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return Status::FromErrno(errno, "the state of a mount");
  RecordFile file(static_cast<uint8_t*>(memory), bytes);
  FileHeader header{};
  std::memcpy(&header, memory, sizeof(header));
  if (header.magic != kMagic || header.version != kVersion || header.active > 1) {
    return Status(ErrorCode::kCorrupt,
                  "the state of the mount was written by a version that this one does not know, or "
                  "could not be kept");
  }
  file.used_ = file.Walk([](std::string_view) {});
  return file;
}

RecordFile::RecordFile(RecordFile&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), bytes_(other.bytes_), used_(other.used_) {}

RecordFile::~RecordFile() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
}

uint64_t RecordFile::area_bytes() const {
  return (bytes_ - kHeaderBytes) / 2;
}

uint8_t* RecordFile::Area(uint32_t which) const {
  return memory_ + kHeaderBytes + which * area_bytes();
}

// Returns where the next record goes.
uint64_t RecordFile::Walk(const std::function<void(std::string_view)>& each) const {
  FileHeader header{};
  std::memcpy(&header, memory_, sizeof(header));
  const uint8_t* const area = Area(header.active);
  uint64_t at = 0;
  while (at + sizeof(RecordHeader) <= area_bytes()) {
    RecordHeader record{};
    std::memcpy(&record, area + at, sizeof(record));
    const uint64_t room = area_bytes() - at - sizeof(record);
    if (record.length == 0 || record.length > room) break;
    const uint8_t* const bytes = area + at + sizeof(record);
    if (Crc32c(bytes, record.length) != record.crc) break;
    each({reinterpret_cast<const char*>(bytes), record.length});
    at += sizeof(record) + Padded(record.length);
  }
  return at;
}

void RecordFile::Read(const std::function<void(std::string_view)>& each) const {
  (void)Walk(each);
}

// What lies behind the last record may be of an earlier use, so that its end is made first.
bool RecordFile::Put(uint8_t* area, uint64_t* used, std::string_view record) const {
  const uint64_t end = *used + sizeof(RecordHeader) + Padded(record.size());
  if (record.empty() || end + sizeof(RecordHeader) > area_bytes()) return false;
  std::memset(area + end, 0, sizeof(RecordHeader));
  auto* const header = reinterpret_cast<RecordHeader*>(area + *used);
  header->crc = Crc32c(record.data(), record.size());
  std::memcpy(area + *used + sizeof(RecordHeader), record.data(), record.size());
  Publish(&header->length, static_cast<uint32_t>(record.size()));
  *used = end;
  return true;
}

bool RecordFile::Append(std::string_view record) {
  return Put(Area(reinterpret_cast<FileHeader*>(memory_)->active), &used_, record);
}

bool RecordFile::Rewrite(const std::vector<std::string>& records) {
  auto* const header = reinterpret_cast<FileHeader*>(memory_);
  const uint32_t other = 1 - header->active;
  uint64_t used = 0;
  std::memset(Area(other), 0, sizeof(RecordHeader));
  for (const std::string& record : records) {
    if (!Put(Area(other), &used, record)) return false;
  }
  Publish(&header->active, other);
  used_ = used;
  // Gives the memory of the old one back; it reads as zeros then.
  madvise(Area(1 - other), area_bytes(), MADV_REMOVE);
  return true;
}

void RecordFile::Spoil() {
  Publish(&reinterpret_cast<FileHeader*>(memory_)->version, 0);
}

}  // namespace weir::client
