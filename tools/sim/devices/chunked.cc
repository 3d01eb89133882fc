#include "tools/sim/devices/chunked.h"

#include <algorithm>
#include <deque>

namespace weir::sim {
namespace {

class ChunkedDevice final : public Device {
 public:
  ChunkedDevice(EventQueue* events, double rate, PieceSize piece)
      : Device(events), rate_(rate), piece_(std::move(piece)) {}

  void Submit(Job* job) override {
    waiting_.push_back({job, job->io.bytes});
    if (!busy_) ServeNext();
  }
  void SetRate(double rate) override { rate_ = rate; }

 private:
  struct Part {
    Job* job;
    uint64_t left;
  };

  void ServeNext() {
    busy_ = !waiting_.empty();
    if (!busy_) return;
    Part part = waiting_.front();
    waiting_.pop_front();
    const bool whole = part.job->io.op != osd::qos::OpKind::kWrite;
    const uint64_t bytes = whole ? part.left : std::min(part.left, piece_());
    part.left -= bytes;
    const Duration time = FromSeconds(static_cast<double>(bytes) / rate_);
    if (part.left == 0) {
      const double total = static_cast<double>(part.job->io.bytes) / rate_;
      FinishAt(events().now() + time, FromSeconds(total), part.job);
    } else {
      events().After(time, [this, part] {
        waiting_.push_back(part);
        ServeNext();
      });
    }
  }
  void OnEnd(Job* /*job*/) override { ServeNext(); }

  double rate_;
  PieceSize piece_;
  std::deque<Part> waiting_;
  bool busy_ = false;
};

}  // namespace

DeviceFactory Chunked(double bytes_per_s, PieceSize piece) {
  return [=](EventQueue* events, Prng /*prng*/) {
    return std::make_unique<ChunkedDevice>(events, bytes_per_s, piece);
  };
}

}  // namespace weir::sim
