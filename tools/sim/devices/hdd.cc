#include "tools/sim/devices/hdd.h"

#include <algorithm>
#include <map>

#include "common/base/check.h"
#include "tools/sim/devices/hdd_mechanics.h"

namespace weir::sim {
namespace {

constexpr uint64_t kGB = 1'000'000'000;

struct Named {
  std::string_view name;
  HddModel paper;
  double catalogue_mean_seek_s;  // 0: the paper's is the catalogue's
};

// One 512-byte sequential request in the time the paper measured, transfer included.
constexpr double SequentialOverhead(double iops, double bytes_per_s) {
  return 1 / iops - 512 / bytes_per_s;
}

const std::vector<Named>& Models() {
  static const std::vector<Named> models{
      {"st32171w",
       {.rpm = 7200,
        .first_seek_s = 1.943e-3,
        .mean_seek_s = 1.943e-3,
        .full_seek_s = 18e-3,
        .bytes_per_s = 10e6,
        .overhead_s = SequentialOverhead(3410, 10e6),
        .capacity = 2 * kGB,
        .constant_seek = true,
        .segments = 8,
        .switch_s = 9e-6},
       9.4e-3},
      {"st34501n",
       {.rpm = 10033,
        .first_seek_s = 0.636e-3,
        .mean_seek_s = 0.636e-3,
        .full_seek_s = 16e-3,
        .bytes_per_s = 17e6,
        .overhead_s = SequentialOverhead(4500, 17e6),
        .capacity = 4 * kGB,
        .constant_seek = true,
        .segments = 8,
        .switch_s = 9e-6},
       7.7e-3},
      {"dtla-307075",
       {.rpm = 7200,
        .first_seek_s = 1.2e-3,
        .mean_seek_s = 8.5e-3,
        .full_seek_s = 14.7e-3,
        .bytes_per_s = 37e6,
        .overhead_s = 0.3e-3,
        .capacity = 75 * kGB},
       0},
      {"6y080p0",
       {.rpm = 7200,
        .first_seek_s = 0.8e-3,
        .mean_seek_s = 9.3e-3,
        .full_seek_s = 17e-3,
        .bytes_per_s = 58e6,
        .overhead_s = 0.2e-3,
        .capacity = 80 * kGB,
        .segments = 8,
        .write_cache = 8ull << 20},
       0},
      {"ultra320-15k",
       {.rpm = 15000,
        .first_seek_s = 0.4e-3,
        .mean_seek_s = 3.6e-3,
        .full_seek_s = 7.5e-3,
        .bytes_per_s = 75e6,
        .overhead_s = 0.1e-3,
        .capacity = 18 * kGB},
       0},
  };
  return models;
}

// A disk and the queue before it. Pieces are served first come first served; cached writes go out
// when nothing waits, in address order.
class HddServer {
 public:
  using Done = std::function<void(Duration worked)>;

  HddServer(EventQueue* events, const HddModel& model, Prng prng)
      : events_(events), model_(model), mechanics_(model, prng) {}

  void Submit(uint64_t lba, uint64_t bytes, bool write, Done done) {
    waiting_.push_back({lba, bytes, write, std::move(done)});
    Absorb();
    if (!busy_) Next();
  }

 private:
  struct Piece {
    uint64_t lba;
    uint64_t bytes;
    bool write;
    Done done;
  };

  // Takes the writes that are first in line into the cache, one after the other over the bus.
  void Absorb() {
    while (!waiting_.empty() && waiting_.front().write && model_.write_cache > 0 &&
           dirty_bytes_ + waiting_.front().bytes <= model_.write_cache) {
      Piece piece = std::move(waiting_.front());
      waiting_.pop_front();
      dirty_[piece.lba] += piece.bytes;
      dirty_bytes_ += piece.bytes;
      const Duration time = FromSeconds(model_.overhead_s +
                                        static_cast<double>(piece.bytes) / model_.bus_bytes_per_s);
      bus_free_at_ = std::max(bus_free_at_, events_->now()) + time;
      events_->At(bus_free_at_, [done = std::move(piece.done), time] { done(time); });
    }
  }

  // What the mechanics do next. A write that waits for room in the cache waits for a write-back.
  void Next() {
    const bool blocked = !waiting_.empty() && waiting_.front().write && dirty_bytes_ > 0;
    busy_ = true;
    if (!waiting_.empty() && !blocked) {
      ServeFirst();
    } else if (!dirty_.empty()) {
      WriteBack();
    } else {
      busy_ = false;
    }
  }

  void ServeFirst() {
    Piece piece = std::move(waiting_.front());
    waiting_.pop_front();
    const Duration time = FromSeconds(mechanics_.Access(piece.lba, piece.bytes, !piece.write));
    events_->After(time, [this, done = std::move(piece.done), time] {
      done(time);
      Absorb();
      Next();
    });
  }

  void WriteBack() {
    auto next = dirty_.lower_bound(swept_);
    if (next == dirty_.end()) next = dirty_.begin();
    const auto [lba, bytes] = *next;
    dirty_.erase(next);
    swept_ = lba + bytes;
    const Duration time = FromSeconds(mechanics_.Access(lba, bytes, true));
    events_->After(time, [this, bytes = bytes] {
      dirty_bytes_ -= bytes;
      Absorb();
      Next();
    });
  }

  EventQueue* events_;
  HddModel model_;
  HddMechanics mechanics_;
  std::deque<Piece> waiting_;
  std::map<uint64_t, uint64_t> dirty_;  // address to bytes
  uint64_t dirty_bytes_ = 0;
  uint64_t swept_ = 0;
  TimePoint bus_free_at_{0};
  bool busy_ = false;
};

class HddArray final : public Device {
 public:
  HddArray(EventQueue* events, const HddModel& model, int disks, uint64_t unit, Prng prng)
      : Device(events), unit_(unit) {
    for (int i = 0; i < disks; ++i) {
      disks_.push_back(std::make_unique<HddServer>(events, model, Prng(prng.Next())));
    }
  }

  void Submit(Job* job) override {
    const uint64_t end = job->io.lba + std::max<uint64_t>(job->io.bytes, 1);
    const uint64_t first = job->io.lba / unit_;
    const uint64_t last = (end - 1) / unit_;
    auto left = std::make_shared<Left>(Left{last - first + 1, Duration(0)});
    const bool write = job->io.op == osd::qos::OpKind::kWrite;
    for (uint64_t unit = first; unit <= last; ++unit) {
      const uint64_t from = std::max(job->io.lba, unit * unit_);
      const uint64_t to = std::min(end, (unit + 1) * unit_);
      const uint64_t on_disk = unit / disks_.size() * unit_ + from % unit_;
      disks_[unit % disks_.size()]->Submit(on_disk, to - from, write, [=, this](Duration worked) {
        left->worked = std::max(left->worked, worked);
        if (--left->pieces == 0) FinishAt(events().now(), left->worked, job);
      });
    }
  }

 private:
  struct Left {
    uint64_t pieces;
    Duration worked;
  };
  uint64_t unit_;
  std::vector<std::unique_ptr<HddServer>> disks_;
};

}  // namespace

HddModel HddModelOf(std::string_view name, bool catalogue) {
  for (const Named& model : Models()) {
    if (model.name != name) continue;
    HddModel found = model.paper;
    if (catalogue && model.catalogue_mean_seek_s > 0) {
      found.constant_seek = false;
      found.mean_seek_s = model.catalogue_mean_seek_s;
    }
    return found;
  }
  WEIR_CHECK(false, name);
  return {};
}

std::vector<std::string_view> HddModelNames() {
  std::vector<std::string_view> names;
  for (const Named& model : Models()) names.push_back(model.name);
  return names;
}

DeviceFactory Hdd(const HddModel& model) {
  return Raid0(model, 1, model.capacity);
}

DeviceFactory Raid0(const HddModel& model, int disks, uint64_t stripe_unit) {
  return [=](EventQueue* events, Prng prng) {
    return std::make_unique<HddArray>(events, model, disks, stripe_unit, prng);
  };
}

}  // namespace weir::sim
