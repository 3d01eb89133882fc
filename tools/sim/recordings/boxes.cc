// Boxes in combinations that no profile has.
#include <fmt/format.h>

#include <array>

#include "tools/sim/devices/simple.h"
#include "tools/sim/recordings/mix.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;

template <typename Kind>
Kind Any(Prng* prng, std::initializer_list<Kind> kinds) {
  return kinds.begin()[prng->Uniform(0, kinds.size() - 1)];
}

SchedulerConfig AnyConfig(Prng* prng) {
  SchedulerConfig config = MixConfig("unified");
  config.guarantee = Any(prng, {GuaranteeKind::kNone, GuaranteeKind::kHtb});
  config.surplus = Any(prng, {SurplusKind::kFcfs, SurplusKind::kDsfq, SurplusKind::kCooperative,
                              SurplusKind::kPass});
  config.sharing = Any(prng, {SharingKind::kSingle, SharingKind::kTotal, SharingKind::kHybrid,
                              SharingKind::kHybridH});
  config.gate = Any(prng, {GateKind::kStrict, GateKind::kConserving});
  config.dispatch =
      Any(prng, {DispatchKind::kFifo, DispatchKind::kCscan, DispatchKind::kVc, DispatchKind::kCvc});
  config.cost = Any(prng, {CostKind::kBytes, CostKind::kRequests, CostKind::kDeviceTime});
  config.maximizer = prng->Chance(.5);
  config.depth = Any<uint32_t>(prng, {0, 1, 4, 16});
  config.profile = fmt::format("{} {} {} {} {} {}", ToText(config.guarantee),
                               ToText(config.surplus), ToText(config.sharing), ToText(config.gate),
                               ToText(config.dispatch), ToText(config.cost));
  return config;
}

DeviceFactory AnyDevice(Prng* prng) {
  switch (prng->Uniform(0, 3)) {
    case 0:
      return Flat(kMixRate);
    case 1:
      return Slots(8, kMixRate);
    case 2:
      return Exponential(400);
    default:
      return Slots(3, .6 * kMixRate);
  }
}

void RunBoxes(Session& session, uint64_t seed) {
  Prng prng(seed);
  Cluster cluster(seed);
  session.AddOsd(&cluster, AnyConfig(&prng), AnyDevice(&prng), "", 5000);
  SetMixClasses(&cluster, prng.Chance(.3));
  StartMix(&cluster);
  session.RunTo(&cluster, 10s);
}

}  // namespace

void AddBoxes(std::vector<Workload>* all) {
  constexpr uint64_t kCombinations = 32;
  for (uint64_t seed = 1; seed <= kCombinations; ++seed) {
    Prng prng(seed);
    all->push_back({fmt::format("boxes-{:02}", seed),
                    fmt::format("boxes `{}`, the mix of the profiles", AnyConfig(&prng).profile),
                    [seed](Session& session) { RunBoxes(session, seed); }});
  }
}

}  // namespace weir::sim
