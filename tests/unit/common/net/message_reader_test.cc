// Messages out of a stream that is cut anywhere, and out of one that is none of ours.
#include "common/net/message_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "common/base/prng.h"
#include "common/testing/seed.h"
#include "common/wire/rpc.pb.h"

namespace weir::net {
namespace {

using Taken = MessageReader::Taken;

Message MakeMessage(size_t body_bytes, size_t payload_bytes, Prng& dice) {
  wire::RpcHeader header;
  header.set_request_id(dice.Next());
  header.set_body(std::string(body_bytes, static_cast<char>(dice.Next())));
  std::string payload(payload_bytes, '\0');
  for (char& byte : payload) byte = static_cast<char>(dice.Next());
  return {*EncodeFrame(Direction::kToServer, header, payload_bytes), Buffer::CopyOf(payload)};
}

// Has the reader take what fits, at most `most` bytes.
size_t Feed(MessageReader& reader, std::string_view bytes, size_t most) {
  const std::span<uint8_t> room = reader.Room();
  EXPECT_FALSE(room.empty());
  const size_t count = std::min({room.size(), bytes.size(), most});
  std::memcpy(room.data(), bytes.data(), count);
  reader.Came(count);
  return count;
}

Taken FeedAll(std::string_view bytes) {
  MessageReader reader(Direction::kToServer);
  Message message;
  Taken taken = Taken::kNothing;
  while (!bytes.empty() && taken == Taken::kNothing) {
    bytes.remove_prefix(Feed(reader, bytes, bytes.size()));
    taken = reader.Take(&message);
  }
  return taken;
}

TEST(MessageReaderTest, HoweverTheStreamIsCutTheSameMessagesComeOut) {
  Prng dice(weir::testing::TestSeed());
  const std::vector<size_t> sizes = {0, 1, 19, 4096, 65'535, 65'536, 200'000};
  for (const size_t most : {size_t{1}, size_t{7}, size_t{4096}, size_t{1} << 20}) {
    std::vector<Message> sent;
    std::string stream;
    for (int i = 0; i < 12; ++i) {
      // Byte by byte large ones take long and show nothing more.
      const size_t choices = most == 1 ? 4 : sizes.size();
      sent.push_back(MakeMessage(sizes[dice.Uniform(0, choices - 1)],
                                 sizes[dice.Uniform(0, choices - 1)], dice));
      stream += sent.back().header;
      stream += sent.back().payload.view();
    }
    MessageReader reader(Direction::kToServer);
    std::vector<Message> came;
    for (std::string_view left = stream; !left.empty();) {
      left.remove_prefix(Feed(reader, left, dice.Uniform(1, most)));
      for (Message message; reader.Take(&message) == Taken::kMessage;) came.push_back(message);
    }
    ASSERT_EQ(came.size(), sent.size()) << "at most " << most << " bytes at once";
    for (size_t i = 0; i < sent.size(); ++i) {
      EXPECT_EQ(came[i].header, sent[i].header);
      EXPECT_EQ(came[i].payload.view(), sent[i].payload.view());
    }
  }
}

TEST(MessageReaderTest, ThePayloadOfAWriteIsAligned) {
  Prng dice(weir::testing::TestSeed());
  const Message sent = MakeMessage(100, 4096, dice);
  MessageReader reader(Direction::kToServer);
  std::string stream = sent.header + std::string(sent.payload.view());
  Message message;
  ASSERT_EQ(Feed(reader, stream, stream.size()), stream.size());
  ASSERT_EQ(reader.Take(&message), Taken::kMessage);
  EXPECT_TRUE(message.payload.IsAligned());
}

TEST(MessageReaderTest, WhatIsNoFrameOfOursLosesTheStream) {
  Prng dice(weir::testing::TestSeed());
  const std::string good = MakeMessage(50, 0, dice).header;
  EXPECT_EQ(FeedAll(good), Taken::kMessage);
  EXPECT_EQ(FeedAll("GET / HTTP/1.1\r\nHost: here\r\n"), Taken::kLost);
  EXPECT_EQ(FeedAll(*EncodeFrame(Direction::kToClient, {}, 0)), Taken::kLost);
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string flipped = good;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    // A flipped length may have it wait for bytes that do not come.
    EXPECT_NE(FeedAll(flipped), Taken::kMessage) << "bit " << bit;
  }
  for (const size_t length_at : {8, 12}) {
    std::string boundless = good;
    std::memset(&boundless[length_at], 0xff, 4);
    EXPECT_EQ(FeedAll(boundless), Taken::kLost) << "nobody makes room for 4 GiB";
  }
}

TEST(MessageReaderTest, AnyBytesAreSurvived) {
  Prng dice(weir::testing::TestSeed());
  for (int round = 0; round < 2000; ++round) {
    std::string stream = MakeMessage(dice.Uniform(0, 99), dice.Uniform(0, 99), dice).header;
    for (uint64_t i = dice.Uniform(0, 7); i > 0; --i) {
      stream[dice.Uniform(0, stream.size() - 1)] = static_cast<char>(dice.Next());
    }
    (void)FeedAll(stream);
  }
}

}  // namespace
}  // namespace weir::net
