#include "common/disk/raw_log.h"

#include <algorithm>

#include "common/base/crc32c.h"

namespace weir {
namespace {

constexpr uint64_t kReadBytes = 256 << 10;
constexpr size_t kPendingMax = 1 << 20;  // of unsynced appends kept in memory

uint32_t FrameCrc(raw::FrameHeader header, std::string_view payload) {
  header.crc = 0;
  return Crc32c(payload.data(), payload.size(), Crc32c(&header, sizeof header));
}

}  // namespace

Result<bool> FrameReader::Fill(uint64_t end) {
  if (capacity_ == 0) capacity_ = volume_.CapacityOf(*file_);
  if (end > capacity_) return false;
  const uint64_t keep_from = physical_ / kBlockSize * kBlockSize;
  if (keep_from > window_start_ + kReadBytes) {  // drop what was consumed
    window_.erase(0, std::min<uint64_t>(keep_from - window_start_, window_.size()));
    window_start_ = keep_from;
  }
  while (window_start_ + window_.size() < end) {
    const uint64_t at = window_start_ + window_.size();
    Buffer piece = Buffer::Aligned(std::min(kReadBytes, capacity_ - at));
    WEIR_RETURN_IF_ERROR(volume_.Read(*file_, at, piece));
    window_.append(piece.view());
  }
  return true;
}

Result<bool> FrameReader::Next(std::string_view* payload) {
  raw::FrameHeader header;
  WEIR_ASSIGN_OR_RETURN(const bool has_header, Fill(physical_ + sizeof header));
  if (!has_header) return false;
  std::memcpy(&header, window_.data() + (physical_ - window_start_), sizeof header);
  if (header.fsid != volume_.fsid() || header.ino != file_->ino || header.offset != logical_ ||
      header.prev_crc != crc_) {
    return false;
  }
  WEIR_ASSIGN_OR_RETURN(const bool has_payload, Fill(physical_ + sizeof header + header.length));
  if (!has_payload) return false;
  const std::string_view bytes(window_.data() + (physical_ - window_start_) + sizeof header,
                               header.length);
  if (FrameCrc(header, bytes) != header.crc) return false;
  physical_ += sizeof header + header.length;
  logical_ += header.length;
  crc_ = header.crc;
  *payload = bytes;
  return true;
}

Result<bool> FrameReader::SkipToEnd() {
  std::string_view payload;
  for (;;) {
    WEIR_ASSIGN_OR_RETURN(const bool more, Next(&payload));
    if (!more) return physical_ > 0;
  }
}

Status FrameWriter::OpenAtEnd() {
  FrameReader reader(volume_, file_);
  WEIR_ASSIGN_OR_RETURN(const bool any, reader.SkipToEnd());
  if (!any) return {};
  physical_ = reader.physical_end();
  logical_ = reader.logical_end();
  crc_ = reader.last_crc();
  const size_t used = physical_ % kBlockSize;
  if (used == 0) return {};
  Buffer block = Buffer::Aligned(kBlockSize);
  WEIR_RETURN_IF_ERROR(volume_.Read(*file_, physical_ - used, block));
  tail_.assign(block.view().substr(0, used));
  return {};
}

Status FrameWriter::Append(std::string_view data) {
  pending_.append(data);
  return pending_.size() > kPendingMax ? WriteOut() : Status();
}

Status FrameWriter::WriteOut() {
  if (pending_.empty()) return {};
  raw::FrameHeader header{.fsid = volume_.fsid(),
                          .ino = file_->ino,
                          .offset = logical_,
                          .length = static_cast<uint32_t>(pending_.size()),
                          .prev_crc = crc_,
                          .crc = 0,
                          .reserved = 0};
  header.crc = FrameCrc(header, pending_);
  const uint64_t start = physical_ - tail_.size();
  const uint64_t used = tail_.size() + sizeof header + pending_.size();
  const uint64_t rounded = (used + kBlockSize - 1) / kBlockSize * kBlockSize;
  WEIR_RETURN_IF_ERROR(volume_.Reserve(file_, start + rounded));
  Buffer out = Buffer::Aligned(rounded);
  std::memcpy(out.data(), tail_.data(), tail_.size());
  std::memcpy(out.data() + tail_.size(), &header, sizeof header);
  std::memcpy(out.data() + tail_.size() + sizeof header, pending_.data(), pending_.size());
  std::memset(out.data() + used, 0, rounded - used);
  WEIR_RETURN_IF_ERROR(volume_.Write(*file_, start, out));
  const size_t tail = used % kBlockSize;
  tail_.assign(reinterpret_cast<const char*>(out.data()) + used - tail, tail);
  physical_ += sizeof header + pending_.size();
  logical_ += pending_.size();
  crc_ = header.crc;
  pending_.clear();
  volume_.SetSize(file_, logical_);
  return {};
}

Status FrameWriter::Sync() {
  WEIR_RETURN_IF_ERROR(WriteOut());
  // Where the frames lie must be durable too; that changes once in many megabytes. A Commit may
  // find its work done by another thread whose flush began before our write, hence the Flush.
  if (volume_.IsDirty(*file_)) WEIR_RETURN_IF_ERROR(volume_.Commit());
  return volume_.Flush();
}

}  // namespace weir
