// How a metadata server shares its time: clients without mounts, each of which asks for operations
// on names as fast as it is answered, all at the same time; then what each got per second.
//
//   names_bench ENDPOINT SECONDS KIND:JOBS[:CLASS[:UID[:SESSION]]] ...
//
// KIND is `look` (names that do not exist, answered from memory), `list` (a directory of 100 files)
// or `make` (files, made durable), JOBS how many it has under way, CLASS the number of the class
// that it is charged to. Clients of one SESSION are users of one mount.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "common/base/ids.h"
#include "common/base/prng.h"
#include "common/net/rpc.h"
#include "common/net/sub_session.h"
#include "common/wire/mds.pb.h"

namespace weir {
namespace {

constexpr uint64_t kRoot = 1;
constexpr int kListed = 100;

struct Wish {
  std::string kind = "look";
  int jobs = 1;
  uint32_t class_id = 0;
  uint32_t uid = 0;
  uint64_t session = 0;  // 0: one of its own
};

Wish Parse(const std::string& text) {
  Wish wish;
  std::istringstream parts(text);
  std::string part;
  for (int i = 0; std::getline(parts, part, ':'); ++i) {
    if (i == 0) wish.kind = part;
    if (i == 1) wish.jobs = std::atoi(part.c_str());
    if (i == 2) wish.class_id = static_cast<uint32_t>(std::atoi(part.c_str()));
    if (i == 3) wish.uid = static_cast<uint32_t>(std::atoi(part.c_str()));
    if (i == 4) wish.session = static_cast<uint64_t>(std::atoi(part.c_str()));
  }
  return wish;
}

class Asker {
 public:
  Asker(const std::string& endpoint, const Wish& wish, uint32_t number)
      : wish_(wish), network_(net::MakeNetwork()), prefix_(fmt::format("{:x}-", RandomSeed())) {
    const uint64_t session = net::SessionOf(
        wish.session == 0 ? RandomSeed() : MixHash(wish.session, static_cast<uint64_t>(getpid())));
    auto client = net::RpcClient::Connect(*network_, SystemClock::Get(), endpoint,
                                          {.session = net::OnConnection(session, number)});
    if (!client.ok()) {
      fmt::print(stderr, "names_bench: {}\n", client.status().message());
      std::exit(1);
    }
    client_ = *std::move(client);
    directory_ = Make(kRoot, prefix_, S_IFDIR | 0777);
    for (int i = 0; wish.kind == "list" && i < kListed; ++i) {
      (void)Make(directory_, std::to_string(i), S_IFREG | 0644);
    }
  }
  void Begin() {
    for (int i = 0; i < wish_.jobs; ++i) Ask();
  }
  void End() { client_.reset(); }
  [[nodiscard]] uint64_t done() const { return done_; }
  [[nodiscard]] const Wish& wish() const { return wish_; }

 private:
  // Of its own: whoever looks into a directory that somebody changes waits for his commits.
  uint64_t Make(uint64_t parent, const std::string& name, uint32_t mode) {
    wire::CreateRequest request;
    request.set_parent(parent);
    request.set_name(name);
    request.set_mode(mode);
    const auto made = client_->CallAndWait(wire::MDS_MKNOD, request.SerializeAsString(), {}, {});
    wire::EntryReply entry;
    if (made.ok() && entry.ParseFromString(made->body)) return entry.attr().inode();
    fmt::print(stderr, "names_bench: {}\n", made.status().message());
    std::exit(1);
  }
  void Ask() {
    const std::string name = prefix_ + std::to_string(asked_++);
    wire::Caller caller;
    caller.set_uid(wish_.uid);
    caller.set_class_id(wish_.class_id);
    caller.set_opener(wish_.uid + 1);
    const auto again = [this](const Result<net::Reply>& reply) {
      if (reply.code() == ErrorCode::kCancelled) return;
      ++done_;
      Ask();
    };
    if (wish_.kind == "look") {
      wire::NameRequest request;
      *request.mutable_caller() = caller;
      request.set_parent(directory_);
      request.set_name(name);
      client_->Call(wire::MDS_LOOKUP, request.SerializeAsString(), {}, {.idempotent = true}, again);
      return;
    }
    if (wish_.kind == "list") {
      wire::ReaddirRequest request;
      *request.mutable_caller() = caller;
      request.set_inode(directory_);
      request.set_plus(true);
      client_->Call(wire::MDS_READDIR, request.SerializeAsString(), {}, {.idempotent = true},
                    again);
      return;
    }
    wire::CreateRequest request;
    *request.mutable_caller() = caller;
    request.set_parent(directory_);
    request.set_name(name);
    request.set_mode(S_IFREG | 0644);
    client_->Call(wire::MDS_MKNOD, request.SerializeAsString(), {}, {}, again);
  }

  const Wish wish_;
  const std::unique_ptr<net::Network> network_;
  const std::string prefix_;
  std::unique_ptr<net::RpcClient> client_;
  uint64_t directory_ = 0;
  std::atomic<uint64_t> asked_{0};
  std::atomic<uint64_t> done_{0};
};

int Main(const std::vector<std::string>& arguments) {
  if (arguments.size() < 3) {
    fmt::print(stderr,
               "usage: names_bench ENDPOINT SECONDS KIND:JOBS[:CLASS[:UID[:SESSION]]]...\n");
    return 2;
  }
  const std::chrono::duration<double> span(std::atof(arguments[1].c_str()));
  std::vector<std::unique_ptr<Asker>> askers;
  for (size_t i = 2; i < arguments.size(); ++i) {
    askers.push_back(std::make_unique<Asker>(arguments[0], Parse(arguments[i]),
                                             static_cast<uint32_t>(i) % net::kMostConnections));
  }
  for (const auto& one : askers) one->Begin();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  std::vector<uint64_t> before;
  for (const auto& one : askers) before.push_back(one->done());
  const auto start = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(span);
  std::vector<uint64_t> after;
  for (const auto& one : askers) after.push_back(one->done());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  for (size_t i = 0; i < askers.size(); ++i) {
    fmt::print("{}: {:.0f}/s\n", arguments[i + 2],
               static_cast<double>(after[i] - before[i]) / took.count());
  }
  for (const auto& one : askers) one->End();
  return 0;
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) {
  return weir::Main({argv + 1, argv + argc});
}
