#include "tests/crash/cluster/history.h"

#include <cstring>

namespace weir::crash {
namespace {

constexpr uint64_t kWord = 8;

// What a write leaves at that offset of the file.
uint64_t WordOf(uint64_t tag, uint64_t offset) {
  return tag == 0 ? 0 : tag << 24 | offset / kWord;
}

}  // namespace

FileHistory::Places FileHistory::Floors() const {
  Places places{size_.floor(), mode_.floor(), {}};
  for (const auto& block : blocks_) places.blocks.push_back(block.floor());
  return places;
}

FileHistory::Places FileHistory::Newest() const {
  Places places{size_.last(), mode_.last(), {}};
  for (const auto& block : blocks_) places.blocks.push_back(block.last());
  return places;
}

void FileHistory::Settle(const Places& places) {
  size_.Settle(places.size);
  mode_.Settle(places.mode);
  for (size_t i = 0; i < kBlocks; ++i) blocks_[i].Settle(places.blocks[i]);
}

void FileHistory::Unsettle(const Places& before, const Places& after) {
  if (size_.floor() == after.size) size_.Unsettle(before.size);
  if (mode_.floor() == after.mode) mode_.Unsettle(before.mode);
  for (size_t i = 0; i < kBlocks; ++i) {
    if (blocks_[i].floor() == after.blocks[i]) blocks_[i].Unsettle(before.blocks[i]);
  }
}

FileHistory::Places FileHistory::Lower(Places one, const Places& other) {
  one.size = std::min(one.size, other.size);
  one.mode = std::min(one.mode, other.mode);
  for (size_t i = 0; i < kBlocks; ++i) one.blocks[i] = std::min(one.blocks[i], other.blocks[i]);
  return one;
}

std::string FileHistory::BeginWrite(size_t block, size_t count, uint64_t tag) {
  std::string bytes(count * kBlockBytes, '\0');
  const uint64_t begin = block * kBlockBytes;
  for (uint64_t at = 0; at < bytes.size(); at += kWord) {
    const uint64_t word = WordOf(tag, begin + at);
    std::memcpy(&bytes[at], &word, kWord);
  }
  for (size_t i = block; i < block + count; ++i) blocks_[i].Begin(tag);
  size_.Begin(std::max(size_.newest(), begin + bytes.size()));
  return bytes;
}

void FileHistory::BeginTruncate(size_t blocks) {
  for (size_t i = blocks; i < kBlocks; ++i) blocks_[i].Begin(0);
  size_.Begin(blocks * kBlockBytes);
}

std::string FileHistory::SeeSize(uint64_t size, Places* floors) {
  if (!size_.Allows(size, floors->size)) {
    return "its size is " + std::to_string(size) + " and may be " + size_.Describe(floors->size);
  }
  size_.Certain(size);
  floors->size = size_.floor();
  return "";
}

std::string FileHistory::SeeMode(uint32_t mode, Places* floors) {
  std::string wrong = CheckMode(mode, *floors);
  if (!wrong.empty()) return wrong;
  mode_.Certain(mode);
  floors->mode = mode_.floor();
  return "";
}

std::string FileHistory::CheckMode(uint32_t mode, const Places& floors) const {
  if (mode_.Allows(mode, floors.mode)) return "";
  return "inode " + std::to_string(inode_.value) + ": its mode is " + std::to_string(mode) +
         " and may be " + mode_.Describe(floors.mode);
}

std::string FileHistory::CheckLength(uint64_t begin, uint64_t length, uint64_t got,
                                     size_t floor) const {
  uint64_t least = UINT64_MAX, most = 0;
  size_.ForEach(floor, [&](uint64_t size) {
    const uint64_t there = size <= begin ? 0 : std::min(length, size - begin);
    least = std::min(least, there);
    most = std::max(most, there);
  });
  if (got >= least && got <= most) return "";
  return "a read of " + std::to_string(length) + " bytes at " + std::to_string(begin) + " got " +
         std::to_string(got) + ", although sizes may be " + size_.Describe(floor);
}

std::string FileHistory::CheckSize(uint64_t size, const Places& floors) const {
  const std::string wrong = CheckLength(0, UINT64_MAX, size, floors.size);
  return wrong.empty() ? "" : "inode " + std::to_string(inode_.value) + ": " + wrong;
}

std::string FileHistory::Check(size_t block, uint64_t length, const std::string& bytes,
                               const Places& floors) const {
  const std::string file = "inode " + std::to_string(inode_.value) + ": ";
  const uint64_t begin = block * kBlockBytes;
  std::string wrong = CheckLength(begin, length, bytes.size(), floors.size);
  if (!wrong.empty()) return file + wrong;
  for (uint64_t at = 0; at + kWord <= bytes.size(); at += kWord) {
    uint64_t word = 0;
    std::memcpy(&word, &bytes[at], kWord);
    const size_t index = (begin + at) / kBlockBytes;
    bool allowed = false;
    blocks_[index].ForEach(floors.blocks[index], [&](uint64_t tag) {
      allowed = allowed || WordOf(tag, begin + at) == word;
    });
    if (allowed) continue;
    return file + "block " + std::to_string(index) + " at " + std::to_string(begin + at) +
           " is of write " + std::to_string(word >> 24) + " for " +
           std::to_string((word & 0xffffff) * kWord) + ", and may be of " +
           blocks_[index].Describe(floors.blocks[index]);
  }
  return "";
}

}  // namespace weir::crash
