// Goal: what libfuse does not know reaches our handlers in the form of what it knows, and nothing
// else is touched.
#include "client/fuse/newer_requests.h"

#include <gtest/gtest.h>
#include <linux/fuse.h>

#include <cstring>

namespace weir::client {
namespace {

constexpr uint32_t kTmpfile = 51, kStatx = 52;

std::vector<uint8_t> RequestOf(uint32_t opcode, size_t body) {
  std::vector<uint8_t> bytes(sizeof(fuse_in_header) + body, 0xab);
  std::memcpy(bytes.data() + offsetof(fuse_in_header, opcode), &opcode, sizeof(opcode));
  return bytes;
}

template <typename T>
T At(const std::vector<uint8_t>& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

TEST(NewerRequestsTest, StatxBecomesAGetattrThatIsMarked) {
  std::vector<uint8_t> bytes = RequestOf(kStatx, 24);
  MakeFamiliar(bytes);
  EXPECT_EQ(At<uint32_t>(bytes, offsetof(fuse_in_header, opcode)), uint32_t{FUSE_GETATTR});
  EXPECT_EQ(At<uint32_t>(bytes, sizeof(fuse_in_header)), uint32_t{FUSE_GETATTR_FH});
  const size_t handle = sizeof(fuse_in_header) + offsetof(fuse_getattr_in, fh);
  EXPECT_EQ(At<uint64_t>(bytes, handle), kStatxHandle);
}

TEST(NewerRequestsTest, TmpfileBecomesACreateThatIsMarkedWhoeverAsks) {
  std::vector<uint8_t> bytes = RequestOf(kTmpfile, sizeof(fuse_create_in) + 2);
  std::vector<uint8_t> expected = bytes;
  const uint32_t create = FUSE_CREATE;
  std::memcpy(expected.data() + offsetof(fuse_in_header, opcode), &create, sizeof(create));
  const size_t flags = sizeof(fuse_in_header) + offsetof(fuse_create_in, flags);
  const uint32_t marked = At<uint32_t>(bytes, flags) | O_TMPFILE;
  std::memcpy(expected.data() + flags, &marked, sizeof(marked));
  MakeFamiliar(bytes);
  EXPECT_EQ(bytes, expected);
  EXPECT_TRUE(IsTmpfile(O_TMPFILE | O_RDWR));
  EXPECT_FALSE(IsTmpfile(O_DIRECTORY | O_CREAT | O_RDWR));
}

TEST(NewerRequestsTest, OthersAndShortOnesAreLeftAlone) {
  for (const uint32_t opcode : {uint32_t{FUSE_GETATTR}, uint32_t{FUSE_WRITE}, 53u}) {
    std::vector<uint8_t> bytes = RequestOf(opcode, 24);
    const std::vector<uint8_t> before = bytes;
    MakeFamiliar(bytes);
    EXPECT_EQ(bytes, before) << opcode;
  }
  for (const auto& [opcode, body] :
       {std::pair<uint32_t, size_t>(kStatx, 24), {kTmpfile, sizeof(fuse_create_in)}}) {
    std::vector<uint8_t> cut = RequestOf(opcode, body - 1);
    const std::vector<uint8_t> before = cut;
    MakeFamiliar(cut);
    EXPECT_EQ(cut, before) << opcode;
  }
  std::vector<uint8_t> tiny(sizeof(fuse_in_header) - 1, 0);
  MakeFamiliar(tiny);
}

}  // namespace
}  // namespace weir::client
