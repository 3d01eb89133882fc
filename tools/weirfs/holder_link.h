// The messages behind holder.h.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <string>

namespace weir::weirfs {

inline constexpr char kDeviceMessage = 'D';  // with the descriptor; text: the device number
inline constexpr char kReadyMessage = 'R';
inline constexpr char kRefusalMessage = 'N';  // text: why
inline constexpr char kDone[] = "done";       // to who asked for an upgrade; else why not

struct ChildMessage {
  char kind = 0;  // 0: there was none
  std::string text;
  int device = -1;
  bool closed = false;  // the child is gone
};
// Does not wait.
ChildMessage ReceiveFromChild(int link);

inline constexpr size_t kLongestName = sizeof(sockaddr_un::sun_path) - 1;
struct UpgradeAddress {
  sockaddr_un address{};
  socklen_t size = 0;
};
UpgradeAddress AddressOf(const std::string& device);
// The other side is root or this very user.
bool MayAsk(int socket);

}  // namespace weir::weirfs
