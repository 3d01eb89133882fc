#include "common/disk/raw_volume.h"

#include <algorithm>

#include "common/disk/le_bytes.h"
#include "common/disk/raw_log.h"

namespace weir {
namespace {

constexpr uint64_t kPreallocUnits = 16;  // per step of a growing log

}  // namespace

uint64_t RawVolume::JournalOffset(uint32_t half) const {
  return region_.offset + raw::kJournalStart + half * super_.journal_bytes;
}

uint64_t RawVolume::UnitOffset(uint32_t unit) const {
  return JournalOffset(2) + unit * super_.unit_bytes;
}

RawFilePtr RawVolume::Find(const std::string& name) {
  std::lock_guard lock(mutex_);
  const auto it = files_.find(name);
  return it == files_.end() ? nullptr : it->second;
}

RawFilePtr RawVolume::Create(const std::string& name, bool framed) {
  std::lock_guard lock(mutex_);
  if (const auto it = files_.find(name); it != files_.end()) RemoveLocked(RawFilePtr(it->second));
  auto file = std::make_shared<RawFile>();
  file->ino = next_ino_++;
  file->name = name;
  file->framed = framed;
  file->table = IsTable(name);
  files_[name] = file;
  MarkDirty(file);
  return file;
}

Status RawVolume::Remove(const std::string& name) {
  std::lock_guard lock(mutex_);
  const auto it = files_.find(name);
  if (it == files_.end()) return {ErrorCode::kNotFound, name + ": no such file on the volume"};
  RemoveLocked(RawFilePtr(it->second));
  return {};
}

void RawVolume::RemoveLocked(const RawFilePtr& file) {
  files_.erase(file->name);
  std::erase(dirty_, file);
  removed_.push_back(file->ino);
  removed_files_.push_back(file);
}

Status RawVolume::Rename(const std::string& from, const std::string& to) {
  {
    std::lock_guard lock(mutex_);
    const auto it = files_.find(from);
    if (it == files_.end()) return {ErrorCode::kNotFound, from + ": no such file on the volume"};
    const RawFilePtr file = it->second;
    if (const auto old = files_.find(to); old != files_.end())
      RemoveLocked(RawFilePtr(old->second));
    files_.erase(from);
    file->name = to;
    files_[to] = file;
    MarkDirty(file);
  }
  return Commit();
}

std::vector<std::string> RawVolume::List(const std::string& prefix) {
  std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (auto it = files_.lower_bound(prefix); it != files_.end() && it->first.starts_with(prefix);
       ++it) {
    names.push_back(it->first.substr(prefix.size()));
  }
  return names;
}

uint64_t RawVolume::SizeOf(const RawFile& file) {
  std::lock_guard lock(mutex_);
  return file.size;
}

void RawVolume::SetSize(const RawFilePtr& file, uint64_t size) {
  std::lock_guard lock(mutex_);
  if (file->size == size) return;
  file->size = size;
  if (!file->framed) MarkDirty(file);
}

bool RawVolume::IsDirty(const RawFile& file) {
  std::lock_guard lock(mutex_);
  return file.dirty;
}

void RawVolume::MarkDirty(const RawFilePtr& file) {
  const auto it = files_.find(file->name);
  if (file->queued || it == files_.end() || it->second != file) return;  // removed: nobody asks
  file->queued = file->dirty = true;
  dirty_.push_back(file);
}

// Removed files count as gone: whoever needs their place has their removal journalled first.
uint64_t RawVolume::FreeBytesLocked() const {
  uint64_t units = free_units_;
  for (const auto* gone : {&removed_files_, &reclaimable_}) {
    for (const RawFilePtr& file : *gone) {
      if (file.use_count() > 1) continue;
      for (const RawExtent& extent : file->extents) units += extent.count;
    }
  }
  return units * super_.unit_bytes;
}

uint64_t RawVolume::free_bytes() {
  std::lock_guard lock(mutex_);
  return FreeBytesLocked();
}

uint64_t RawVolume::total_bytes() {
  std::lock_guard lock(mutex_);
  return units_.size() * super_.unit_bytes;
}

uint64_t RawVolume::CapacityOf(const RawFile& file) {
  std::lock_guard lock(mutex_);
  uint64_t units = 0;
  for (const RawExtent& extent : file.extents) units += extent.count;
  return units * super_.unit_bytes;
}

// Logs live at one end, tables come from the other. On a disk with a head the logs are at the high
// end, next to the data that lies behind the region and is written with them; on others at the low
// end, which stays where it is when the volume grows.
uint64_t RawVolume::AllocateUnits(RawFile& file, uint64_t units) {
  uint64_t taken = 0;
  const auto take = [&](uint32_t unit) {
    units_[unit] = true;
    --free_units_;
    ++taken;
    if (!file.extents.empty() && file.extents.back().unit + file.extents.back().count == unit) {
      ++file.extents.back().count;
    } else {
      file.extents.push_back({unit, 1});
    }
  };
  // The run that is long enough and nearest to that end, else whatever there is.
  const auto count = static_cast<uint32_t>(units_.size());
  const bool high = file.framed == LogsAreHigh(device_);
  uint32_t run = 0, found = count;
  for (uint32_t unit = 0; unit < count; ++unit) {
    run = units_[unit] ? 0 : run + 1;
    if (run < units) continue;
    found = unit + 1 - static_cast<uint32_t>(units);
    if (!high) break;
  }
  for (uint32_t unit = found; unit < count && taken < units; ++unit) take(unit);
  for (uint32_t unit = 0; unit < count && taken < units; ++unit) {
    if (!units_[unit]) take(unit);
  }
  return taken;
}

void RawVolume::ReleaseUnits(const RawFile& file) {
  for (const RawExtent& extent : file.extents) {
    for (uint32_t i = 0; i < extent.count; ++i) units_[extent.unit + i] = false;
    free_units_ += extent.count;
  }
}

void RawVolume::ReclaimLocked() {
  std::erase_if(reclaimable_, [this](const RawFilePtr& file) {
    if (file.use_count() > 1) return false;
    ReleaseUnits(*file);
    return true;
  });
}

Status RawVolume::Reserve(const RawFilePtr& file, uint64_t end) {
  const uint64_t capacity = CapacityOf(*file);
  if (end <= capacity) return {};
  if (growth_ == Growth::kGrows) GrowIfHalfFull();
  const uint64_t missing = (end - capacity + super_.unit_bytes - 1) / super_.unit_bytes;
  uint64_t wanted = file->framed ? std::max(missing, kPreallocUnits) : missing;
  for (int attempt = 0; attempt < 2; ++attempt) {
    {
      std::lock_guard lock(mutex_);
      ReclaimLocked();
      if (free_units_ < wanted) wanted = missing;
      if (free_units_ >= wanted) {
        WEIR_CHECK(AllocateUnits(*file, wanted) == wanted);
        MarkDirty(file);
        return {};
      }
      if (removed_.empty()) break;
    }
    WEIR_RETURN_IF_ERROR(Commit());  // removed files give their space back only then
  }
  return {ErrorCode::kNoSpace, device_.name() + ": the metadata region is full"};
}

template <typename Io>
Status RawVolume::ForPieces(const RawFile& file, uint64_t position, const Buffer& buffer, Io io) {
  std::vector<RawExtent> extents;
  {
    std::lock_guard lock(mutex_);
    extents = file.extents;
  }
  size_t moved = 0;
  uint64_t start = 0;  // position in the file of the extent
  for (const RawExtent& extent : extents) {
    const uint64_t length = extent.count * super_.unit_bytes;
    const uint64_t at = position + moved;
    if (moved < buffer.size() && at < start + length) {
      const size_t piece = std::min<uint64_t>(buffer.size() - moved, start + length - at);
      WEIR_RETURN_IF_ERROR(io(UnitOffset(extent.unit) + (at - start), buffer.Slice(moved, piece)));
      moved += piece;
    }
    start += length;
  }
  if (moved == buffer.size()) return {};
  return {ErrorCode::kIo, file.name + ": access beyond its space"};
}

template <typename Io>
Status RawVolume::Metered(bool write, uint64_t offset, const Buffer& buffer, Io io) {
  std::shared_ptr<IoMeter> meter;
  {
    // Counted under the lock: SetMeter clears what went past before it, and nothing later.
    const std::lock_guard lock(meter_mutex_);
    if (BackgroundThread::IsThis()) meter = meter_;
    if (meter == nullptr) unmetered_bytes_ += buffer.size();
  }
  if (meter == nullptr) return io(offset, buffer);
  for (size_t moved = 0; moved < buffer.size();) {
    const size_t piece = std::min<size_t>(buffer.size() - moved, IoMeter::kPieceBytes);
    void* ticket = meter->Begin({.write = write, .bytes = piece, .offset = offset + moved});
    const Status status = io(offset + moved, buffer.Slice(moved, piece));
    meter->End(ticket);
    WEIR_RETURN_IF_ERROR(status);
    metered_bytes_ += piece;
    moved += piece;
  }
  return {};
}

void RawVolume::SetMeter(std::shared_ptr<IoMeter> meter) {
  const std::lock_guard lock(meter_mutex_);
  meter_ = std::move(meter);
  if (meter_ == nullptr) return;
  metered_bytes_ = 0;
  unmetered_bytes_ = 0;
}

Status RawVolume::Read(const RawFile& file, uint64_t position, Buffer buffer) {
  const bool background = file.table && BackgroundThread::IsThis();
  const auto read = [this](uint64_t at, Buffer piece) {
    return device_.Read(at, std::move(piece));
  };
  return ForPieces(file, position, buffer, [&](uint64_t at, Buffer piece) {
    return background ? Metered(false, at, piece, read) : read(at, std::move(piece));
  });
}

Status RawVolume::Write(const RawFile& file, uint64_t position, const Buffer& buffer) {
  const auto write = [this](uint64_t at, Buffer piece) {
    return device_.Write(at, std::move(piece));
  };
  return ForPieces(file, position, buffer, [&](uint64_t at, Buffer piece) {
    return file.table ? Metered(true, at, piece, write) : write(at, std::move(piece));
  });
}

Status RawVolume::ScanLogs() {
  for (auto& [name, file] : files_) {
    if (!file->framed) continue;
    FrameReader reader(*this, file);
    WEIR_ASSIGN_OR_RETURN(const bool any, reader.SkipToEnd());
    if (any) file->size = reader.logical_end();
  }
  return {};
}

}  // namespace weir
