// Weighted rendezvous hashing (Schindelhauer and Schomaker 2005; score -w / ln u): every OSD draws
// a score for each slot from a hash of its own, the best scores win. An OSD that joins takes a slot
// only where its score beats one of the winners, which happens for exactly its share.
#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/check.h"
#include "common/placement/cluster_map.h"

namespace weir {
namespace {

struct Scored {
  double score;
  OsdId osd;
};

bool Better(const Scored& a, const Scored& b) {
  return a.score != b.score ? a.score > b.score : a.osd < b.osd;
}

double Score(PoolId pool, uint32_t slot, const PlacementCandidate& candidate) {
  const uint64_t hash = MixHash(MixHash(pool.value, slot), candidate.osd.value);
  const double u = (static_cast<double>(hash >> 11) + 0.5) * 0x1.0p-53;  // in (0, 1)
  return -candidate.weight / std::log(u);
}

}  // namespace

std::vector<Chain> ComputeChains(PoolId pool, uint32_t slots, uint32_t replicas,
                                 const std::vector<PlacementCandidate>& candidates) {
  WEIR_CHECK(replicas >= 1 && replicas <= candidates.size(), "fewer OSDs than replicas");
  std::vector<Chain> chains(slots);
  std::vector<Scored> scored(candidates.size());
  for (uint32_t slot = 0; slot < slots; ++slot) {
    for (size_t i = 0; i < candidates.size(); ++i) {
      WEIR_CHECK(candidates[i].weight > 0, "a placement weight must be positive");
      scored[i] = {Score(pool, slot, candidates[i]), candidates[i].osd};
    }
    std::partial_sort(scored.begin(), scored.begin() + replicas, scored.end(), Better);
    for (uint32_t r = 0; r < replicas; ++r) {
      chains[slot].members.push_back({scored[r].osd, 0, replication::MemberState::kServing});
    }
  }
  return chains;
}

void ReplaceChains(std::vector<Chain>* chains, std::vector<Chain> next) {
  for (size_t slot = 0; slot < next.size() && slot < chains->size(); ++slot) {
    Chain& old = (*chains)[slot];
    if (old.empty()) continue;
    const bool same = std::equal(old.members.begin(), old.members.end(), next[slot].members.begin(),
                                 next[slot].members.end(),
                                 [](const auto& a, const auto& b) { return a.osd == b.osd; });
    if (same) {
      next[slot] = std::move(old);
    } else {
      next[slot].version = old.version + 1;
    }
  }
  *chains = std::move(next);
}

}  // namespace weir
