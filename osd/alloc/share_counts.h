// ShareCounts: how many references more than one each block of the data region has. Blocks with one
// reference, nearly all of them, cost nothing; neighbours with the same count are one entry.
//
// Pure. Units: blocks. Threads: none of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace weir::osd {

struct Extent {
  uint32_t place = 0;
  uint32_t count = 0;
  friend bool operator==(const Extent&, const Extent&) = default;
};

class ShareCounts {
 public:
  // One more reference to each block.
  void Add(Extent extent);
  // One less; returns those blocks that had only one, in order.
  std::vector<Extent> Remove(Extent extent);
  [[nodiscard]] bool IsShared(uint32_t place) const;

  [[nodiscard]] bool empty() const { return runs_.empty(); }
  [[nodiscard]] size_t runs() const { return runs_.size(); }
  // Blocks that would be needed besides, were nothing shared.
  [[nodiscard]] uint64_t extra_blocks() const { return extra_; }

 private:
  struct Run {
    uint32_t end = 0;
    uint32_t extra = 0;
  };
  void SplitAt(uint32_t place);
  void JoinAround(uint32_t begin, uint32_t end);

  std::map<uint32_t, Run> runs_;  // by their first block
  uint64_t extra_ = 0;
};

}  // namespace weir::osd
