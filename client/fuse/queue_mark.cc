#include "client/fuse/queue_mark.h"

#include <linux/fuse.h>
#include <unistd.h>

namespace weir::client {

bool AskForMark(int device, uint64_t mark) {
  struct {
    fuse_out_header header;
    fuse_notify_retrieve_out body;
  } order{};
  order.header = {sizeof(order), FUSE_NOTIFY_RETRIEVE, 0};
  order.body.notify_unique = mark;
  order.body.nodeid = FUSE_ROOT_ID;
  return write(device, &order, sizeof(order)) == sizeof(order);
}

}  // namespace weir::client
