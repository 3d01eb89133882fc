#include "client/remote/mds_channels.h"

#include <thread>
#include <utility>

#include "common/net/sub_session.h"

namespace weir::client {

static_assert(ReactorNetworks::kMost <= net::kMostConnections,
              "each reactor has a connection of one session to the MDS");

MdsChannels::Use::Use(MdsChannels& channels) : channels_(channels) {
  ++channels_.users_;
  entered_ = !channels_.closing_;
  if (!entered_) --channels_.users_;
}

MdsChannels::Use::~Use() {
  if (entered_) --channels_.users_;
}

MdsChannels::MdsChannels(const ReactorNetworks& networks, Clock& clock, Options options)
    : networks_(networks), clock_(clock), options_(std::move(options)) {}

Status MdsChannels::Connect() {
  WEIR_ASSIGN_OR_RETURN(first_, Dial(0));
  return Status::Ok();
}

Result<std::unique_ptr<net::RpcClient>> MdsChannels::Dial(size_t channel) const {
  net::RpcClient::Options options;
  options.session = net::OnConnection(options_.session, static_cast<uint32_t>(channel));
  options.ids_above = options_.ids_above;
  options.resend_interval = options_.resend_interval;
  if (channel == 0) options.reserved_ids = options_.reserved_ids;
  return net::RpcClient::Connect(networks_.at(channel), clock_, options_.endpoint, options);
}

void MdsChannels::Stop() {
  closing_ = true;
  // Whoever was let in before that hands a message over, and does not wait.
  while (users_ != 0) std::this_thread::yield();
  // Runs what is outstanding with kCancelled, while whoever owns this still exists.
  for (Channel& channel : others_) {
    channel.rpc = nullptr;
    channel.owned.reset();
  }
  // reset() would show them no client any more.
  const std::unique_ptr<net::RpcClient> last = std::move(first_);
}

void MdsChannels::Tick() {
  for (size_t i = 1; i < networks_.size(); ++i) {
    Channel& channel = others_[i];
    if (!channel.wanted || channel.owned != nullptr) continue;
    auto rpc = Dial(i);
    if (!rpc.ok()) continue;  // the first one is there
    channel.owned = *std::move(rpc);
    channel.rpc.store(channel.owned.get(), std::memory_order_release);
  }
}

size_t MdsChannels::Here() {
  const size_t here = networks_.Here();
  if (here == 0) return 0;
  others_[here].wanted.store(true, std::memory_order_relaxed);
  const net::RpcClient* const own = RpcOf(here);
  return own != nullptr && own->connected() ? here : 0;
}

net::RpcClient* MdsChannels::RpcOf(size_t channel) const {
  return channel == 0 ? first_.get() : others_[channel].rpc.load(std::memory_order_acquire);
}

}  // namespace weir::client
