#include "common/base/prng.h"

#include <bit>
#include <cmath>
#include <random>

#include "common/base/check.h"
#include "common/base/ids.h"

namespace weir {

Prng::Prng(uint64_t seed) {
  for (uint64_t& word : state_) {
    word = MixHash(seed);
    seed += 0x9e3779b97f4a7c15ULL;
  }
}

uint64_t Prng::Next() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

uint64_t Prng::Uniform(uint64_t low, uint64_t high) {
  WEIR_CHECK(low <= high, "empty range");
  const uint64_t span = high - low + 1;
  if (span == 0) return Next();
  // Lemire's multiply-shift; the bias below 2^-64 * span does not matter for tests.
  __extension__ using Wide = unsigned __int128;
  return low + static_cast<uint64_t>((static_cast<Wide>(Next()) * span) >> 64);
}

double Prng::Real() {
  return static_cast<double>(Next() >> 11) * 0x1.0p-53;
}

double Prng::Exponential(double mean) {
  return -mean * std::log1p(-Real());
}

namespace {
thread_local ScopedSeeds* scoped_seeds = nullptr;
}  // namespace

ScopedSeeds::ScopedSeeds(uint64_t seed) : prng_(seed), outer_(scoped_seeds) {
  scoped_seeds = this;
}

ScopedSeeds::~ScopedSeeds() {
  scoped_seeds = outer_;
}

uint64_t RandomSeed() {
  if (scoped_seeds != nullptr) return scoped_seeds->prng_.Next();
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

}  // namespace weir
