#include "client/fuse/kernel_reactors.h"

#include <fcntl.h>

#include <algorithm>
#include <string>
#include <utility>

#include "client/fuse/queue_mark.h"
#include "client/fuse/ring_support.h"
#include "common/base/log.h"

namespace weir::client {
namespace {

// What OnInit asks the kernel for: a request moves no more.
constexpr uint32_t kLargestPayload = 1U << 20;

}  // namespace

Result<std::unique_ptr<KernelReactors>> KernelReactors::Create(const Options& options) {
  std::unique_ptr<KernelReactors> reactors(new KernelReactors(options));
  const uint32_t count = std::clamp(reactors->options_.count, uint32_t{1}, kMost);
  for (uint32_t i = 0; i < count; ++i) {
    auto member = std::make_unique<Member>();
    member->reactor = i == 0 && !reactors->options_.rings ? reactors->options_.first : nullptr;
    if (member->reactor == nullptr) {
      Reactor::Options wanted;
      wanted.name = "mount/" + std::to_string(i);
      wanted.large_entries = reactors->options_.rings;
      WEIR_ASSIGN_OR_RETURN(member->own, Reactor::Create(wanted));
      member->reactor = member->own.get();
      member->own->Start();
    }
    reactors->members_.push_back(std::move(member));
  }
  return reactors;
}

KernelReactors::~KernelReactors() {
  Stop();
  for (const auto& member : members_) {
    if (member->own != nullptr) {
      member->own->Stop();
    } else {
      RunInLoopAndWait(*member->reactor, [] {});  // behind the turn that still knew of us
    }
  }
}

bool KernelReactors::CanRing() const {
  return options_.rings && std::all_of(members_.begin(), members_.end(), [](const auto& member) {
           return member->reactor->backend() == Reactor::Backend::kUring;
         });
}

std::vector<Reactor*> KernelReactors::all() const {
  std::vector<Reactor*> reactors;
  for (const auto& member : members_) reactors.push_back(member->reactor);
  return reactors;
}

void KernelReactors::Prepare(int device, RequestHandler& handler, Serving serving) {
  device_ = device;
  serving_ = std::move(serving);
  (void)fcntl(device, F_SETFL, fcntl(device, F_GETFL) | O_NONBLOCK);
  DeviceReader::Options options;
  options.device = device;
  options.on_end = [this](int error) {
    if (!ended_.exchange(true)) serving_.on_end(error);
  };
  // From the last one, which has nobody to call.
  for (auto it = members_.rbegin(); it != members_.rend(); ++it) {
    Member& member = **it;
    member.inbox =
        std::make_unique<Inbox>(*member.reactor, handler, serving_.weight, serving_.hurried);
    member.reader = std::make_unique<DeviceReader>(*member.reactor, *member.inbox, options);
    options.next = member.reader.get();
  }
}

Status KernelReactors::PrepareRings(RingRequests& requests, uint64_t bytes_max) {
  const uint16_t processors = PossibleProcessors();
  const RingDepth::Limits depth =
      RingDepth::LimitsOf(bytes_max, uint64_t{processors} * kLargestPayload);
  if (depth.first == 0) {
    return {ErrorCode::kNoSpace,
            "the requests of " + std::to_string(processors) + " processors do not fit into memory"};
  }
  for (size_t i = 0; i < members_.size(); ++i) {
    Member& member = *members_[i];
    RingQueues::Options options;
    for (size_t processor = i; processor < processors; processor += members_.size()) {
      options.processors.push_back(static_cast<uint16_t>(processor));
    }
    options.payload_bytes = kLargestPayload;
    options.depth = depth;
    options.on_refusal = [this](int error) {
      if (!ringing_.exchange(false)) return;
      WEIR_LOG_WARN("the kernel refuses FUSE over io_uring: requests come by /dev/fuse ({})",
                    Status::FromErrno(error, "registration").message());
    };
    member.rings =
        std::make_unique<RingQueues>(*member.reactor, *member.inbox, requests, std::move(options));
    WEIR_RETURN_IF_ERROR(member.rings->Map());
  }
  return Status::Ok();
}

void KernelReactors::Start() {
  for (size_t i = 0; i < members_.size(); ++i) {
    const bool helps = i > 0;  // the one before, when called
    members_[i]->reactor->Post(
        [reader = members_[i]->reader.get(), helps] { reader->Start(helps); });
  }
}

void KernelReactors::StartRings() {
  ringing_ = true;
  WEIR_LOG_INFO("requests come by FUSE over io_uring");
  for (const auto& member : members_) {
    member->reactor->Post(
        [rings = member->rings.get(), device = device_] { rings->Start(device); });
  }
}

void KernelReactors::Stop() {
  for (const auto& member : members_) {
    if (member->reader == nullptr) continue;
    RunInLoopAndWait(*member->reactor, [reader = member->reader.get()] { reader->Stop(); });
  }
}

size_t KernelReactors::Mark(uint64_t mark, const std::function<void()>& refused) const {
  if (!ringing_) return AskForMark(device_, mark) ? 1 : 0;
  size_t queues = 0;
  for (const auto& member : members_) {
    queues += member->rings->size();
    member->reactor->Post(
        [rings = member->rings.get(), mark, refused] { rings->Mark(mark, refused); });
  }
  return queues;
}

RingQueues::Counters KernelReactors::ring_counters() const {
  RingQueues::Counters sum;
  if (!ringing_) return sum;
  for (const auto& member : members_) {
    const RingQueues::Counters one = member->rings->counters();
    sum.requests += one.requests;
    sum.entries += one.entries;
    sum.bytes += one.bytes;
  }
  return sum;
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
