#include "common/disk/model/hdd_mechanics.h"

#include <algorithm>
#include <cmath>

namespace weir::model {
namespace {

// p of the seek curve: mean = s1 + (full - s1) * 2 / ((p + 1)(p + 2)).
double ExponentOf(const HddModel& model) {
  const double part = (model.mean_seek_s - model.first_seek_s) /
                      std::max(1e-9, model.full_seek_s - model.first_seek_s);
  // (p + 1)(p + 2) = 2 / part.
  return (-3 + std::sqrt(1 + 8 / std::max(part, 1e-9))) / 2;
}

}  // namespace

HddMechanics::HddMechanics(const HddModel& model, Prng prng)
    : model_(model), exponent_(ExponentOf(model)), prng_(prng) {}

double HddMechanics::Seek(double distance) const {
  if (model_.constant_seek) return model_.mean_seek_s;
  return model_.first_seek_s +
         (model_.full_seek_s - model_.first_seek_s) * std::pow(distance, exponent_);
}

double HddMechanics::Continue(uint64_t lba, uint64_t bytes) {
  const auto stream = std::find(streams_.begin(), streams_.end(), lba);
  if (stream == streams_.end()) return -1;
  const double change = stream == streams_.begin() ? 0 : model_.switch_s;
  streams_.erase(stream);
  return model_.overhead_s + change + static_cast<double>(bytes) / model_.bytes_per_s;
}

void HddMechanics::Remember(uint64_t end) {
  streams_.push_front(end);
  if (streams_.size() > static_cast<size_t>(model_.segments)) streams_.pop_back();
}

double HddMechanics::Positioning(uint64_t lba, bool ahead) const {
  if (lba == head_) return 0;
  if (ahead && std::find(streams_.begin(), streams_.end(), lba) != streams_.end()) {
    return model_.switch_s;
  }
  const auto distance = static_cast<double>(lba > head_ ? lba - head_ : head_ - lba);
  return Seek(std::min(1.0, distance / static_cast<double>(model_.capacity)));
}

double HddMechanics::Access(uint64_t lba, uint64_t bytes, bool ahead) {
  const double continued = ahead && model_.segments > 0 ? Continue(lba, bytes) : -1;
  const uint64_t from = head_;
  head_ = lba + bytes;
  if (model_.segments > 0) Remember(head_);
  if (continued >= 0) return continued;
  double seconds = model_.overhead_s + static_cast<double>(bytes) / model_.bytes_per_s;
  if (lba != from) {
    const auto distance = static_cast<double>(lba > from ? lba - from : from - lba);
    seconds += Seek(std::min(1.0, distance / static_cast<double>(model_.capacity)));
    seconds += prng_.Real() * 60 / model_.rpm;
  }
  return seconds;
}

}  // namespace weir::model
