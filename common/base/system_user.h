// Who is no person: root, and the users that daemons run as, whose numbers nobody can log in to.
#pragma once

#include <sys/types.h>

namespace weir {

// Below Debian's UID_MIN (adduser(8), login.defs(5)).
constexpr bool IsSystemUser(uid_t user) {
  constexpr uid_t kFirstPerson = 1000;
  return user < kFirstPerson;
}

}  // namespace weir
