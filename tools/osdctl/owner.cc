#include "tools/osdctl/owner.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>

#include <charconv>

namespace weir::osdctl {

Result<uint32_t> OwnerId(const std::string& text, bool is_user) {
  uint32_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (!text.empty() && error == std::errc() && end == text.data() + text.size()) return id;
  if (is_user) {
    if (const passwd* user = getpwnam(text.c_str())) return user->pw_uid;
  } else if (const group* found = getgrnam(text.c_str())) {
    return found->gr_gid;
  }
  return {ErrorCode::kInvalid, fmt::format("there is no {} '{}' on this machine; a number does too",
                                           is_user ? "user" : "group", text)};
}

}  // namespace weir::osdctl
