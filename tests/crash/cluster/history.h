// What users of the simulated cluster have done, and what others may therefore see.
//
// Everything that can be looked at, the inode behind a name, the size of a file, its mode, a block
// of it, is a register that one user at a time changes. It has had some values, in an order;
// whoever begins to look may see the last one that was certain then (acknowledged as durable
// before: the floor) or any later one, never an earlier. That is close-to-open for the data, and
// what one machine would do for names. What a crashed user had under way stays possible for good.
// Pure. Threads: one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/ids.h"

namespace weir::crash {

template <typename T>
class Register {
 public:
  explicit Register(T first) : values_{std::move(first)} {}

  // A change that begins; returns its place.
  size_t Begin(T value) {
    values_.push_back(std::move(value));
    return values_.size() - 1;
  }
  // Nothing before that place is seen by who begins to look from now on.
  void Settle(size_t place) { floor_ = std::max(floor_, place); }
  // What was certain since that place is so no more.
  void Unsettle(size_t place) { floor_ = std::min(floor_, place); }
  void Certain(T value) { Settle(Begin(std::move(value))); }
  [[nodiscard]] size_t last() const { return values_.size() - 1; }
  [[nodiscard]] size_t floor() const { return floor_; }
  [[nodiscard]] bool certain() const { return floor_ + 1 == values_.size(); }
  [[nodiscard]] const T& newest() const { return values_.back(); }
  T& at(size_t place) { return values_[place]; }
  [[nodiscard]] const T& ValueAt(size_t place) const { return values_[place]; }
  [[nodiscard]] bool Allows(const T& value, size_t floor) const {
    for (size_t i = floor; i < values_.size(); ++i) {
      if (values_[i] == value) return true;
    }
    return false;
  }
  [[nodiscard]] std::string Describe(size_t floor) const {
    std::string text;
    for (size_t i = floor; i < values_.size(); ++i) {
      text += (i == floor ? "" : ", ") + std::to_string(values_[i]);
    }
    return text;
  }
  template <typename Visit>
  void ForEach(size_t floor, Visit visit) const {
    for (size_t i = floor; i < values_.size(); ++i) visit(values_[i]);
  }

 private:
  std::vector<T> values_;
  size_t floor_ = 0;
};

// A file: blocks of kBlockBytes, each filled by one write with words that say which write and
// where.
class FileHistory {
 public:
  static constexpr uint64_t kBlockBytes = 3000;  // neither of a disk's blocks nor of a stripe's
  static constexpr size_t kBlocks = 24;

  explicit FileHistory(InodeId inode)
      : inode_(inode), size_(0), mode_(0644), blocks_(kBlocks, Register<uint64_t>(0)) {}

  // The places up to which everything is certain, or was when somebody began to look.
  struct Places {
    size_t size = 0;
    size_t mode = 0;
    std::vector<size_t> blocks;
  };
  [[nodiscard]] Places Floors() const;
  [[nodiscard]] Places Newest() const;
  void Settle(const Places& places);
  // What was certain since `after` is as it was before that, but where more is certain by now.
  void Unsettle(const Places& before, const Places& after);
  // Of both the lower ones.
  static Places Lower(Places one, const Places& other);

  // Returns what to write.
  std::string BeginWrite(size_t block, size_t count, uint64_t tag);
  void BeginTruncate(size_t blocks);
  void BeginMode(uint32_t mode) { mode_.Begin(mode); }
  // What the one user who may change it was told, which is certain then. Empty, or what is wrong
  // with it.
  [[nodiscard]] std::string SeeSize(uint64_t size, Places* floors);
  [[nodiscard]] std::string SeeMode(uint32_t mode, Places* floors);
  // Empty, or what is wrong with a size that was seen by somebody who may not see less than
  // `floors`.
  [[nodiscard]] std::string CheckSize(uint64_t size, const Places& floors) const;
  [[nodiscard]] std::string CheckMode(uint32_t mode, const Places& floors) const;
  // Empty, or what is wrong with bytes that were read from a block on by somebody who may not see
  // less than `floors`.
  [[nodiscard]] std::string Check(size_t block, uint64_t length, const std::string& bytes,
                                  const Places& floors) const;
  [[nodiscard]] InodeId inode() const { return inode_; }
  bool unlinked = false;  // or on the way to be

 private:
  [[nodiscard]] std::string CheckLength(uint64_t begin, uint64_t length, uint64_t got,
                                        size_t floor) const;

  const InodeId inode_;
  Register<uint64_t> size_;
  Register<uint32_t> mode_;
  std::vector<Register<uint64_t>> blocks_;  // tags; 0: zeros
};

}  // namespace weir::crash
