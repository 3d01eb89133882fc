#include "client/fuse/init_reply.h"

#include <gtest/gtest.h>
#include <linux/fuse.h>

#include <cstring>
#include <vector>

namespace weir::client {
namespace {

std::vector<uint8_t> Request(uint32_t flags, uint32_t flags2) {
  fuse_init_in init{};
  init.flags = flags;
  init.flags2 = flags2;
  std::vector<uint8_t> bytes(sizeof(fuse_in_header) + sizeof(init));
  std::memcpy(bytes.data() + sizeof(fuse_in_header), &init, sizeof(init));
  return bytes;
}

fuse_init_out AnswerWith(uint64_t offered, uint64_t wanted, fuse_init_out answer) {
  std::vector<uint8_t> bytes(sizeof(answer));
  std::memcpy(bytes.data(), &answer, sizeof(answer));
  AddInitFlags(offered, wanted, bytes);
  std::memcpy(&answer, bytes.data(), sizeof(answer));
  return answer;
}

TEST(InitReplyTest, BothWordsOfWhatIsOfferedAreRead) {
  EXPECT_EQ(OfferedInitFlags(Request(FUSE_INIT_EXT | 1, 1 << 4)),
            FUSE_INIT_EXT | 1 | kDirectIoAllowMmap);
  // Without the mark that it is there the second word means nothing.
  EXPECT_EQ(OfferedInitFlags(Request(1, 1 << 4)), 1U);
  EXPECT_EQ(OfferedInitFlags(std::vector<uint8_t>(sizeof(fuse_in_header) + 4)), 0U);
}

TEST(InitReplyTest, OnlyWhatIsOfferedIsAdded) {
  fuse_init_out made{};
  made.flags = FUSE_ASYNC_READ;
  made.max_write = 1 << 20;

  const fuse_init_out with = AnswerWith(kDirectIoAllowMmap, kDirectIoAllowMmap, made);
  EXPECT_EQ(with.flags, FUSE_ASYNC_READ | FUSE_INIT_EXT);
  EXPECT_EQ(with.flags2, 1U << 4);
  EXPECT_EQ(with.max_write, 1U << 20);

  const fuse_init_out without = AnswerWith(1ULL << 40, kDirectIoAllowMmap, made);
  EXPECT_EQ(without.flags, static_cast<uint32_t>(FUSE_ASYNC_READ));
  EXPECT_EQ(without.flags2, 0U);
}

TEST(InitReplyTest, AFlagOfTheFirstWordNeedsNoSecond) {
  const fuse_init_out with = AnswerWith(FUSE_HANDLE_KILLPRIV_V2, FUSE_HANDLE_KILLPRIV_V2, {});
  EXPECT_EQ(with.flags, static_cast<uint32_t>(FUSE_HANDLE_KILLPRIV_V2));
  EXPECT_EQ(with.flags2, 0U);
}

TEST(InitReplyTest, AShortAnswerIsLeftAlone) {
  std::vector<uint8_t> old(24, 0);
  AddInitFlags(kDirectIoAllowMmap, kDirectIoAllowMmap, old);
  EXPECT_EQ(old, std::vector<uint8_t>(24, 0));
}

}  // namespace
}  // namespace weir::client
