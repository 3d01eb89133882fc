#include "client/fuse/ring_protocol.h"

#include <gtest/gtest.h>
#include <linux/fuse.h>

#include <array>
#include <cstring>
#include <string>

#include "client/fuse/ring_support.h"

namespace weir::client {
namespace {

class RingProtocolTest : public ::testing::Test {
 protected:
  // As the kernel puts a request there.
  void Put(uint32_t operation_bytes, const std::string& payload) {
    fuse_in_header header{};
    header.len = static_cast<uint32_t>(sizeof(header) + operation_bytes + payload.size());
    header.unique = 42;
    std::memcpy(headers_.in_out, &header, sizeof(header));
    std::memset(headers_.operation, 'o', sizeof(headers_.operation));
    std::memcpy(payload_.data(), payload.data(), payload.size());
    headers_.payload_bytes = static_cast<uint32_t>(payload.size());
  }

  RingHeaders headers_{};
  std::array<uint8_t, kRingHeaderRoom + 4096> memory_{};
  std::span<uint8_t> payload_{memory_.data() + kRingHeaderRoom, 4096};
};

TEST_F(RingProtocolTest, ARequestIsPutTogetherAsTheDeviceGivesIt) {
  Put(40, "payload");
  const auto request = AssembleRequest(headers_, payload_);
  ASSERT_EQ(request.size(), sizeof(fuse_in_header) + 40 + 7);
  EXPECT_EQ(std::memcmp(request.data(), headers_.in_out, sizeof(fuse_in_header)), 0);
  const std::string rest(request.begin() + sizeof(fuse_in_header), request.end());
  EXPECT_EQ(rest, std::string(40, 'o') + "payload");
}

TEST_F(RingProtocolTest, ARequestMayBeItsHeaderAlone) {
  Put(0, "");
  EXPECT_EQ(AssembleRequest(headers_, payload_).size(), sizeof(fuse_in_header));
}

TEST_F(RingProtocolTest, SizesThatDoNotFitEachOtherAreNoRequest) {
  Put(129, "");
  EXPECT_TRUE(AssembleRequest(headers_, payload_).empty()) << "an operation longer than its place";
  Put(0, "payload");
  headers_.payload_bytes = 8;
  EXPECT_TRUE(AssembleRequest(headers_, payload_).empty()) << "more behind than in all";
  Put(0, "");
  headers_.payload_bytes = 4097;
  EXPECT_TRUE(AssembleRequest(headers_, payload_).empty()) << "more than there is room";
}

TEST_F(RingProtocolTest, AnAnswerGoesIntoBothBuffers) {
  fuse_out_header header{sizeof(header) + 6, 0, 42};
  std::string one = "abc", two = "def";
  const std::array<iovec, 3> parts = {
      iovec{&header, sizeof(header)}, {one.data(), 3}, {two.data(), 3}};
  ASSERT_TRUE(PutAnswer(parts, &headers_, payload_));
  EXPECT_EQ(std::memcmp(headers_.in_out, &header, sizeof(header)), 0);
  EXPECT_EQ(headers_.payload_bytes, 6U);
  EXPECT_EQ(std::memcmp(payload_.data(), "abcdef", 6), 0);
}

TEST_F(RingProtocolTest, AnAnswerThatIsTooLongIsRefused) {
  fuse_out_header header{};
  std::string much(4097, 'x');
  const std::array<iovec, 2> parts = {iovec{&header, sizeof(header)}, {much.data(), much.size()}};
  EXPECT_FALSE(PutAnswer(parts, &headers_, payload_));
  EXPECT_FALSE(PutAnswer({}, &headers_, payload_));
}

TEST(RingSupportTest, ProcessorsAsTheKernelListsThem) {
  EXPECT_EQ(CountProcessors("0"), 1);
  EXPECT_EQ(CountProcessors("0-1"), 2);
  EXPECT_EQ(CountProcessors("0-63"), 64);
  EXPECT_EQ(CountProcessors("0,2-5"), 5);
  EXPECT_EQ(CountProcessors(""), 0);
  EXPECT_EQ(CountProcessors("5-2"), 0);
  EXPECT_EQ(CountProcessors("x"), 0);
}

}  // namespace
}  // namespace weir::client
