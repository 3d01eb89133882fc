// Bursty arrivals: the b-model. So many arrivals are split over the two halves of a stretch of time
// in the ratio b : 1 - b (which half gets more is chance), and so on down to slots of some
// milliseconds. b = 0.5 is as even as chance; 0.75 and more is what traces of file servers look
// like.
#pragma once

#include <functional>

#include "common/base/prng.h"
#include "common/base/time.h"

namespace weir::sim {

struct SelfSimilar {
  double rate = 1;  // arrivals per second, in the mean
  double bias = 0.75;
  Duration length = std::chrono::seconds(60);  // nothing comes after that
};

// The waits between arrivals, for LoadOptions::gap.
std::function<Duration(Prng&)> SelfSimilarGaps(const SelfSimilar& model);

}  // namespace weir::sim
