#include "client/fuse/resend.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fuse.h>
#include <unistd.h>

#include <cstring>
#include <vector>

namespace weir::client {
namespace {

// As a kernel sends it that has all features up to that bit.
std::vector<uint8_t> Init(int last_feature) {
  fuse_in_header header{};
  header.opcode = FUSE_INIT;
  header.len = sizeof(header) + sizeof(fuse_init_in);
  const uint64_t features = last_feature == 63 ? ~uint64_t{0} : (uint64_t{2} << last_feature) - 1;
  fuse_init_in init{};
  init.flags = static_cast<uint32_t>(features);
  init.flags2 = static_cast<uint32_t>(features >> 32);
  std::vector<uint8_t> bytes(header.len);
  std::memcpy(bytes.data(), &header, sizeof(header));
  std::memcpy(bytes.data() + sizeof(header), &init, sizeof(init));
  return bytes;
}

TEST(ResendTest, AKernelThatCanSaysSo) {
  EXPECT_TRUE(CanAskAgain(Init(39)));
  EXPECT_FALSE(CanAskAgain(Init(38)));
  std::vector<uint8_t> older = Init(63);
  older.resize(sizeof(fuse_in_header) + 16);  // a kernel before 5.17 sends no more
  EXPECT_FALSE(CanAskAgain(older));
  EXPECT_FALSE(CanAskAgain({}));
}

TEST(ResendTest, TheKernelIsAskedByANotification) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_TRUE(AskAgain(ends[1]));
  fuse_out_header sent{};
  ASSERT_EQ(read(ends[0], &sent, sizeof(sent)), static_cast<ssize_t>(sizeof(sent)));
  EXPECT_EQ(sent.len, sizeof(sent));
  EXPECT_EQ(sent.error, 7);
  EXPECT_EQ(sent.unique, 0u) << "which makes it a notification";
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace weir::client
