#include "common/monitor/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace weir::monitor {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A connection to a server on 127.0.0.1.
class Peer {
 public:
  explicit Peer(const std::string& address) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  ~Peer() { ::close(fd_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  void Say(const std::string& text) {
    ASSERT_EQ(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // All until the server hangs up.
  std::string Hear() {
    std::string text;
    char part[4096];
    for (ssize_t size; (size = ::recv(fd_, part, sizeof part, 0)) > 0;) {
      text.append(part, static_cast<size_t>(size));
    }
    return text;
  }

 private:
  const int fd_;
};

class HttpServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    HttpServer::Options options;
    options.address = "127.0.0.1:0";
    options.threads = 2;
    options.patience = std::chrono::milliseconds(200);
    std::map<std::string, HttpServer::Handler> routes;
    routes["/"] = [](std::string_view query) {
      return HttpReply{200, "text/plain", "asked for '" + std::string(query) + "'"};
    };
    auto server = HttpServer::Start(options, std::move(routes));
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_ = std::move(*server);
  }
  std::string Ask(const std::string& request) {
    Peer peer(server_->address());
    peer.Say(request + " HTTP/1.1\r\nHost: here\r\n\r\n");
    return peer.Hear();
  }
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersWhatItHas) {
  const std::string reply = Ask("GET /?since=3");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(reply, HasSubstr("Content-Length: 19\r\n"));
  EXPECT_THAT(reply, HasSubstr("Content-Security-Policy: default-src 'none'"));
  EXPECT_THAT(reply, HasSubstr("\r\n\r\nasked for 'since=3'"));
  const std::string head = Ask("HEAD /");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("asked")));
}

TEST_F(HttpServerTest, HasNothingElseAndTakesNothing) {
  for (const char* path : {"/x", "/../../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd",
                           "/..%2f..%2fetc/passwd", "/metrics/"}) {
    const std::string reply = Ask(std::string("GET ") + path);
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 4")) << path;
    EXPECT_THAT(reply, Not(HasSubstr("root:"))) << path;
  }
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS"}) {
    EXPECT_THAT(Ask(std::string(method) + " /"), StartsWith("HTTP/1.1 405 ")) << method;
  }
  EXPECT_THAT(Ask("GET / nonsense"), Not(HasSubstr("asked")));
}

// Goal: who connects and says nothing, or half a request, does not shut others out.
TEST_F(HttpServerTest, LetsGoOfThoseWhoSayNothing) {
  std::vector<std::unique_ptr<Peer>> silent;
  for (int i = 0; i < 6; ++i) {
    silent.push_back(std::make_unique<Peer>(server_->address()));
    if (i % 2 == 0) silent.back()->Say("GET / HT");
  }
  EXPECT_THAT(Ask("GET /"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(HttpServerTest, AnAddressThatIsTakenIsAnErrorThatSaysSo) {
  const auto second = HttpServer::Start({.address = server_->address()}, {});
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.status().message(), HasSubstr(server_->address()));
  EXPECT_THAT(second.status().message(), HasSubstr("in use"));
}

TEST(HttpAddressTest, IsAnAddressOfThisMachineOnlyUnlessInsecure) {
  const auto parse = [](const std::string& text, bool insecure = false) {
    const auto parsed = ParseHttpAddress("--web", text, insecure);
    return parsed.ok() ? *parsed : "refused: " + parsed.status().message();
  };
  EXPECT_EQ(parse("127.0.0.1:9100"), "127.0.0.1:9100");
  EXPECT_EQ(parse("localhost:0"), "127.0.0.1:0");
  EXPECT_THAT(parse("[::1]:80"), AnyOf("[::1]:80", HasSubstr("knows no IPv6")));
  EXPECT_EQ(parse("0.0.0.0:80", true), "0.0.0.0:80");
  for (const char* text : {"0.0.0.0:80", "10.0.0.1:80", "[::]:80"}) {
    EXPECT_THAT(parse(text), HasSubstr("--insecure")) << text;
  }
  EXPECT_THAT(parse("no-such-host.invalid:80", true), HasSubstr("'no-such-host.invalid' has no"));
  for (const char* text : {"", ":80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:99999", "*:80",
                           "127.0.0.1:80,0.0.0.0:81", "http://127.0.0.1:80", "127.0.0.1:80s"}) {
    EXPECT_THAT(parse(text, true), HasSubstr("--web " + std::string(text) + ": write ADDR:PORT"))
        << text;
  }
}

}  // namespace
}  // namespace weir::monitor
