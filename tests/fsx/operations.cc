// What the tester does to the file and to its model.
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "tests/fsx/tester.h"

namespace weir::fsx {
namespace {

constexpr uint64_t kPage = 4096;

[[noreturn]] void Fail(const std::string& what) {
  throw Difference(what + ": " + std::strerror(errno));
}

void Expect(bool holds, const std::string& what) {
  if (!holds) throw Difference(what);
}

std::string Range(uint64_t offset, uint64_t length) {
  return "[" + std::to_string(offset) + ", +" + std::to_string(length) + ")";
}

struct Unmap {
  uint64_t size;
  void operator()(uint8_t* at) const { munmap(at, size); }
};
using Mapping = std::unique_ptr<uint8_t[], Unmap>;

Mapping MapFile(int fd, uint64_t offset, uint64_t size, int protection, int flags) {
  void* at = mmap(nullptr, size, protection, flags, fd, static_cast<off_t>(offset));
  if (at == MAP_FAILED) Fail("mmap");
  return {static_cast<uint8_t*>(at), Unmap{size}};
}

struct Free {
  void operator()(uint8_t* at) const { std::free(at); }
};
using Aligned = std::unique_ptr<uint8_t[], Free>;
Aligned AlignedBytes(uint64_t size) {
  return {static_cast<uint8_t*>(std::aligned_alloc(kPage, size)), {}};
}

}  // namespace

uint64_t Tester::SomeLength(uint64_t offset) {
  const uint64_t most = std::min(options_.most_io, options_.most_bytes - offset);
  return most == 0 ? 0 : Random(1, Random(0, 3) == 0 ? most : std::min(most, 3 * kPage));
}

void Tester::Write(Mount& mount) {
  const uint64_t offset = Random(0, options_.most_bytes - 1);
  const Bytes bytes = RandomBytes(SomeLength(offset));
  Note("write " + Range(offset, bytes.size()));
  const ssize_t done = pwrite(mount.fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
  if (done < 0) Fail("write");
  Expect(static_cast<uint64_t>(done) == bytes.size(), "a short write");
  Put(offset, bytes);
}

void Tester::WriteDirect(Mount& mount) {
  if (mount.direct_fd < 0) return Write(mount);
  const uint64_t offset = Random(0, options_.most_bytes / kPage - 1) * kPage;
  const uint64_t length =
      std::min(Random(1, 16) * kPage, options_.most_bytes / kPage * kPage - offset);
  const Bytes bytes = RandomBytes(length);
  const Aligned buffer = AlignedBytes(length);
  std::memcpy(buffer.get(), bytes.data(), length);
  Note("direct write " + Range(offset, length));
  const ssize_t done = pwrite(mount.direct_fd, buffer.get(), length, static_cast<off_t>(offset));
  if (done < 0) Fail("direct write");
  Expect(static_cast<uint64_t>(done) == length, "a short direct write");
  Put(offset, bytes);
}

void Tester::Append(Mount& mount) {
  const uint64_t offset = model_.size();
  const Bytes bytes = RandomBytes(SomeLength(offset));
  if (bytes.empty()) return;
  Note("append " + std::to_string(bytes.size()) + " at " + std::to_string(offset));
  const ssize_t done = write(mount.append_fd, bytes.data(), bytes.size());
  if (done < 0) Fail("append");
  Expect(static_cast<uint64_t>(done) == bytes.size(), "a short append");
  Put(offset, bytes);
}

void Tester::Read(Mount& mount) {
  const uint64_t offset = SomeOffset();
  const uint64_t length = SomeLength(offset);
  Bytes bytes(length);
  Note("read " + Range(offset, length));
  const ssize_t done = pread(mount.fd, bytes.data(), length, static_cast<off_t>(offset));
  if (done < 0) Fail("read");
  const uint64_t expected = std::min<uint64_t>(length, model_.size() - offset);
  Expect(static_cast<uint64_t>(done) == expected,
         "read gave " + std::to_string(done) + " bytes, not " + std::to_string(expected));
  Compare(bytes.data(), offset, expected, "read");
}

void Tester::ReadDirect(Mount& mount) {
  if (mount.direct_fd < 0) return Read(mount);
  const uint64_t offset = SomeOffset() / kPage * kPage;
  const uint64_t length = Random(1, 16) * kPage;
  const Aligned buffer = AlignedBytes(length);
  Note("direct read " + Range(offset, length));
  const ssize_t done = pread(mount.direct_fd, buffer.get(), length, static_cast<off_t>(offset));
  if (done < 0) Fail("direct read");
  const uint64_t expected = std::min<uint64_t>(length, model_.size() - offset);
  Expect(static_cast<uint64_t>(done) == expected,
         "direct read gave " + std::to_string(done) + " bytes, not " + std::to_string(expected));
  Compare(buffer.get(), offset, expected, "direct read");
}

void Tester::Truncate(Mount& mount) {
  const uint64_t size = Random(0, Random(0, 2) == 0 ? options_.most_bytes : model_.size());
  Note("truncate " + std::to_string(model_.size()) + " to " + std::to_string(size));
  const bool by_name = Random(0, 3) == 0;
  const auto to = static_cast<off_t>(size);
  if ((by_name ? truncate(mount.path.c_str(), to) : ftruncate(mount.fd, to)) != 0) Fail("truncate");
  model_.resize(size);
}

void Tester::MapRead(Mount& mount) {
  if (model_.empty()) return;
  const uint64_t offset = Random(0, (model_.size() - 1) / kPage) * kPage;
  const uint64_t length = std::min(options_.most_io, model_.size() - offset);
  Note("map and read " + Range(offset, length));
  const Mapping map = MapFile(mount.fd, offset, length, PROT_READ, MAP_SHARED);
  Compare(map.get(), offset, length, "mapping");
  // The rest of the last page is zeros.
  for (uint64_t i = length; (offset + i) % kPage != 0 && offset + i > model_.size(); ++i) {
    Expect(map.get()[i] == 0, "bytes behind the end of the file are mapped");
  }
}

void Tester::MapWrite(Mount& mount, bool shared) {
  if (model_.empty()) return;
  const uint64_t offset = Random(0, (model_.size() - 1) / kPage) * kPage;
  const uint64_t skip = Random(0, std::min(kPage - 1, model_.size() - offset - 1));
  const uint64_t length = std::min(SomeLength(0), model_.size() - offset - skip);
  const Bytes bytes = RandomBytes(length);
  Note((shared ? "map and write " : "map privately and write ") + Range(offset + skip, length));
  const Mapping map = MapFile(mount.fd, offset, skip + length, PROT_READ | PROT_WRITE,
                              shared ? MAP_SHARED : MAP_PRIVATE);
  std::memcpy(map.get() + skip, bytes.data(), length);
  if (!shared) return;
  if (msync(map.get(), skip + length, MS_SYNC) != 0) Fail("msync");
  Put(offset + skip, bytes);
}

void Tester::Punch(Mount& mount) {
  const uint64_t offset = SomeOffset();
  const uint64_t length = SomeLength(offset);
  if (length == 0) return;
  Note("punch " + Range(offset, length));
  if (fallocate(mount.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                static_cast<off_t>(length)) != 0) {
    Fail("punch");
  }
  const uint64_t end = std::min<uint64_t>(offset + length, model_.size());
  std::fill(model_.begin() + static_cast<ptrdiff_t>(offset),
            model_.begin() + static_cast<ptrdiff_t>(std::max(offset, end)), 0);
}

void Tester::Zero(Mount& mount) {
  const uint64_t offset = SomeOffset();
  const uint64_t length = SomeLength(offset);
  if (length == 0) return;
  const bool keep = Random(0, 1) == 0;
  Note(std::string(keep ? "zero, size kept, " : "zero ") + Range(offset, length));
  if (fallocate(mount.fd, FALLOC_FL_ZERO_RANGE | (keep ? FALLOC_FL_KEEP_SIZE : 0),
                static_cast<off_t>(offset), static_cast<off_t>(length)) != 0) {
    Fail("zero");
  }
  const uint64_t size = model_.size();
  Put(offset, Bytes(length));
  if (keep) model_.resize(size);
}

void Tester::Allocate(Mount& mount) {
  const uint64_t offset = SomeOffset();
  const uint64_t length = SomeLength(offset);
  if (length == 0) return;
  const bool keep = Random(0, 1) == 0;
  Note(std::string(keep ? "allocate, size kept, " : "allocate ") + Range(offset, length));
  if (fallocate(mount.fd, keep ? FALLOC_FL_KEEP_SIZE : 0, static_cast<off_t>(offset),
                static_cast<off_t>(length)) != 0) {
    Fail("allocate");
  }
  if (!keep) model_.resize(std::max<uint64_t>(model_.size(), offset + length));
}

void Tester::CopyRange(Mount& mount) {
  uint64_t from = SomeOffset();
  uint64_t to = Random(0, options_.most_bytes - 1);
  if (Random(0, 1) == 0) {  // so that blocks may be shared
    from = from / kPage * kPage;
    to = to / kPage * kPage;
  }
  const uint64_t wanted =
      std::min({SomeLength(to), model_.size() - from, from < to ? to - from : from - to});
  for (uint64_t done = 0; done < wanted;) {
    Note("copy " + Range(from + done, wanted - done) + " to " + std::to_string(to + done));
    auto in = static_cast<off64_t>(from + done);
    auto out = static_cast<off64_t>(to + done);
    const ssize_t got = copy_file_range(mount.fd, &in, mount.fd, &out, wanted - done, 0);
    if (got < 0) Fail("copy_file_range");
    Expect(got > 0, "copy_file_range copied nothing");
    const auto begin = model_.begin() + static_cast<ptrdiff_t>(from + done);
    Put(to + done, Bytes(begin, begin + got));
    done += static_cast<uint64_t>(got);
  }
}

// Where it says that there is a hole must be zeros only; the file's end is one.
void Tester::Seek(Mount& mount) {
  if (model_.empty()) return;
  const uint64_t at = Random(0, model_.size() - 1);
  Note("seek from " + std::to_string(at));
  const off_t data = lseek(mount.fd, static_cast<off_t>(at), SEEK_DATA);
  if (data < 0 && errno != ENXIO) Fail("SEEK_DATA");
  const uint64_t hole_end = data < 0 ? model_.size() : static_cast<uint64_t>(data);
  Expect(hole_end >= at && hole_end <= model_.size(), "SEEK_DATA left the file");
  const auto begin = model_.begin() + static_cast<ptrdiff_t>(at);
  const auto end = model_.begin() + static_cast<ptrdiff_t>(hole_end);
  const auto data_in_hole = std::find_if(begin, end, [](uint8_t byte) { return byte != 0; });
  if (data_in_hole != end) {
    throw Difference("byte " + std::to_string(data_in_hole - model_.begin()) +
                     " is said to be in a hole");
  }
  if (data < 0) return;
  const off_t hole = lseek(mount.fd, data, SEEK_HOLE);
  if (hole < 0) Fail("SEEK_HOLE");
  Expect(hole >= data && static_cast<uint64_t>(hole) <= model_.size(), "SEEK_HOLE left the file");
}

void Tester::Sync(Mount& mount) {
  Note("fsync");
  if (fsync(mount.fd) != 0) Fail("fsync");
}

}  // namespace weir::fsx
