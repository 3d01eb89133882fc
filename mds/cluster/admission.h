// Admission over the whole map: what each OSD has promised and whether more fits. Pure.
//
//   additive   the worst case of every contract, in one ledger per OSD (common/qos/booking.h):
//              best-effort minimum + bookings <= G0 (AQuA §5.1). Virtual disks may take a disk
//              whole, as theirs (Yan and Jiang) sum to 1 without the minimum.
//   measured   Stonehenge's five steps with what each OSD measured
//   (common/qos/contract_admission.h)
//              among the classes that were admitted so; promises weighed with their worst case keep
//              all of it.
//
// All OSDs admit or none. Units: bytes per second of the token rate.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/placement/cluster_map.h"
#include "common/qos/booking.h"
#include "common/qos/contract_admission.h"

namespace weir::mds {

// What one OSD measured lately, by percent.
struct OsdMeasures {
  bool stable = false;
  std::vector<double> service_parts;  // [i]: Q_service((i + 1) %)
  std::vector<double> io_rates;
  std::set<ClassId> measured;  // classes that are part of it

  [[nodiscard]] ServiceMeasures View() const;  // valid as long as this
};
using MeasuresByOsd = std::map<OsdId, OsdMeasures>;

// Which of its contracts a class asks for; the others were admitted before.
enum class Wanted : uint8_t { kReservation, kBound, kDisk };

// Best-effort minimum plus what the classes but `besides` book on this OSD; system.* books nothing.
uint64_t PromisedOn(const ClusterMap& map, const OsdEntry& osd, ClassId besides);

// Whether a class that is `before` would book more on any OSD as `now`, or more firmly. Who asks
// for less, or for the same again, is never refused.
bool AsksForMore(const ClusterMap& map, const ClassSpec& before, const ClassSpec& now,
                 Wanted wanted);

// Whether `spec`, as it would be, fits on every OSD. kRefused with one line: "cannot reserve
// 200MiB/s for 'gold' on osd.1: 160MiB/s of 180MiB/s already promised (largest that fits:
// 20MiB/s)".
Status AdmitClass(const ClusterMap& map, const ClassSpec& spec, Wanted wanted,
                  const MeasuresByOsd& measures);

// Whether `changed`, which shall replace the OSD of that id, still keeps what is promised on it.
Status AdmitOsdChange(const ClusterMap& map, const OsdEntry& changed);

// Whether the class may be promised so many bytes beside what others were: kRefused as above.
Status AdmitCapacity(const ClusterMap& map, const ClassSpec& spec, uint64_t bytes);

bool IsSystemClass(const ClassSpec& spec);

// The parts of AdmitClass. One OSD's answer:
struct OsdDecision {
  bool admitted = false;
  uint64_t promised = 0;  // to others
  uint64_t limit = 0;     // of what may be promised
  double needed = 0;      // requests per second, of a bound
  [[nodiscard]] uint64_t room() const { return limit > promised ? limit - promised : 0; }
};
OsdDecision DecideAdditive(const ClusterMap& map, const OsdEntry& osd, const ClassSpec& spec,
                           Wanted wanted);
OsdDecision DecideMeasured(const ClusterMap& map, const OsdEntry& osd, const ClassSpec& spec,
                           Wanted wanted, const OsdMeasures& measures);
uint64_t BookedOf(const Booking& booking, Wanted wanted);

// "reserve 200MiB/s for 'gold'", "promise 20ms@95% to 'gold'".
std::string Describe(const ClassSpec& spec, Wanted wanted);
// Why that OSD says no and what it could grant.
std::string WhyRefused(const ClusterMap& map, const OsdEntry& osd, const ClassSpec& spec,
                       Wanted wanted, const OsdDecision& decision);

}  // namespace weir::mds
