#include "tools/sim/baselines/dmclock.h"

#include <algorithm>
#include <deque>
#include <limits>

namespace weir::sim {
namespace {

using osd::qos::PullResult;
using osd::qos::Request;

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Tagged {
  Request* request;
  double reservation, proportion, limit;  // R (before shifts), P, L
};

struct Stream {
  double rate = 0;  // tokens per second; 0: none
  double weight = 1;
  double limit = 0;  // tokens per second; 0: none
  double last_reservation = 0, last_proportion = 0, last_limit = 0;
  double shift = 0;  // taken off every R tag of the stream
  std::deque<Tagged> waiting;

  [[nodiscard]] double Reservation() const { return waiting.front().reservation - shift; }
};

class DmClockPolicy final : public Policy {
 public:
  explicit DmClockPolicy(uint32_t depth) : depth_(depth) {}

  void SetClass(const ClassSpec& spec, TimePoint /*now*/) override {
    Stream& stream = streams_[spec.id];
    const auto tokens = [](uint64_t rate) { return static_cast<double>(rate) / kTokenBytes; };
    stream.weight = spec.weight;
    stream.rate = spec.reservation ? tokens(spec.reservation->bytes_per_s) : 0;
    stream.limit = spec.limit_bytes_per_s ? tokens(*spec.limit_bytes_per_s) : 0;
  }

  void Enqueue(Request* request, TimePoint now) override {
    Stream& stream = streams_[request->class_id];
    const double t = ToSeconds(now - TimePoint{0});
    const Job& job = *Job::Of(request);
    if (stream.waiting.empty()) stream.last_proportion = SmallestProportion(t, stream);
    stream.last_reservation =
        stream.rate > 0
            ? std::max(stream.last_reservation - stream.shift + job.rho / stream.rate, t) +
                  stream.shift
            : kNever;
    stream.last_proportion += job.delta / stream.weight;
    stream.last_limit =
        stream.limit > 0 ? std::max(stream.last_limit + job.delta / stream.limit, t) : 0;
    stream.waiting.push_back(
        {request, stream.last_reservation, stream.last_proportion, stream.last_limit});
    request->arrival = now;
    request->cost = TokensOf(request->bytes);
    ++queued_;
  }

  PullResult Pull(TimePoint now) override {
    PullResult result;
    if (in_flight_ >= depth_ || queued_ == 0) return result;
    const double t = ToSeconds(now - TimePoint{0});
    if (Stream* owed = Smallest([&](const Stream& s) {
          return s.rate > 0 && s.Reservation() <= t ? s.Reservation() : kNever;
        })) {
      result.request = Serve(owed, true, now);
    } else if (Stream* next = Smallest([&](const Stream& s) {
                 return s.waiting.front().limit <= t ? s.waiting.front().proportion : kNever;
               })) {
      next->shift += next->rate > 0
                         ? static_cast<double>(next->waiting.front().request->cost) / next->rate
                         : 0;
      result.request = Serve(next, false, now);
    } else {
      result.wake_at = NextDue();
    }
    return result;
  }

  void Completed(Request* /*request*/, TimePoint /*now*/) override { --in_flight_; }
  [[nodiscard]] uint64_t queued() const override { return queued_; }
  [[nodiscard]] uint64_t in_flight() const override { return in_flight_; }

 private:
  template <typename Key>
  Stream* Smallest(Key key) {
    Stream* best = nullptr;
    double least = kNever;
    for (auto& [id, stream] : streams_) {
      if (stream.waiting.empty()) continue;
      const double value = key(stream);
      if (value >= least) continue;
      least = value;
      best = &stream;
    }
    return best;
  }

  double SmallestProportion(double now, const Stream& newcomer) {
    Stream* first = Smallest([](const Stream& s) { return s.waiting.front().proportion; });
    if (first == nullptr) return std::max(now, newcomer.last_proportion);
    return std::max(first->waiting.front().proportion, newcomer.last_proportion);
  }

  Request* Serve(Stream* stream, bool by_reservation, TimePoint now) {
    Request* request = stream->waiting.front().request;
    stream->waiting.pop_front();
    request->guaranteed = by_reservation;
    request->dispatched = now;
    --queued_;
    ++in_flight_;
    return request;
  }

  [[nodiscard]] TimePoint NextDue() const {
    double due = kNever;
    for (const auto& [id, stream] : streams_) {
      if (stream.waiting.empty()) continue;
      due = std::min(due, stream.waiting.front().limit);
      if (stream.rate > 0) due = std::min(due, stream.Reservation());
    }
    return TimePoint{0} + FromSeconds(due) + Duration(1);
  }

  uint32_t depth_;
  std::map<ClassId, Stream> streams_;
  uint64_t queued_ = 0;
  uint64_t in_flight_ = 0;
};

class Coordinators final : public CoordinatorHook {
 public:
  void OnSend(Job* job) override {
    Served& all = all_[{job->io.coordinator, job->request.class_id}];
    Served& mark = marks_[{job->io.coordinator, job->request.class_id, job->io.osd}];
    const auto own = static_cast<double>(TokensOf(job->io.bytes));
    job->delta = all.total - mark.total + own;
    job->rho = all.reserved - mark.reserved + own;
    mark = all;
  }
  void OnDone(const Job& job) override {
    Served& all = all_[{job.io.coordinator, job.request.class_id}];
    Served& here = marks_[{job.io.coordinator, job.request.class_id, job.io.osd}];
    const auto cost = static_cast<double>(TokensOf(job.io.bytes));
    // What a server did itself it has tagged already: only what others did counts.
    all.total += cost;
    here.total += cost;
    if (!job.request.guaranteed) return;
    all.reserved += cost;
    here.reserved += cost;
  }

 private:
  struct Served {
    double total = 0, reserved = 0;
  };
  std::map<std::pair<size_t, ClassId>, Served> all_;
  std::map<std::tuple<size_t, ClassId, size_t>, Served> marks_;
};

}  // namespace

PolicyFactory DmClock(uint32_t depth) {
  return [=](TimePoint) { return std::make_unique<DmClockPolicy>(depth); };
}

std::unique_ptr<CoordinatorHook> DmClockCoordinators() {
  return std::make_unique<Coordinators>();
}

}  // namespace weir::sim
