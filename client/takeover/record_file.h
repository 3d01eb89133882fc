// RecordFile: records in memory that outlives the process which writes them, since another one
// holds the same file: a journal that needs no disk.
//
// Layout: one page of header, then two areas, one of which is in use. An area is a run of records:
// length (4 bytes), crc32c of the bytes (4 bytes), the bytes, padded to 8; a length of 0 ends it.
// A record counts once its length is there, which is stored last. Rewrite fills the other area and
// then switches: so whenever the writer dies, a reader finds everything up to some record.
// Threads: one at a time. A reader after the writer's death.
// Errors:  kCorrupt when the file is none of ours or of another version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace weir::client {

class RecordFile {
 public:
  // Of the records as well: what a program that reads them must understand.
  static constexpr uint32_t kVersion = 1;
  static constexpr uint64_t kAreaBytes = 64 << 20;  // takes memory only as far as it is used

  // A new file, empty; the descriptor is the caller's. `area_bytes`: a multiple of the page size.
  static Result<int> Create(uint64_t area_bytes = kAreaBytes);
  // Of Create, also of another process. `fd` is not needed afterwards.
  static Result<RecordFile> Open(int fd);
  RecordFile(RecordFile&& other) noexcept;
  RecordFile& operator=(RecordFile&&) = delete;
  ~RecordFile();

  // All records, oldest first.
  void Read(const std::function<void(std::string_view)>& each) const;
  // False: it does not fit; nothing has changed.
  bool Append(std::string_view record);
  // Instead of all records. False: they do not fit; nothing has changed.
  bool Rewrite(const std::vector<std::string>& records);
  [[nodiscard]] uint64_t used() const { return used_; }
  // Nobody shall go on with what is here.
  void Spoil();

 private:
  RecordFile(uint8_t* memory, uint64_t bytes) : memory_(memory), bytes_(bytes) {}
  [[nodiscard]] uint64_t area_bytes() const;
  [[nodiscard]] uint8_t* Area(uint32_t which) const;
  bool Put(uint8_t* area, uint64_t* used, std::string_view record) const;
  uint64_t Walk(const std::function<void(std::string_view)>& each) const;

  uint8_t* memory_;
  uint64_t bytes_;
  uint64_t used_ = 0;  // of the area in use
};

}  // namespace weir::client
