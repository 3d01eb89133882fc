#include "common/net/endpoint.h"

#include <gtest/gtest.h>

namespace weir::net {
namespace {

TEST(EndpointTest, WhatPeopleWriteBecomesCanonical) {
  const std::map<std::string, std::string> good = {{"tcp://127.0.0.1:80", "tcp://127.0.0.1:80"},
                                                   {"node-1", "tcp://node-1:7370"},
                                                   {"node-1:99", "tcp://node-1:99"},
                                                   {"[::1]:5", "tcp://[::1]:5"},
                                                   {"[fe80::1]", "tcp://[fe80::1]:7370"},
                                                   {"tcp://*:0", "tcp://*:0"},
                                                   {"ipc:///run/weir.sock", "ipc:///run/weir.sock"},
                                                   {"inproc://osd.0", "inproc://osd.0"}};
  for (const auto& [text, canonical] : good) {
    auto endpoint = ParseEndpoint(text);
    ASSERT_TRUE(endpoint.ok()) << endpoint.status();
    EXPECT_EQ(endpoint->ToString(), canonical);
  }
}

TEST(EndpointTest, NonsenseIsRefusedByName) {
  for (const std::string text :
       {"", ":80", "tcp://host", "tcp://host:", "tcp://host:65536", "tcp://host:-1", "host:8o",
        "udp://host:1", "ipc://", "inproc://", "[::1", "[::1]x", "[zz]:1", "a b:1", "a/b:1"}) {
    auto endpoint = ParseEndpoint(text);
    ASSERT_EQ(endpoint.code(), ErrorCode::kInvalid) << text;
    EXPECT_THAT(endpoint.status().message(), ::testing::HasSubstr("'" + text + "'"));
  }
  EXPECT_THAT(ParseEndpoint("ipc:///" + std::string(200, 'p')).status().message(),
              ::testing::HasSubstr("at most 107"));
}

TEST(EndpointTest, LoopbackIsWhatOnlyThisMachineReaches) {
  for (const char* text :
       {"tcp://127.0.0.1:1", "127.9.9.9", "[::1]:1", "localhost:3", "ipc:///x", "inproc://x"}) {
    EXPECT_TRUE(IsLoopback(text)) << text;
  }
  for (const char* text : {"tcp://0.0.0.0:1", "tcp://*:1", "10.0.0.1", "[::]:1", "127.example.com",
                           "udp://127.0.0.1:1"}) {
    EXPECT_FALSE(IsLoopback(text)) << text;
  }
}

}  // namespace
}  // namespace weir::net
