// Admission over the whole map: what each OSD has promised and whether more fits. Pure.
// Units: bytes per second.
#pragma once

#include <cstdint>
#include <string>

#include "common/placement/cluster_map.h"

namespace weir::mds {

// Best-effort minimum plus what the classes but `besides` book on this OSD; system.* books nothing.
uint64_t PromisedOn(const ClusterMap& map, const OsdEntry& osd, ClassId besides);

// kRefused with "cannot reserve 200MiB/s for 'gold' on osd.1: 160MiB/s of 180MiB/s already promised
// (largest that fits: 20MiB/s)".
Status AdmitReservation(const ClusterMap& map, const ClassSpec& spec, const Reservation& wanted);

// Whether `changed`, which shall replace the OSD of that id, still keeps what is promised on it.
Status AdmitOsdChange(const ClusterMap& map, const OsdEntry& changed);

bool IsSystemClass(const ClassSpec& spec);

}  // namespace weir::mds
