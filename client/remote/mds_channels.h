// MdsChannels: a mount's connections to the MDS, all of one session: the first reactor's from the
// start, another reactor's soon after a call was first made there.
//
// Threads: any. Tick and Stop by one thread at a time. Whoever uses a connection has a Use
//          meanwhile, and does not wait.
// Errors:  Connect as RpcClient::Connect.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/remote/reactor_networks.h"
#include "common/net/rpc.h"

namespace weir::client {

class MdsChannels {
 public:
  struct Options {
    std::string endpoint;
    uint64_t session = 0;
    uint64_t ids_above = 0;              // of net::RpcClient::Options
    std::vector<uint64_t> reserved_ids;  // too, of the first connection
    Duration resend_interval = net::RpcClient::Options().resend_interval;
  };
  // Keeps the connections while it exists, if Stop and Close have not come before.
  class Use {
   public:
    explicit Use(MdsChannels& channels);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    explicit operator bool() const { return entered_; }

   private:
    MdsChannels& channels_;
    bool entered_;
  };

  // The arguments outlive the channels.
  MdsChannels(const ReactorNetworks& networks, Clock& clock, Options options);
  ~MdsChannels() { Stop(); }
  MdsChannels(const MdsChannels&) = delete;
  MdsChannels& operator=(const MdsChannels&) = delete;

  Status Connect();  // the first
  // Nobody is let in any more.
  void Close() { closing_ = true; }
  [[nodiscard]] bool closing() const { return closing_; }
  // Ends them: what is outstanding ends with kCancelled.
  void Stop();
  // Makes those that are wanted.
  void Tick();

  // That of the reactor whose thread asks, if it is there; else it is wanted, and the first
  // serves.
  [[nodiscard]] size_t Here();
  [[nodiscard]] net::RpcClient& at(size_t channel) const { return *RpcOf(channel); }
  [[nodiscard]] net::RpcClient& first() const { return *first_; }

 private:
  struct Channel {
    std::atomic<bool> wanted{false};
    std::unique_ptr<net::RpcClient> owned;  // by who ticks
    std::atomic<net::RpcClient*> rpc{nullptr};
  };
  [[nodiscard]] Result<std::unique_ptr<net::RpcClient>> Dial(size_t channel) const;
  [[nodiscard]] net::RpcClient* RpcOf(size_t channel) const;

  const ReactorNetworks& networks_;
  Clock& clock_;
  const Options options_;
  std::unique_ptr<net::RpcClient> first_;
  std::array<Channel, ReactorNetworks::kMost> others_;  // there until Stop
  std::atomic<bool> closing_{false};
  std::atomic<uint32_t> users_{0};
};

}  // namespace weir::client
