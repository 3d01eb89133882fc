// Cscan: the elevator of ODIS (AQuA §5.2; algorithms §4.2): of the requests in the window the
// smallest address at or after the head's position, else the smallest of all.
//
// The window holds 2 D requests (A12). A request that others have passed too often goes first: a
// stream of fresh, ever higher addresses would otherwise hold back a low one until the disk ends.
#pragma once

#include <vector>

#include "osd/qos/dispatch/dispatch.h"

namespace weir::osd::qos {

class Cscan final : public Dispatch {
 public:
  [[nodiscard]] size_t Capacity(uint32_t depth) const override { return 2 * size_t{depth}; }

 private:
  static constexpr uint64_t kLeastPatience = 8;  // departures

  struct Entry {
    uint64_t lba;
    uint64_t sequence;
    uint64_t goes_first_at;  // count of departures
    Request* request;
  };

  void DoAdd(Request* request) override;
  void DoRemove(Request* request) override;
  Request* DoPeek() override;
  std::vector<Entry>::iterator Find(uint64_t lba, uint64_t sequence);

  std::vector<Entry> by_address_;
  uint64_t head_ = 0;  // where the last request ended
  uint64_t departures_ = 0;
};

}  // namespace weir::osd::qos
