// Goal: what a file handle names is found by number as long as it has a name below what is mounted,
// whatever it is and whoever asks, and is stale otherwise.
#include <fcntl.h>

#include "tests/unit/mds/mds_fixture.h"

namespace weir::mds {
namespace {

class LookupByHandleTest : public MdsFixture {
 protected:
  wire::NameRequest OfHandle(uint64_t inode, const std::string& name, uint64_t below) const {
    wire::NameRequest request = Name(inode, name);
    request.set_handle_below(below);
    return request;
  }
  ErrorCode Look(uint64_t inode, uint64_t below) {
    return Code(wire::MDS_LOOKUP, OfHandle(inode, ".", below));
  }
  uint64_t Above(uint64_t inode, uint64_t below) {
    return Ask<wire::EntryReply>(wire::MDS_LOOKUP, OfHandle(inode, "..", below)).attr().inode();
  }
};

TEST_F(LookupByHandleTest, NamesWhateverHasANameForWhoeverAsks) {
  const uint64_t dir = Mkdir(kRoot, "d", 0700);
  const uint64_t file = Touch(dir, "f");
  uid = 1000;
  const auto found = Ask<wire::EntryReply>(wire::MDS_LOOKUP, OfHandle(file, ".", kRoot));
  EXPECT_EQ(found.attr().inode(), file);
  EXPECT_EQ(Look(dir, kRoot), ErrorCode::kOk);
  EXPECT_EQ(Above(dir, kRoot), kRoot);
  EXPECT_EQ(Look(kRoot, kRoot), ErrorCode::kOk);
  EXPECT_EQ(Look(file + 1000, kRoot), ErrorCode::kStale);
}

TEST_F(LookupByHandleTest, IsStaleWithoutAName) {
  wire::CreateRequest request = New(kRoot, "", 0644);
  request.set_open_flags(O_RDWR);
  const uint64_t open = Ask<wire::EntryReply>(wire::MDS_TMPFILE, request).attr().inode();
  EXPECT_EQ(Look(open, kRoot), ErrorCode::kStale);
  EXPECT_EQ(Code(wire::MDS_LINK, NewLink(open, kRoot, "named")), ErrorCode::kOk);
  EXPECT_EQ(Look(open, kRoot), ErrorCode::kOk);
  EXPECT_EQ(Code(wire::MDS_UNLINK, Name(kRoot, "named")), ErrorCode::kOk);
  EXPECT_EQ(Look(open, kRoot), ErrorCode::kStale);
  const uint64_t dir = Mkdir(kRoot, "d");
  EXPECT_EQ(Code(wire::MDS_RMDIR, Name(kRoot, "d")), ErrorCode::kOk);
  EXPECT_EQ(Look(dir, kRoot), ErrorCode::kStale);
}

TEST_F(LookupByHandleTest, LeadsNowhereOutsideOfWhatIsMounted) {
  const uint64_t top = Mkdir(kRoot, "top");
  const uint64_t in = Mkdir(top, "in");
  const uint64_t inside = Touch(in, "f");
  const uint64_t out = Mkdir(kRoot, "out");
  const uint64_t outside = Touch(out, "f");
  EXPECT_EQ(Look(top, top), ErrorCode::kOk);
  EXPECT_EQ(Look(inside, top), ErrorCode::kOk);
  EXPECT_EQ(Above(in, top), top);
  for (const uint64_t one : {uint64_t{kRoot}, out, outside})
    EXPECT_EQ(Look(one, top), ErrorCode::kStale);
  EXPECT_EQ(Code(wire::MDS_LOOKUP, OfHandle(top, "..", top)), ErrorCode::kStale);
  // By any of its names.
  EXPECT_EQ(Code(wire::MDS_LINK, NewLink(outside, in, "link")), ErrorCode::kOk);
  EXPECT_EQ(Look(outside, top), ErrorCode::kOk);
  EXPECT_EQ(Look(outside, out), ErrorCode::kOk);
  EXPECT_EQ(Code(wire::MDS_UNLINK, Name(in, "link")), ErrorCode::kOk);
  EXPECT_EQ(Look(outside, top), ErrorCode::kStale);
  EXPECT_EQ(Code(wire::MDS_RENAME, Move(top, "in", out, "in")), ErrorCode::kOk);
  EXPECT_EQ(Look(inside, top), ErrorCode::kStale);
}

}  // namespace
}  // namespace weir::mds
