// What this process was built from, as it says to others. Set once, before threads; empty before.
#pragma once

#include "common/wire/map.pb.h"

namespace weir::wire {

inline Build& MutableThisBuild() {
  static Build build;
  return build;
}
inline const Build& ThisBuild() {
  return MutableThisBuild();
}

}  // namespace weir::wire
