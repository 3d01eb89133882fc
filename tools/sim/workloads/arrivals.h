// When requests come, for open loops (LoadOptions::gap): each function returns a generator of waits
// that keeps its own state, one per load.
#pragma once

#include <functional>
#include <vector>

#include "common/base/prng.h"
#include "common/base/time.h"

namespace weir::sim {

using Gap = std::function<Duration(Prng& prng)>;

Gap Poisson(double per_s);
// Poisson at `per_s` for `on`, nothing for `off`, and so on.
Gap PoissonOnOff(double per_s, Duration on, Duration off);
// Self-similar arrivals, the b-model: of all that comes in an interval the part `bias` comes in one
// half of it (which one by chance), again and again. 0.5 is Poisson-like, 0.75 bursty. `per_s` is
// the mean over `length`; after that nothing comes.
Gap BModel(double per_s, double bias, Duration length, Prng* prng);
// At these moments, in seconds from the start, ascending.
Gap AtMoments(std::vector<double> seconds);

}  // namespace weir::sim
