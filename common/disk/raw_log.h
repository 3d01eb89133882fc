// Framed files of a RawVolume: how a write-ahead log is appended to with one write and one flush
// per sync, and read back after a crash. Threads: one at a time per object.
#pragma once

#include <string>
#include <string_view>

#include "common/disk/raw_volume.h"

namespace weir {

// Yields the payloads of a framed file in order, up to the first frame that is not valid.
class FrameReader {
 public:
  FrameReader(RawVolume& volume, RawFilePtr file) : volume_(volume), file_(std::move(file)) {}
  // False at the end. The view holds until the next call.
  Result<bool> Next(std::string_view* payload);
  // Reads to the end; true if there was any frame.
  Result<bool> SkipToEnd();
  [[nodiscard]] uint64_t logical_end() const { return logical_; }
  [[nodiscard]] uint64_t physical_end() const { return physical_; }
  [[nodiscard]] uint32_t last_crc() const { return crc_; }

 private:
  Result<bool> Fill(uint64_t end);  // makes [physical_, end) available; false: beyond the space

  RawVolume& volume_;
  const RawFilePtr file_;
  uint64_t physical_ = 0, logical_ = 0, capacity_ = 0;
  uint32_t crc_ = 0;
  std::string window_;
  uint64_t window_start_ = 0;  // multiple of kBlockSize
};

class FrameWriter {
 public:
  FrameWriter(RawVolume& volume, RawFilePtr file) : volume_(volume), file_(std::move(file)) {}
  // Continues behind the last valid frame.
  Status OpenAtEnd();
  Status Append(std::string_view data);
  // Makes everything appended durable.
  Status Sync();
  // Writes what was appended, without a flush.
  Status WriteOut();
  [[nodiscard]] uint64_t logical_end() const { return logical_ + pending_.size(); }

 private:
  RawVolume& volume_;
  const RawFilePtr file_;
  std::string pending_;  // payload of the next frame
  std::string tail_;     // bytes of the last, partly filled block
  uint64_t physical_ = 0, logical_ = 0;
  uint32_t crc_ = 0;
};

}  // namespace weir
