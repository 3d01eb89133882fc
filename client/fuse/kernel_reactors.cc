#include "client/fuse/kernel_reactors.h"

#include <fcntl.h>

#include <algorithm>
#include <string>

#include "client/fuse/queue_mark.h"

namespace weir::client {

Result<std::unique_ptr<KernelReactors>> KernelReactors::Create(Options options) {
  std::unique_ptr<KernelReactors> reactors(new KernelReactors(std::move(options)));
  const uint32_t count = std::clamp(reactors->options_.count, uint32_t{1}, kMost);
  for (uint32_t i = 0; i < count; ++i) {
    Reactor::Options wanted;
    wanted.name = "mount/" + std::to_string(i);
    auto member = std::make_unique<Member>();
    WEIR_ASSIGN_OR_RETURN(member->reactor, Reactor::Create(wanted));
    member->reactor->Start();
    reactors->members_.push_back(std::move(member));
  }
  return reactors;
}

KernelReactors::~KernelReactors() {
  for (const auto& member : members_) member->reactor->Stop();
}

void KernelReactors::Start(int device, RequestHandler& handler) {
  device_ = device;
  (void)fcntl(device, F_SETFL, fcntl(device, F_GETFL) | O_NONBLOCK);
  const auto on_end = [this](int error) {
    if (!ended_.exchange(true)) options_.on_end(error);
  };
  for (const auto& member : members_) {
    member->inbox =
        std::make_unique<Inbox>(*member->reactor, handler, options_.weight, options_.hurried);
    member->reader =
        std::make_unique<DeviceReader>(*member->reactor, *member->inbox, device, on_end);
  }
  for (const auto& member : members_) {
    member->reactor->Post([reader = member->reader.get()] { reader->Start(); });
  }
}

void KernelReactors::Stop() {
  for (const auto& member : members_) {
    if (member->reader == nullptr) continue;
    RunInLoopAndWait(*member->reactor, [reader = member->reader.get()] { reader->Stop(); });
  }
}

size_t KernelReactors::Mark(uint64_t mark) const {
  return AskForMark(device_, mark) ? 1 : 0;
}

void KernelReactors::WhenHandled(const std::function<void()>& then) {
  auto left = std::make_shared<std::atomic<size_t>>(members_.size());
  for (const auto& member : members_) {
    member->reactor->Post([inbox = member->inbox.get(), left, then] {
      inbox->WhenHandled([left, then] {
        if (left->fetch_sub(1) == 1) then();
      });
    });
  }
}

}  // namespace weir::client
