// Round trips of the RPC layer, protobuf header and dedupe included: client and server in one
// process, echoing nothing but a short body. Depth is the number of calls in flight.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>

#include "common/net/rpc.h"

namespace weir::net {
namespace {

const char* const kEndpoints[] = {"inproc://bench", "ipc://", "tcp://127.0.0.1:0"};

void RoundTrips(benchmark::State& state) {
  auto network = MakeNetwork();
  std::string endpoint = kEndpoints[state.range(0)];
  if (endpoint == "ipc://") endpoint += "/tmp/weir_rpc_bench." + std::to_string(getpid());
  auto server = RpcServer::Start(
      *network, SystemClock::Get(), endpoint,
      [](const std::shared_ptr<IncomingCall>& call) { call->Respond(std::string("12345678")); });
  if (!server.ok()) return state.SkipWithError(server.status().message().c_str());
  auto client =
      RpcClient::Connect(*network, SystemClock::Get(), (*server)->endpoint(), {.session = 1});
  if (!client.ok()) return state.SkipWithError(client.status().message().c_str());
  const auto depth = state.range(1);
  Buffer payload = Buffer::AlignedZeros(static_cast<size_t>(state.range(2)));
  const std::string body(60, 'b');

  std::mutex mutex;
  std::condition_variable changed;
  int64_t in_flight = 0;
  auto wait_until_below = [&](int64_t bound) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return in_flight < bound; });
  };
  (void)(*client)->CallAndWait(1, body, {}, {});  // connected now
  for (auto _ : state) {
    if (depth == 1) {
      benchmark::DoNotOptimize((*client)->CallAndWait(1, body, payload, {}));
      continue;
    }
    wait_until_below(depth);
    {
      const std::lock_guard lock(mutex);
      ++in_flight;
    }
    (*client)->Call(1, body, payload, {}, [&](const Result<Reply>&) {
      const std::lock_guard lock(mutex);
      --in_flight;
      changed.notify_one();
    });
  }
  wait_until_below(1);
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(state.iterations() * state.range(2));
}
BENCHMARK(RoundTrips)
    ->ArgNames({"transport", "depth", "bytes"})
    ->ArgsProduct({{0, 1, 2}, {1, 16, 32}, {0, 4096, 65536, 1 << 20}})
    ->MeasureProcessCPUTime()
    ->UseRealTime();

}  // namespace
}  // namespace weir::net

BENCHMARK_MAIN();
