// Theorems 1 and 2 of DSFQ as a watcher of a run: over every interval in which two streams are
// both backlogged at a brick, how far does the normalised difference of their service move, and
// how far may it (osd/qos/RULES.md O1, O2)?
//
//   X(t) = W_f / phi_f - W_g / phi_g                  max X - min X <= bound
//   Theorem 1, W at this brick:   (D + 1) * (cmax_f / phi_f + cmax_g / phi_g)
//   Theorem 2, W over all bricks: ((D + Ds) * N_f + 1) * cmax_f / phi_f + the same of g
//                                 + (Ds + 1) * (bmax_f / phi_f + bmax_g / phi_g)
//
// D: depth of the device and what may be reordered before it; Ds: the most requests of one stream
// queued at the brick in the interval (A8); N: bricks of the stream; cmax: its largest request on
// any brick; bmax: its largest batch cost (delay + cost) at this brick. Costs in tokens.
#pragma once

#include <map>
#include <vector>

#include "tools/sim/engine/cluster.h"

namespace weir::sim {

enum class Theorem : uint8_t { kOne, kTwo };

class FairnessBound {
 public:
  struct Stream {
    ClassId id;
    double weight = 1;
  };

  // Watches from now on; takes the observers of the OSDs. `depth`: D, window included.
  FairnessBound(Cluster* cluster, Theorem theorem, const std::vector<Stream>& streams, int depth);
  FairnessBound(const FairnessBound&) = delete;
  FairnessBound& operator=(const FairnessBound&) = delete;

  // Closes the intervals that are still open. The largest share of its bound that any interval
  // used up: above 1 the theorem is broken.
  double WorstPart();
  [[nodiscard]] uint64_t intervals() const { return intervals_; }

 private:
  struct AtBrick {  // one stream at one brick
    int queued = 0;
    double served = 0;
    double largest_batch = 0;
    bool used = false;
  };
  struct Pair {  // two streams at one brick
    bool open = false;
    double low = 0, high = 0;
    int largest_queue = 0;
  };
  struct State {
    double weight = 1;
    double served = 0;
    double largest_cost = 0;
    std::vector<AtBrick> bricks;
  };

  size_t IndexOf(ClassId id) const;
  void Watch(size_t brick);
  void Update(size_t brick);
  void Close(size_t brick, size_t f, size_t g, Pair* pair);
  [[nodiscard]] double Difference(size_t brick, size_t f, size_t g) const;
  [[nodiscard]] double BoundOf(size_t brick, size_t f, size_t g, const Pair& pair) const;
  [[nodiscard]] int BricksOf(const State& state) const;

  Cluster* cluster_;
  Theorem theorem_;
  double depth_;
  std::map<ClassId, size_t> index_;
  std::vector<State> streams_;
  std::vector<std::vector<Pair>> pairs_;  // [brick][f * n + g]
  double worst_ = 0;
  uint64_t intervals_ = 0;
};

}  // namespace weir::sim
