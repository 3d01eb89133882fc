#include "common/net/zmq_finder.h"

#include <utility>

#include "common/base/log.h"

namespace weir::net {
namespace {

class ZmqFinder final : public StreamFinder {
 public:
  ZmqFinder(ControlPlane& plane, Reactor& reactor, Endpoint endpoint)
      : plane_(plane), reactor_(reactor), endpoint_(std::move(endpoint)) {}

  void Ask(OnFound on_found) override {
    on_found_ = std::make_shared<OnFound>(std::move(on_found));
    if (client_ != nullptr) return client_->AskHello();
    auto client = ZmqClient::Dial(plane_, reactor_, endpoint_,
                                  [this](const HelloAnswer& answer, const std::string& address) {
                                    Found({answer.streams, address});
                                  });
    Status status = client.status();
    if (status.ok()) status = (*client)->Start([](const Message&) {}, [] {});
    if (status.ok()) {
      client_ = *std::move(client);
    } else {
      WEIR_LOG_WARN("{}: {}", endpoint_.ToString(), status.message());
    }
  }
  void Stop() override {
    on_found_ = nullptr;
    client_ = nullptr;
  }

 private:
  // Not within a callback of the client, which the user may end.
  void Found(StreamFinder::Found found) {
    reactor_.Post([asked = std::weak_ptr(on_found_), found = std::move(found)] {
      const auto on_found = asked.lock();
      if (on_found != nullptr) (*on_found)(found);
    });
  }

  ControlPlane& plane_;
  Reactor& reactor_;
  const Endpoint endpoint_;
  std::shared_ptr<OnFound> on_found_;  // of the last question
  std::unique_ptr<ZmqClient> client_;
};

}  // namespace

std::unique_ptr<StreamFinder> MakeZmqFinder(ControlPlane& plane, Reactor& reactor,
                                            const Endpoint& endpoint) {
  return std::make_unique<ZmqFinder>(plane, reactor, endpoint);
}

}  // namespace weir::net
