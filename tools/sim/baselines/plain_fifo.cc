#include "tools/sim/baselines/plain_fifo.h"

#include <deque>

namespace weir::sim {
namespace {

using osd::qos::PullResult;
using osd::qos::Request;

class Fifo final : public Policy {
 public:
  explicit Fifo(uint32_t depth) : depth_(depth) {}

  void SetClass(const ClassSpec& /*spec*/, TimePoint /*now*/) override {}
  void Enqueue(Request* request, TimePoint /*now*/) override { waiting_.push_back(request); }
  PullResult Pull(TimePoint /*now*/) override {
    if (waiting_.empty() || in_flight_ >= depth_) return {};
    Request* request = waiting_.front();
    waiting_.pop_front();
    ++in_flight_;
    return {request, std::nullopt};
  }
  void Completed(Request* /*request*/, TimePoint /*now*/) override { --in_flight_; }
  [[nodiscard]] uint64_t queued() const override { return waiting_.size(); }
  [[nodiscard]] uint64_t in_flight() const override { return in_flight_; }

 private:
  const uint32_t depth_;
  uint64_t in_flight_ = 0;
  std::deque<Request*> waiting_;
};

}  // namespace

PolicyFactory PlainFifo(uint32_t depth) {
  return [depth](TimePoint) { return std::make_unique<Fifo>(depth); };
}

}  // namespace weir::sim
