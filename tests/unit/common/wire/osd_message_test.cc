// What the fields of a request to an OSD cost on the wire.
#include <gtest/gtest.h>

#include "common/wire/osd.pb.h"

namespace weir::wire {
namespace {

// DSFQ's delay rides in every request; even the largest number must be small change.
TEST(OsdMessageTest, ADelayAddsAtMostSixteenBytes) {
  ObjectRequest request;
  request.set_inode(UINT64_MAX);
  request.set_length(4 << 20);
  request.set_class_id(16);
  const size_t without = request.SerializeAsString().size();
  request.add_delays(4096);  // 4 MiB elsewhere
  EXPECT_LE(request.SerializeAsString().size(), without + 5);
  request.set_delays(0, UINT64_MAX);
  EXPECT_LE(request.SerializeAsString().size(), without + 16);
}

}  // namespace
}  // namespace weir::wire
