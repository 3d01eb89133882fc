// Prng: xoshiro256** seeded through splitmix64. Fast, small, the same sequence on every machine.
// Not for secrets. Threads: one owner.
#pragma once

#include <cstdint>

namespace weir {

class Prng {
 public:
  explicit Prng(uint64_t seed);
  uint64_t Next();
  // Uniform in [low, high], both included. Requires: low <= high.
  uint64_t Uniform(uint64_t low, uint64_t high);
  // Uniform in [0, 1).
  double Real();
  // True with this probability.
  bool Chance(double probability) { return Real() < probability; }
  // Exponential with this mean.
  double Exponential(double mean);

 private:
  uint64_t state_[4];
};

// A seed from the operating system, for ids that must differ between runs.
uint64_t RandomSeed();

// While one lives, RandomSeed() on the thread that made it draws from `seed` instead: a simulation
// whose ids must be the same in every run. They end in the reverse order of their beginning.
class ScopedSeeds {
 public:
  explicit ScopedSeeds(uint64_t seed);
  ~ScopedSeeds();
  ScopedSeeds(const ScopedSeeds&) = delete;
  ScopedSeeds& operator=(const ScopedSeeds&) = delete;

 private:
  friend uint64_t RandomSeed();
  Prng prng_;
  ScopedSeeds* const outer_;
};

}  // namespace weir
