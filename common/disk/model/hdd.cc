#include "common/disk/model/hdd.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <utility>

#include "common/base/check.h"
#include "common/disk/model/hdd_mechanics.h"

namespace weir::model {
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
      {"sata-7200",
       {.rpm = 7200,
        .first_seek_s = 0.6e-3,
        .mean_seek_s = 8.5e-3,
        .full_seek_s = 16e-3,
        .bytes_per_s = 180e6,
        .overhead_s = 0.1e-3,
        .capacity = 4000 * kGB,
        .segments = 16,
        .write_cache = 32ull << 20,
        .bus_bytes_per_s = 500e6,
        .ncq = 32},
       0},
  };
  return models;
}

// A disk and the queue before it.
class HddServer {
 public:
  using Done = DiskModel::Done;

  HddServer(EventQueue* events, const HddModel& model, Prng prng)
      : events_(events),
        model_(model),
        mechanics_(model, prng),
        track_(static_cast<uint64_t>(model.bytes_per_s * 60 / model.rpm)) {}

  void Submit(uint64_t lba, uint64_t bytes, bool write, Done done) {
    waiting_.push_back({lba, bytes, write, std::move(done)});
    Absorb();
    if (!busy_) Next();
  }

  void Flush(Done done) {
    flushes_.push_back({events_->now(), std::move(done)});
    EndFlush();
    if (!busy_) Next();
  }

 private:
  struct Piece {
    uint64_t lba;
    uint64_t bytes;
    bool write;
    Done done;
    int passed_over = 0;
  };
  struct WaitingFlush {
    TimePoint since;
    Done done;
  };

  // Takes writes into the cache, one after the other over the bus: those that are first in line,
  // or, when the disk orders its queue, all that it sees.
  void Absorb() {
    if (model_.write_cache == 0 || !flushes_.empty()) return;
    for (size_t at = 0; at < Visible();) {
      const Piece& piece = waiting_[at];
      const bool fits = dirty_bytes_ + piece.bytes <= model_.write_cache;
      if (piece.write && fits) {
        TakeIntoCache(at);
      } else if (piece.write || model_.ncq == 1) {
        return;  // writes stay in order
      } else {
        ++at;
      }
    }
  }
  void TakeIntoCache(size_t at) {
    Piece piece = std::move(waiting_[at]);
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(at));
    dirty_[piece.lba] += piece.bytes;
    dirty_bytes_ += piece.bytes;
    const Duration time =
        FromSeconds(model_.overhead_s + static_cast<double>(piece.bytes) / model_.bus_bytes_per_s);
    bus_free_at_ = std::max(bus_free_at_, events_->now()) + time;
    events_->At(bus_free_at_, [done = std::move(piece.done), time] { done(time); });
  }

  [[nodiscard]] size_t Visible() const {
    return std::min(waiting_.size(), static_cast<size_t>(std::max(1, model_.ncq)));
  }
  // A write that waits for room in the cache, or for a flush, waits for write-backs.
  [[nodiscard]] bool Servable(const Piece& piece) const {
    return !piece.write || dirty_bytes_ == 0 || model_.write_cache == 0;
  }

  // Which request the arm goes to; Visible() when to none.
  size_t Choose() {
    const size_t visible = Visible();
    size_t best = visible;
    double best_s = 0;
    for (size_t i = 0; i < visible; ++i) {
      if (!Servable(waiting_[i])) continue;
      if (waiting_[i].passed_over >= 2 * model_.ncq) return i;
      const double seconds = mechanics_.Positioning(waiting_[i].lba, !waiting_[i].write);
      if (best != visible && seconds >= best_s) continue;
      best = i;
      best_s = seconds;
    }
    for (size_t i = 0; i < best && best < visible; ++i) ++waiting_[i].passed_over;
    return best;
  }

  // What the mechanics do next.
  void Next() {
    const bool owed = !flushes_.empty() && !dirty_.empty() && !wrote_back_;
    const size_t chosen = owed ? Visible() : Choose();
    busy_ = true;
    wrote_back_ = false;
    if (chosen < Visible()) {
      Serve(chosen);
    } else if (!dirty_.empty()) {
      WriteBack();
    } else {
      busy_ = false;
    }
  }

  void Serve(size_t at) {
    Piece piece = std::move(waiting_[at]);
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(at));
    const Duration time = FromSeconds(mechanics_.Access(piece.lba, piece.bytes, !piece.write));
    events_->After(time, [this, done = std::move(piece.done), time] {
      done(time);
      Absorb();
      Next();
    });
  }

  void WriteBack() {
    wrote_back_ = true;
    auto next = dirty_.lower_bound(swept_);
    if (next == dirty_.end()) next = dirty_.begin();
    const uint64_t lba = next->first;
    uint64_t bytes = 0, passed = 0;
    do {
      passed = next->first + next->second - lba;
      bytes += next->second;
      next = dirty_.erase(next);
    } while (next != dirty_.end() && next->first + next->second <= lba + track_);
    swept_ = lba + passed;
    const Duration time = FromSeconds(mechanics_.Access(lba, passed, true));
    events_->After(time, [this, bytes] {
      dirty_bytes_ -= bytes;
      EndFlush();
      Absorb();
      Next();
    });
  }

  void EndFlush() {
    if (dirty_bytes_ > 0) return;
    for (WaitingFlush& flush : std::exchange(flushes_, {})) {
      const Duration overhead = FromSeconds(model_.overhead_s);
      const Duration worked = events_->now() - flush.since + overhead;
      events_->After(overhead, [done = std::move(flush.done), worked] { done(worked); });
    }
  }

  EventQueue* events_;
  HddModel model_;
  HddMechanics mechanics_;
  uint64_t track_;  // bytes of one round of the platter
  std::deque<Piece> waiting_;
  std::map<uint64_t, uint64_t> dirty_;  // address to bytes
  uint64_t dirty_bytes_ = 0;            // with what is being written back
  uint64_t swept_ = 0;
  std::vector<WaitingFlush> flushes_;
  TimePoint bus_free_at_{0};
  bool busy_ = false;
  bool wrote_back_ = false;  // the last thing that the arm did
};

class HddArray final : public DiskModel {
 public:
  HddArray(EventQueue* events, const HddModel& model, int disks, uint64_t unit, Prng prng)
      : unit_(unit) {
    for (int i = 0; i < disks; ++i) {
      disks_.push_back(std::make_unique<HddServer>(events, model, Prng(prng.Next())));
    }
  }

  void Submit(const DiskIo& io, Done done) override {
    auto left = std::make_shared<Left>();
    left->done = std::move(done);
    if (io.kind == DiskIo::Kind::kFlush) {
      left->pieces = disks_.size();
      for (auto& disk : disks_) disk->Flush([left](Duration worked) { Ended(*left, worked); });
      return;
    }
    const uint64_t end = io.offset + std::max<uint64_t>(io.bytes, 1);
    const uint64_t first = io.offset / unit_;
    const uint64_t last = (end - 1) / unit_;
    left->pieces = last - first + 1;
    const bool write = io.kind == DiskIo::Kind::kWrite;
    for (uint64_t unit = first; unit <= last; ++unit) {
      const uint64_t from = std::max(io.offset, unit * unit_);
      const uint64_t to = std::min(end, (unit + 1) * unit_);
      const uint64_t on_disk = unit / disks_.size() * unit_ + from % unit_;
      disks_[unit % disks_.size()]->Submit(on_disk, to - from, write,
                                           [left](Duration worked) { Ended(*left, worked); });
    }
  }

 private:
  struct Left {
    uint64_t pieces = 0;
    Duration worked{0};
    Done done;
  };
  static void Ended(Left& left, Duration worked) {
    left.worked = std::max(left.worked, worked);
    if (--left.pieces == 0) left.done(left.worked);
  }

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

std::unique_ptr<DiskModel> MakeHdd(EventQueue* events, const HddModel& model, int disks,
                                   uint64_t stripe_unit, Prng prng) {
  return std::make_unique<HddArray>(events, model, disks, stripe_unit, prng);
}

}  // namespace weir::model
