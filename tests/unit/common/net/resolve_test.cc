#include "common/net/resolve.h"

#include <gtest/gtest.h>

namespace weir::net {
namespace {

TEST(ResolveTest, AnAddressIsItself) {
  for (const char* text : {"tcp://127.0.0.1:7", "tcp://[::1]:7", "tcp://[fe80::1%eth0]:7",
                           "tcp://*:7", "ipc:///localhost", "inproc://localhost"}) {
    const Endpoint endpoint = *ParseEndpoint(text);
    EXPECT_FALSE(HasHostName(endpoint)) << text;
    const auto all = Resolve(endpoint);
    ASSERT_TRUE(all.ok()) << text;
    ASSERT_EQ(all->size(), 1U) << text;
    EXPECT_EQ(all->front().ToString(), text);
  }
}

TEST(ResolveTest, ANameStandsForAddressesWithTheSamePort) {
  const auto all = Resolve(*ParseEndpoint("tcp://localhost:7"));
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->front().ToString(), "tcp://127.0.0.1:7");
  EXPECT_TRUE(*IsOfThisMachineOnly(*ParseEndpoint("tcp://localhost:7")));
  EXPECT_FALSE(*IsOfThisMachineOnly(*ParseEndpoint("tcp://10.0.0.1:7")));
}

TEST(ResolveTest, AnUnknownHostIsNamed) {
  const auto none = Resolve(*ParseEndpoint("tcp://no-such-host.invalid:7"));
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.status().message().find("'no-such-host.invalid'"), std::string::npos);
}

TEST(ResolveTest, WhereNobodyAnsweredIsSaidOfNames) {
  EXPECT_EQ(WhereItWasSought(*ParseEndpoint("tcp://10.0.0.1:7")), "");
  EXPECT_EQ(WhereItWasSought(*ParseEndpoint("ipc:///run/x")), "");
  EXPECT_EQ(WhereItWasSought(*ParseEndpoint("tcp://no-such-host.invalid:7")), "");
  const std::string here = WhereItWasSought(*ParseEndpoint("tcp://localhost:7"));
  EXPECT_EQ(here.find(" ('localhost' is 127.0.0.1"), 0U) << here;
  EXPECT_NE(here.find("at another address of this machine must be named by that"),
            std::string::npos)
      << here;
}

}  // namespace
}  // namespace weir::net
