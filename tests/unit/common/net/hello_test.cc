// HELLO between versions that understand each other and those that do not.
#include "common/net/hello.h"

#include <gtest/gtest.h>

#include "common/net/envelope.h"
#include "common/wire/rpc.pb.h"

namespace weir::net {
namespace {

constexpr HelloQuestion kQuestion{.session = 7, .number = 3};

Message AnswerOf(wire::RpcHeader header, uint16_t version = kHelloVersion) {
  header.set_session(kQuestion.session);
  header.set_request_id(kQuestion.number);
  return {*EncodeFrame(Direction::kToClient, header, 0, version), {}};
}

TEST(HelloTest, TheAnswerNamesTheStreams) {
  const StreamAddresses streams{{"unix:@weirfs-1", "tcp://*:7"}, 99};
  const auto answer = DecodeHelloAnswer(EncodeHelloAnswer(kQuestion, 5, streams), kQuestion);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->incarnation, 5u);
  EXPECT_EQ(answer->streams.id, 99u);
  EXPECT_EQ(answer->streams.endpoints, streams.endpoints);
}

TEST(HelloTest, OtherMessagesAreNoAnswer) {
  const Message late = EncodeHelloAnswer({.session = 7, .number = 2}, 5, {});
  EXPECT_EQ(DecodeHelloAnswer(late, kQuestion).code(), ErrorCode::kBadMessage);
  wire::RpcHeader pong;
  pong.set_kind(wire::RpcHeader::PONG);
  for (const uint16_t version : {kHelloVersion, kProtocolVersion}) {
    EXPECT_EQ(DecodeHelloAnswer(AnswerOf(pong, version), kQuestion).code(), ErrorCode::kBadMessage);
  }
  EXPECT_EQ(DecodeHelloAnswer({"rubbish", {}}, kQuestion).code(), ErrorCode::kBadMessage);
}

TEST(HelloTest, AServerOfVersion1IsRecognizedByItsRefusal) {
  wire::RpcHeader refusal;
  refusal.set_kind(wire::RpcHeader::REPLY);
  refusal.set_status(static_cast<uint32_t>(ErrorCode::kBadMessage));
  const auto answer = DecodeHelloAnswer(AnswerOf(refusal), kQuestion);
  EXPECT_EQ(answer.code(), ErrorCode::kNotSupported);
  EXPECT_NE(answer.status().message().find("wire version 1"), std::string::npos);
}

TEST(HelloTest, ALaterServerIsAskedForOurVersion) {
  wire::RpcHeader header;
  header.set_kind(wire::RpcHeader::HELLO);
  header.add_versions(3);
  header.add_versions(4);
  const auto answer = DecodeHelloAnswer(AnswerOf(header), kQuestion);
  EXPECT_EQ(answer.code(), ErrorCode::kNotSupported);
  EXPECT_NE(answer.status().message().find("3, 4"), std::string::npos);
  header.add_versions(kProtocolVersion);
  EXPECT_TRUE(DecodeHelloAnswer(AnswerOf(header), kQuestion).ok());
}

TEST(HelloTest, AStreamBeginsWithTheIdOfItsServer) {
  EXPECT_TRUE(IsStreamStart(EncodeStreamStart(4), 4));
  EXPECT_FALSE(IsStreamStart(EncodeStreamStart(4), 5));
  EXPECT_FALSE(IsStreamStart(EncodeHello(kQuestion), 0)) << "that is of the control plane";
  EXPECT_FALSE(IsStreamStart({"rubbish", {}}, 0));
}

}  // namespace
}  // namespace weir::net
