#include "client/fuse/receive_loop.h"

#include <cerrno>
#include <cstdlib>
#include <thread>
#include <vector>

#include "client/fuse/fuse_api.h"
#include "client/fuse/newer_requests.h"
#include "common/net/transport.h"

namespace weir::client {
namespace {

// Every thread that waits for a request is woken by the end of the connection.
int ServeAlone(fuse_session* session) {
  fuse_buf buffer{};
  int result = 0;
  while (fuse_session_exited(session) == 0) {
    result = fuse_session_receive_buf(session, &buffer);
    if (result == -EINTR) continue;
    if (result <= 0) break;
    if ((buffer.flags & FUSE_BUF_IS_FD) == 0) {
      MakeFamiliar({static_cast<uint8_t*>(buffer.mem), buffer.size});
    }
    const net::AnswerHere here;
    fuse_session_process_buf(session, &buffer);
  }
  fuse_session_exit(session);
  std::free(buffer.mem);  // libfuse allocated it
  return result < 0 ? result : 0;
}

}  // namespace

int ServeSession(fuse_session* session, uint32_t threads) {
  std::vector<int> results(threads < 1 ? 1 : threads, 0);
  std::vector<std::thread> others;
  for (size_t i = 1; i < results.size(); ++i) {
    others.emplace_back([session, &result = results[i]] { result = ServeAlone(session); });
  }
  results[0] = ServeAlone(session);
  for (std::thread& other : others) other.join();
  fuse_session_reset(session);
  for (const int result : results) {
    if (result != 0) return result;
  }
  return 0;
}

}  // namespace weir::client
