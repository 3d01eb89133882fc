#include "tools/osdctl/user_part.h"

#include <fmt/format.h>

namespace weir::osdctl {
namespace {

// Null: it has none.
const wire::ReservationInfo::User* PartOf(const wire::ClassInfo& info, uint32_t uid) {
  for (const auto& user : info.reservation().users()) {
    if (user.uid() == uid) return &user;
  }
  return nullptr;
}

}  // namespace

Status CheckPartIsSeen(const wire::ClassInfo& info, uint32_t uid, uint64_t bytes_per_s) {
  const auto* part = PartOf(info, uid);
  if (part != nullptr && part->bytes_per_s() == bytes_per_s) return Status::Ok();
  return {ErrorCode::kNotSupported,
          fmt::format("the MDS is older than this osdctl and knows no users' parts of a promise; "
                      "nothing was changed. Restart it with this version, or promise it to all of "
                      "'{0}': osdctl reserve {0} without --user",
                      info.name())};
}

Status CheckHasPart(const wire::ClassInfo& info, uint32_t uid) {
  if (PartOf(info, uid) != nullptr) return Status::Ok();
  return {ErrorCode::kNotFound,
          fmt::format("uid {} is promised nothing of '{}'", uid, info.name())};
}

}  // namespace weir::osdctl
