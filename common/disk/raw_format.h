// Bytes of a raw volume: the few files of a RocksDB on a region of a device. Everything is
// little-endian; the region is addressed in bytes from its start, and goes on at least as far as
// the superblock says.
//
//   0        superblock 0, superblock 1   4 KiB each; written alternately, highest valid epoch wins
//   8 KiB    journal half 0, half 1       journal_bytes each; the superblock names the active one
//   then     units of unit_bytes          owned by files
//
// Journal: records of RecordHeader + ops, each padded to 4 KiB, seq 0, 1, 2 ... The first record of
// a half is a snapshot of all files. Replay stops at the first record that does not fit. Ops:
//   1 set file   ino u64, size u64, framed u8, name u16 + bytes, extents u32 x {unit u32, count
//   u32} 2 delete     ino u64
//
// A framed file (a write-ahead log) does not journal its size: its bytes lie in frames of
// FrameHeader + payload, back to back, and its end is the first frame that does not fit. A sync is
// thus one write and one flush. prev_crc chains the frames, so that nothing older is ever taken for
// a continuation.
//
// fsid is random per format and part of every structure: a former life is never replayed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::raw {

inline constexpr uint64_t kSuperMagic = 0x314c4f5652494557;  // "WEIRVOL1"
inline constexpr uint64_t kRecordMagic = 0x3143455252494557;
inline constexpr uint32_t kVersion = 1;
inline constexpr uint64_t kJournalStart = 8192;

struct Superblock {
  uint64_t magic;
  uint32_t version;
  uint32_t crc;  // of the whole 4 KiB block with this field zero
  uint64_t fsid;
  uint64_t epoch;
  uint64_t region_bytes;
  uint64_t journal_bytes;  // of one half
  uint64_t unit_bytes;
  uint64_t first_ino;
  uint32_t active_half;
  uint32_t reserved;  // zero; the rest of the block too
};
static_assert(sizeof(Superblock) == 72);
static_assert(offsetof(Superblock, fsid) == 16);

struct RecordHeader {
  uint64_t magic;
  uint64_t fsid;
  uint64_t epoch;
  uint64_t seq;
  uint32_t length;  // of the ops
  uint32_t crc;     // of the header with this field zero, then the ops
};
static_assert(sizeof(RecordHeader) == 40);

enum class OpKind : uint8_t { kSetFile = 1, kDelete = 2 };

struct FrameHeader {
  uint64_t fsid;
  uint64_t ino;
  uint64_t offset;  // of the payload in the file
  uint32_t length;
  uint32_t prev_crc;  // of the frame before; 0 for the first
  uint32_t crc;       // of the header with this field zero, then the payload
  uint32_t reserved;
};
static_assert(sizeof(FrameHeader) == 40);

}  // namespace weir::raw
