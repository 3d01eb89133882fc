#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <tuple>
#include <unordered_map>

#include "osd/decisions/replay.h"

namespace weir::osd {
namespace {

using Kind = Event::Kind;

// How long requests took on the device, from their start: by their numbers.
class DeviceTimes {
 public:
  struct Times {
    TimePoint started;
    std::optional<Duration> landed, done;
  };

  explicit DeviceTimes(const std::vector<Event>& events) {
    for (const Event& event : events) Note(event);
    Duration sum{0};
    for (const auto& [request, times] : times_) {
      if (!times.done) continue;
      sum += *times.done;
      ++done_;
    }
    if (done_ > 0) mean_ = sum / done_;
    // What was still on the device at the end is not done before that.
    const TimePoint end = events.back().now;
    for (auto& [request, times] : times_) {
      if (!times.done) times.done = end - times.started + mean_ + Duration(1);
    }
  }

  [[nodiscard]] Duration Done(uint64_t request) const {
    const auto found = times_.find(request);
    return found == times_.end() ? mean_ : *found->second.done;
  }
  // None: it does not land before it is done.
  [[nodiscard]] std::optional<Duration> Landed(uint64_t request) const {
    const auto found = times_.find(request);
    return found == times_.end() ? std::nullopt : found->second.landed;
  }

 private:
  void Note(const Event& event) {
    if (event.request == 0) return;
    if (event.kind == Kind::kPull) times_[event.request].started = event.now;
    if (event.kind != Kind::kLanded && event.kind != Kind::kCompleted) return;
    Times& times = times_[event.request];
    (event.kind == Kind::kLanded ? times.landed : times.done) = event.now - times.started;
  }

  std::unordered_map<uint64_t, Times> times_;
  int64_t done_ = 0;
  Duration mean_{0};
};

// One run over the inputs of a recording.
class InputReplay {
 public:
  InputReplay(const std::vector<Event>& events, InputOrder order)
      : events_(events), order_(order), times_(events) {}

  std::vector<Event> Run() {
    const Event& start = events_.front();
    scheduler_ = std::make_unique<qos::Scheduler>(*start.config, start.now, &keeper_);
    now_ = start.now;
    for (next_ = 1; next_ < events_.size();) {
      now_ = std::max(now_, std::min({TimeOf(next_), NextOnDevice(), NextOfScheduler()}));
      if (order_ == InputOrder::kRecorded) FollowRecorded();
      while (NextOnDevice() <= now_) {
        const OnDevice one = device_.top();
        device_.pop();
        DeviceIs(one);
      }
      for (; next_ < events_.size() && TimeOf(next_) <= now_; ++next_) Tell(events_[next_]);
      if (now_ >= scheduler_->NextTick()) scheduler_->Tick(now_);
      StartAll();
    }
    return keeper_.events();
  }

 private:
  struct OnDevice {
    TimePoint when;
    uint64_t sequence;
    uint64_t request;
    bool lands;
    friend bool operator>(const OnDevice& a, const OnDevice& b) {
      return std::pair(a.when, a.sequence) > std::pair(b.when, b.sequence);
    }
  };
  struct Times {
    TimePoint lands, done;
  };

  // As much as belongs to this moment here, too, in the recorded order.
  void FollowRecorded() {
    for (; next_ < events_.size() && TimeOf(next_) <= now_; ++next_) {
      const Event& event = events_[next_];
      if (event.kind == Kind::kTick && now_ >= scheduler_->NextTick()) scheduler_->Tick(now_);
      if (event.kind == Kind::kPull) StartOne();
      if (event.kind == Kind::kLanded || event.kind == Kind::kCompleted) {
        const bool lands = event.kind == Kind::kLanded;
        const auto due = due_.find(event.request);
        if (due == due_.end()) continue;
        if ((lands ? due->second.lands : due->second.done) != now_) continue;
        DeviceIs({now_, 0, event.request, lands});
      } else {
        Tell(event);
      }
    }
  }

  [[nodiscard]] TimePoint TimeOf(size_t event) const {
    return events_[event].timed() ? events_[event].now : TimePoint{INT64_MIN};
  }
  [[nodiscard]] TimePoint NextOnDevice() const {
    return device_.empty() ? TimePoint::Max() : device_.top().when;
  }
  [[nodiscard]] TimePoint NextOfScheduler() const {
    const Duration later(1);  // what it wanted at this moment has been done
    return std::max(now_ + later, std::min(wake_at_, scheduler_->NextTick()));
  }

  void Tell(const Event& event) {
    switch (event.kind) {
      case Kind::kConfigure:
        return scheduler_->Configure(*event.config, now_);
      case Kind::kSetClass:
        return scheduler_->SetClass(*event.spec, now_);
      case Kind::kRemoveClass:
        return scheduler_->RemoveClass(event.class_id, now_);
      case Kind::kEnqueue:
        return Arrive(event);
      case Kind::kCancel:
        return Cancel(&requests_[event.request - 1]);
      case Kind::kSetBooked:
        return scheduler_->SetBooked(event.amount);
      case Kind::kDoneOutside:
        return scheduler_->DoneOutside(event.amount);
      case Kind::kSetBulkCap:
        return scheduler_->SetBulkCap(event.amount, now_);
      default:  // decisions, hints, and what follows from them
        return;
    }
  }
  void Arrive(const Event& event) {
    qos::Request& request = requests_.emplace_back();
    request.class_id = event.class_id;
    request.op = event.op;
    request.bytes = event.bytes;
    request.lba = event.lba;
    request.elsewhere = event.elsewhere;
    request.transaction = event.transaction;
    request.flow = event.flow;
    numbers_[&request] = event.request;
    scheduler_->Enqueue(&request, now_);
  }
  void Cancel(qos::Request* request) {
    if (request->stage != qos::Request::Stage::kOutside) scheduler_->Cancel(request, now_);
  }
  void StartAll() {
    while (StartOne()) {
    }
  }
  bool StartOne() {
    const qos::PullResult pulled = scheduler_->Pull(now_);
    wake_at_ = pulled.wake_at.value_or(TimePoint::Max());
    if (pulled.request == nullptr) return false;
    const uint64_t number = numbers_.at(pulled.request);
    Times& due = due_[number];
    due.done = now_ + times_.Done(number);
    if (const auto lands = times_.Landed(number)) {
      due.lands = now_ + *lands;
      device_.push({due.lands, ++sequence_, number, true});
    }
    device_.push({due.done, ++sequence_, number, false});
    return true;
  }
  // Nothing, where the recorded order was ahead of the queue.
  void DeviceIs(const OnDevice& one) {
    const auto due = due_.find(one.request);
    qos::Request* request = &requests_[one.request - 1];
    if (due == due_.end() || (one.lands && request->landed)) return;
    if (one.lands) {
      scheduler_->Landed(request, now_);
      return;
    }
    due_.erase(due);
    scheduler_->Completed(request, now_);
  }

  const std::vector<Event>& events_;
  const InputOrder order_;
  const DeviceTimes times_;
  size_t next_ = 0;  // of events_
  EventKeeper keeper_;
  std::deque<qos::Request> requests_;  // [number - 1]
  std::unordered_map<const qos::Request*, uint64_t> numbers_;
  std::unique_ptr<qos::Scheduler> scheduler_;
  std::priority_queue<OnDevice, std::vector<OnDevice>, std::greater<>> device_;
  uint64_t sequence_ = 0;
  std::unordered_map<uint64_t, Times> due_;  // by number, of what is on the device
  TimePoint now_;
  TimePoint wake_at_ = TimePoint::Max();
};

}  // namespace

std::vector<Event> ReplayInputs(const std::vector<Event>& events, InputOrder order) {
  return events.empty() ? std::vector<Event>() : InputReplay(events, order).Run();
}

}  // namespace weir::osd
