// What an ordinary user needs to mount, looked at before anything is made: libfuse only says that
// it is not permitted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace weir::weirfs {

// Of the text of /etc/fuse.conf: the number of its line user_allow_other; negative: it is there
// behind a '#'; 0: it is not.
int64_t AllowsOthers(std::string_view fuse_conf);

// libfuse has that program mount, with root's rights.
Status CheckMountHelper(const std::string& helper);

struct UserMountPaths {
  std::string device = "/dev/fuse";
  std::string conf = "/etc/fuse.conf";
  std::string helper = "/usr/bin/fusermount3";
};
// kPermission names what is in the way and how root mends it. Ok for who may mount by himself
// (CAP_SYS_ADMIN).
Status CheckUserMount(bool allow_other, const UserMountPaths& paths = {});

}  // namespace weir::weirfs
