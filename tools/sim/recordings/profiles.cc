// Every row of the profile table under one mix of classes, alone and over three OSDs.
#include <fmt/format.h>

#include "tools/sim/devices/simple.h"
#include "tools/sim/recordings/mix.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kProfiles[] = {"noqos",       "odis",          "sfq", "dsfq-total",
                                          "dsfq-hybrid", "dsfq-hybrid-h", "vd",  "vc",
                                          "cvc",         "cscan",         "baa", "unified"};

void RunAlone(Session& session, std::string_view profile) {
  Cluster cluster(1);
  session.AddOsd(&cluster, MixConfig(profile), Slots(4, kMixRate));
  SetMixClasses(&cluster, profile == "vd");
  StartMix(&cluster);
  session.RunTo(&cluster, 20s);
}

// The same classes on three OSDs, most of it on the first, through two coordinators; requests of
// one class more come to each in turn, so that all of them hear of the others.
void RunOverThree(Session& session, std::string_view profile) {
  Cluster cluster(2);
  for (size_t i = 0; i < 3; ++i) {
    const DeviceFactory device = Slots(4, kMixRate);
    if (i < 2) {
      session.AddOsd(&cluster, MixConfig(profile), device, fmt::format("osd{}", i), 7000);
    } else {
      cluster.AddOsd(MixConfig(profile), device);
    }
  }
  SetMixClasses(&cluster);
  StartMix(&cluster, 0, 0);
  StartMix(&cluster, 1, 0);
  const ClassId everywhere{21};
  cluster.SetClass(Reserved(everywhere, 6 * kMiB, 1, ReservationScope::kCluster));
  for (const ClassId id : {everywhere, kPlainClass}) {
    const Shape shape = MixShape(id, 16 * kKiB, 64 * kKiB, .3, .2);
    cluster.Start({.class_id = id,
                   .outstanding = 24,
                   .coordinator = 1,
                   .shape = [shape](Prng& prng, uint64_t n, Io* io) {
                     shape(prng, n, io);
                     io->osd = prng.Chance(.6) ? 0 : prng.Uniform(1, 2);
                   }});
  }
  session.RunTo(&cluster, 20s);
}

}  // namespace

void AddProfiles(std::vector<Workload>* all) {
  for (const std::string_view profile : kProfiles) {
    all->push_back({fmt::format("profile-{}", profile),
                    fmt::format("profile `{}`: promise, weight, limit, bound, bursts, best effort "
                                "and a background class on one OSD",
                                profile),
                    [profile](Session& session) { RunAlone(session, profile); }});
  }
  for (const std::string_view profile :
       {"dsfq-total", "dsfq-hybrid", "dsfq-hybrid-h", "baa", "odis", "unified"}) {
    all->push_back({fmt::format("three-{}", profile),
                    fmt::format("profile `{}` over three OSDs, 60/20/20: delays (`elsewhere`), "
                                "promises over all OSDs",
                                profile),
                    [profile](Session& session) { RunOverThree(session, profile); }});
  }
}

}  // namespace weir::sim
