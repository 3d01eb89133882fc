// A cluster of schedulers in virtual time: constant-rate devices, closed-loop and paced workloads,
// coordinators with delay trackers. One thread, no clock, no chance: the same calls give the same
// numbers.
//
//   Cluster cluster(1, config, 60 * kMiB);        // one OSD whose device moves 60 MiB/s
//   cluster.AddClass(Spec(kGold, ...));
//   Load* gold = cluster.Start({.class_id = kGold, .outstanding = 4, .bytes = 512 * kKiB});
//   cluster.RunTo(10s);
//   gold->Rate(2s, 10s);                           // MiB/s completed between these moments
#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <vector>

#include "client/qos/delay_tracker.h"
#include "common/base/prng.h"
#include "osd/qos/scheduler.h"

namespace weir::osd::qos::testing {

inline constexpr uint64_t kKiB = 1024;
inline constexpr uint64_t kMiB = 1024 * kKiB;

class EventQueue {
 public:
  [[nodiscard]] TimePoint now() const { return now_; }
  void At(TimePoint when, std::function<void()> action) {
    events_.push({std::max(when, now_), next_++, std::move(action)});
  }
  void RunTo(TimePoint end) {
    while (!events_.empty() && events_.top().when <= end) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.when;
      event.action();
    }
    now_ = end;
  }

 private:
  struct Event {
    TimePoint when;
    uint64_t sequence;
    std::function<void()> action;
    bool operator<(const Event& other) const {
      return when > other.when || (when == other.when && sequence > other.sequence);
    }
  };
  std::priority_queue<Event> events_;
  TimePoint now_{0};
  uint64_t next_ = 0;
};

// One OSD: the scheduler, and a device that serves what it was given one after the other.
class VirtualOsd {
 public:
  using Done = std::function<void(Request*)>;

  VirtualOsd(EventQueue* events, const SchedulerConfig& config, uint64_t device_rate, Done done)
      : events_(events),
        rate_(static_cast<double>(device_rate)),
        done_(std::move(done)),
        scheduler_(config, TimePoint{0}) {
    ArmTick();
  }

  Scheduler& scheduler() { return scheduler_; }
  void SetDeviceRate(uint64_t rate) { rate_ = static_cast<double>(rate); }

  void Send(Request* request) {
    scheduler_.Enqueue(request, events_->now());
    Pump();
  }

  void Pump() {
    for (;;) {
      const PullResult result = scheduler_.Pull(events_->now());
      if (result.request == nullptr) {
        idle_while_queued_ = scheduler_.queued() > 0 && scheduler_.in_flight() == 0;
        saw_idle_while_queued_ |= idle_while_queued_;
        if (result.wake_at) ArmWake(*result.wake_at);
        return;
      }
      Serve(result.request);
    }
  }

  // Whether the device ever stood still while somebody waited.
  [[nodiscard]] bool saw_idle_while_queued() const { return saw_idle_while_queued_; }

 private:
  void Serve(Request* request) {
    const Duration time = FromSeconds(static_cast<double>(request->bytes) / rate_);
    free_at_ = std::max(free_at_, events_->now()) + time;
    events_->At(free_at_, [this, request] {
      scheduler_.Completed(request, events_->now());
      done_(request);
      Pump();
    });
  }
  void ArmWake(TimePoint when) {
    if (armed_ && wake_at_ <= when && wake_at_ > events_->now()) return;
    armed_ = true;
    wake_at_ = when;
    events_->At(when, [this, when] {
      if (wake_at_ != when) return;
      armed_ = false;
      Pump();
    });
  }
  void ArmTick() {
    events_->At(scheduler_.NextTick(), [this] {
      scheduler_.Tick(events_->now());
      Pump();
      ArmTick();
    });
  }

  EventQueue* events_;
  double rate_;
  Done done_;
  Scheduler scheduler_;
  TimePoint free_at_{0};
  bool armed_ = false;
  TimePoint wake_at_;
  bool idle_while_queued_ = false;
  bool saw_idle_while_queued_ = false;
};

struct LoadOptions {
  ClassId class_id;
  int outstanding = 4;
  uint64_t bytes = 64 * kKiB;
  size_t osd = 0;
  size_t coordinator = 0;
  double pace = 0;  // bytes per second; 0: as fast as answers come
  // Overrides `osd` and `coordinator`: where the n-th request goes.
  std::function<std::pair<size_t, size_t>(uint64_t)> route;
};

class Cluster;

// A workload: keeps `outstanding` requests under way until it is stopped.
class Load {
 public:
  Load(Cluster* cluster, LoadOptions options) : cluster_(cluster), options_(std::move(options)) {}
  void Stop() { stopped_ = true; }
  // Bytes per second completed in (from, to], on one OSD or on all.
  [[nodiscard]] double Rate(Duration from, Duration to, int osd = -1) const {
    double bytes = 0;
    for (const auto& [when, size, where] : done_) {
      const bool counts = osd < 0 || where == static_cast<size_t>(osd);
      if (counts && when.ns > from.count() && when.ns <= to.count()) {
        bytes += static_cast<double>(size);
      }
    }
    return bytes / ToSeconds(to - from);
  }
  [[nodiscard]] double MiBps(Duration from, Duration to, int osd = -1) const {
    return Rate(from, to, osd) / static_cast<double>(kMiB);
  }

 private:
  friend class Cluster;
  struct Completion {
    TimePoint when;
    uint64_t bytes;
    size_t osd;
  };
  struct Slot {
    Request request;
    Load* load;
    size_t osd;
  };

  void Begin();
  void SendNext(Slot* slot);
  void OnDone(Slot* slot);

  Cluster* cluster_;
  LoadOptions options_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Completion> done_;
  uint64_t sent_ = 0;
  bool stopped_ = false;
};

class Cluster {
 public:
  Cluster(size_t osds, const SchedulerConfig& config, uint64_t device_rate) : trackers_(8) {
    for (size_t i = 0; i < osds; ++i) {
      osds_.push_back(
          std::make_unique<VirtualOsd>(&events_, config, device_rate, [](Request* request) {
            auto* slot = static_cast<Load::Slot*>(request->context);
            slot->load->OnDone(slot);
          }));
    }
  }

  void SetClass(const ClassSpec& spec) {
    for (auto& osd : osds_) osd->scheduler().SetClass(spec, events_.now());
  }
  void Configure(const SchedulerConfig& config) {
    for (auto& osd : osds_) {
      osd->scheduler().Configure(config, events_.now());
      osd->Pump();
    }
  }
  Load* Start(LoadOptions options) {
    loads_.push_back(std::make_unique<Load>(this, std::move(options)));
    loads_.back()->Begin();
    return loads_.back().get();
  }
  void RunTo(Duration end) { events_.RunTo(TimePoint{0} + end); }
  VirtualOsd& osd(size_t index = 0) { return *osds_[index]; }
  EventQueue& events() { return events_; }
  client::DelayTracker& tracker(size_t coordinator) { return trackers_[coordinator]; }

 private:
  EventQueue events_;
  std::vector<client::DelayTracker> trackers_;
  std::vector<std::unique_ptr<VirtualOsd>> osds_;
  std::vector<std::unique_ptr<Load>> loads_;
};

inline void Load::Begin() {
  for (int i = 0; i < options_.outstanding; ++i) {
    slots_.push_back(std::make_unique<Slot>());
    Slot* slot = slots_.back().get();
    slot->load = this;
    if (options_.pace == 0) {
      SendNext(slot);
    } else {  // evenly spread, or all slots would send in one burst for ever
      EventQueue& events = cluster_->events();
      const double wait = static_cast<double>(options_.bytes) * i / options_.pace;
      events.At(events.now() + FromSeconds(wait), [this, slot] { SendNext(slot); });
    }
  }
}

inline void Load::SendNext(Slot* slot) {
  if (stopped_) return;
  size_t coordinator = options_.coordinator;
  slot->osd = options_.osd;
  if (options_.route) std::tie(slot->osd, coordinator) = options_.route(sent_);
  ++sent_;
  slot->request = Request{};
  slot->request.class_id = options_.class_id;
  slot->request.bytes = options_.bytes;
  slot->request.lba = MixHash(options_.class_id.value, sent_);
  slot->request.context = slot;
  slot->request.elsewhere = cluster_->tracker(coordinator)
                                .OnSend(options_.class_id, OsdId(static_cast<uint32_t>(slot->osd)),
                                        TokensOf(options_.bytes));
  cluster_->osd(slot->osd).Send(&slot->request);
}

inline void Load::OnDone(Slot* slot) {
  EventQueue& events = cluster_->events();
  done_.push_back({events.now(), slot->request.bytes, slot->osd});
  if (options_.pace == 0) {
    SendNext(slot);
    return;
  }
  // Each slot sends at its share of the pace, counted from the start of its last request.
  const double gap = static_cast<double>(options_.bytes) * options_.outstanding / options_.pace;
  events.At(slot->request.arrival + FromSeconds(gap), [this, slot] { SendNext(slot); });
}

inline ClassSpec Spec(ClassId id, double weight = 1) {
  ClassSpec spec;
  spec.id = id;
  spec.weight = weight;
  spec.min_weight = 0.1 * weight;
  return spec;
}

inline ClassSpec Reserved(ClassId id, uint64_t rate, double weight = 1,
                          ReservationScope scope = ReservationScope::kOsd) {
  ClassSpec spec = Spec(id, weight);
  spec.reservation = Reservation{rate, scope, std::nullopt};
  return spec;
}

}  // namespace weir::osd::qos::testing
