#include "osd/qos/surplus/cooperative.h"

#include <algorithm>

namespace weir::osd::qos {
namespace {

constexpr double kServiceTimeGain = 1.0 / 8;
// Sums of the same times in another order differ by so much: relative, and in seconds.
constexpr double kRounding = 1e-13;
constexpr double kTick = 1e-9;

}  // namespace

double Cooperative::ShareOf(const ClassQueue& queue) const {
  if (queue.is_disk()) return std::max(queue.spec.disk.peak, 1e-6);
  return kBestEffortShare * queue.spec.weight / best_effort_weight_;
}

bool Cooperative::Entitled(double clock) const {
  return clock <= system_clock_ + std::max(kTick, kRounding * system_clock_);
}

double Cooperative::ClockOf(const ClassQueue& queue) const {
  return queue.disk.parked ? std::max(queue.disk.clock, system_clock_) : queue.disk.clock;
}

// Takes notice of a new class, and of a new weight or contract of a known one.
void Cooperative::Meet(ClassQueue* queue) {
  DiskState& disk = queue->disk;
  const VirtualDisk& contract = queue->spec.disk;
  if (!disk.known) {
    disk.known = true;
    disks_[queue->spec.id] = queue;
  }
  const double weight = queue->is_disk() ? 0 : queue->spec.weight;
  best_effort_weight_ += weight - disk.best_effort_weight;
  disk.best_effort_weight = weight;
  if (disk.filed != contract.type) {
    Unfile(queue);
    disk.filed = contract.type;
    disk.missed = disk.late = 0;
    disk.first_on_time = nullptr;
  }
  const bool new_rate = disk.rate_filed != contract.throughput_bytes_per_s;
  if (contract.type == ClassType::kThroughput && (!disk.average_start || new_rate)) {
    disk.average_start = queue->requests.front()->arrival;
    disk.average_bytes = 0;
    disk.rate_filed = contract.throughput_bytes_per_s;
  }
}

void Cooperative::Offer(ClassQueue* queue) {
  Meet(queue);
  DiskState& disk = queue->disk;
  if (disk.parked) disk.clock = std::max(disk.clock, system_clock_);
  disk.parked = false;
  disk.offered = true;
  by_clock_.Put(queue, disk.clock, queue->requests.front()->sequence);
  File(queue);
}

void Cooperative::File(ClassQueue* queue) {
  DiskState& disk = queue->disk;
  const uint64_t sequence = queue->requests.front()->sequence;
  switch (disk.filed) {
    case ClassType::kLatency:
      // A head that was brought forward is not the oldest: count again from there.
      if (const Request* second = queue->requests.front()->next;
          second != nullptr && second->sequence < sequence) {
        disk.first_on_time = nullptr;
        disk.missed = 0;
      }
      if (disk.first_on_time == nullptr && disk.missed == 0) {
        disk.first_on_time = queue->requests.front();
      }
      RefreshLate(queue);
      break;
    case ClassType::kThroughput:
      // The moment up to which its rate has been served: the earliest is furthest behind.
      by_average_.Put(queue,
                      ToSeconds(*disk.average_start - TimePoint{}) +
                          disk.average_bytes / static_cast<double>(disk.rate_filed),
                      sequence);
      break;
    case ClassType::kBestEffort:
    case ClassType::kRentADisk:
      by_turn_.Put(queue, disk.last_turn, sequence);
      break;
  }
}

void Cooperative::Unfile(ClassQueue* queue) {
  switch (queue->disk.filed) {
    case ClassType::kLatency:
      by_lateness_.Remove(queue);
      by_due_.Remove(queue);
      break;
    case ClassType::kThroughput:
      by_average_.Remove(queue);
      break;
    case ClassType::kBestEffort:
    case ClassType::kRentADisk:
      by_turn_.Remove(queue);
      break;
  }
}

void Cooperative::Withdraw(ClassQueue* queue) {
  DiskState& disk = queue->disk;
  disk.offered = false;  // its clock stays in the heap: found idle there, it loses its credit
  Unfile(queue);
  if (queue->requests.empty()) {
    disk.missed = disk.late = 0;
    disk.first_on_time = nullptr;
  }
}

void Cooperative::Remove(ClassQueue* queue) {
  Withdraw(queue);
  by_clock_.Remove(queue);
  best_effort_weight_ -= queue->disk.best_effort_weight;
  disks_.erase(queue->spec.id);
  if (turn_of_ == queue) turn_of_ = nullptr;
  if (decision_.queue == queue || decision_.payer == queue) decision_ = {};
  queue->disk = {};
}

void Cooperative::Grew(ClassQueue* queue) {
  DiskState& disk = queue->disk;
  if (disk.filed != ClassType::kLatency) return;
  if (disk.first_on_time == nullptr) disk.first_on_time = queue->requests.back();
  if (disk.offered) RefreshLate(queue);
}

// `request` is about to leave the queue, as its head or cancelled from anywhere.
void Cooperative::Leaving(ClassQueue* queue, Request* request) {
  DiskState& disk = queue->disk;
  if (disk.filed != ClassType::kLatency) return;
  if (request == disk.first_on_time) {
    disk.first_on_time = request->next;
  } else if (disk.missed > 0 &&
             (disk.first_on_time == nullptr || request->sequence < disk.first_on_time->sequence)) {
    --disk.missed;
  }
}

void Cooperative::RefreshLate(ClassQueue* queue) {
  DiskState& disk = queue->disk;
  const Duration bound = queue->spec.disk.latency;
  while (disk.first_on_time != nullptr && disk.first_on_time->arrival + bound < now_) {
    ++disk.missed;
    disk.first_on_time = disk.first_on_time->next;
  }
  disk.late = disk.missed;
  TimePoint due = TimePoint::Max();
  uint64_t ahead = disk.missed;
  const Request* request = disk.first_on_time;
  for (int i = 0; request != nullptr && i < kLookAhead; ++i, request = request->next) {
    const Duration needs = FromSeconds(disk.estimate * static_cast<double>(++ahead));
    const TimePoint missing_after = request->arrival + bound - needs;
    if (missing_after < now_) {
      ++disk.late;
    } else {
      due = std::min(due, missing_after + Duration(1));
    }
  }
  const uint64_t sequence = queue->requests.front()->sequence;
  by_lateness_.Put(queue, -static_cast<int64_t>(disk.late), sequence);
  if (due == TimePoint::Max()) {
    by_due_.Remove(queue);
  } else {
    by_due_.Put(queue, due, sequence);
  }
}

bool Cooperative::KeepsTurn() const {
  if (turn_of_ == nullptr || !turn_of_->disk.offered) return false;
  return turn_used_ < ToSeconds(options_.quantum) &&
         turn_of_->requests.front()->lba == turn_of_->disk.next_lba;
}

ClassQueue* Cooperative::MostEntitled() {
  if (KeepsTurn()) return turn_of_;
  while (!by_clock_.empty() && Entitled(by_clock_.TopKey())) {
    ClassQueue* queue = by_clock_.Top();
    if (queue->disk.offered) return queue;
    by_clock_.Remove(queue);
    queue->disk.parked = true;
  }
  return nullptr;
}

ClassQueue* Cooperative::MostLate() {
  while (!by_due_.empty() && by_due_.TopKey() <= now_) RefreshLate(by_due_.Top());
  if (by_lateness_.empty() || by_lateness_.TopKey() == 0) return nullptr;
  return by_lateness_.Top();
}

ClassQueue* Cooperative::NextForSpare() {
  if (ClassQueue* late = MostLate(); late != nullptr) return late;
  if (!by_lateness_.empty()) return by_lateness_.Top();
  if (!by_average_.empty()) return by_average_.Top();
  return by_turn_.empty() ? nullptr : by_turn_.Top();
}

bool Cooperative::MayLend(const ClassQueue& donor, const ClassQueue& borrower) const {
  const DiskState& disk = donor.disk;
  const double estimate = std::max(disk.estimate, borrower.disk.estimate);
  const double until_next_turn = (1 / ShareOf(donor) + 2) * estimate;
  const double time = ToSeconds(now_ - *disk.average_start) + until_next_turn;
  const double owed = static_cast<double>(disk.rate_filed) * (1 - donor.spec.disk.tolerance) * time;
  return disk.average_bytes >= owed;
}

ClassQueue* Cooperative::Pick() {
  ClassQueue* entitled = MostEntitled();
  if (entitled == nullptr) {
    decision_ = {.queue = NextForSpare()};
    return decision_.queue;
  }
  decision_ = {.queue = entitled, .payer = entitled};
  if (entitled->disk.filed == ClassType::kThroughput) {
    ClassQueue* late = MostLate();
    if (late != nullptr && MayLend(*entitled, *late)) decision_.queue = late;
  }
  return decision_.queue;
}

void Cooperative::Released(ClassQueue* queue, bool guaranteed) {
  Request& head = *queue->requests.front();
  ClassQueue* payer = decision_.queue == queue ? decision_.payer : nullptr;
  if (guaranteed) {
    // Served by another stage: on its own account as long as it is entitled. Beyond that the time
    // is not there to be shared, and moves no clock: others would claim it back later.
    payer = queue->disk.offered && Entitled(queue->disk.clock) ? queue : nullptr;
    if (payer == nullptr) {
      Leave(queue, &head);
      return;
    }
  }
  head.charge = options_.count_requests ? 1 : queue->disk.estimate;
  head.account = payer == nullptr ? Request::Account::kSpare : Request::Account::kCharged;
  head.payer = payer == nullptr ? queue->spec.id : payer->spec.id;
  if (payer == nullptr) {
    queue->disk.last_turn = ++turns_;
    ChargeSpare(queue, head.charge);
  } else {
    Charge(payer, head.charge);
  }
  if (payer == queue && turn_of_ != queue) {
    turn_of_ = queue;
    turn_used_ = 0;
  } else if (payer != queue) {
    turn_of_ = nullptr;
  }
  Leave(queue, &head);
}

void Cooperative::Leave(ClassQueue* queue, Request* head) {
  queue->disk.next_lba = head->lba + head->bytes;
  Leaving(queue, head);
  decision_ = {};
}

void Cooperative::Charge(ClassQueue* payer, double time) {
  DiskState& disk = payer->disk;
  system_clock_ += time;
  disk.clock += time / ShareOf(*payer);
  if (!ClassHeap<double, HeapSlot::kSurplus>::Contains(*payer)) return;
  const Request* head = payer->requests.front();
  by_clock_.Put(payer, disk.clock, head == nullptr ? 0 : head->sequence);
}

void Cooperative::ChargeSpare(ClassQueue* queue, double time) {
  switch (options_.spare) {
    case SpareCharge::kSystem:
      system_clock_ += time;
      return;
    case SpareCharge::kOwner:
      Charge(queue, time);
      return;
    case SpareCharge::kNobody:
      return;
  }
}

void Cooperative::CountForAverage(ClassQueue* queue, uint64_t bytes, TimePoint now) const {
  DiskState& disk = queue->disk;
  if (!disk.average_start) return;
  disk.average_bytes += static_cast<double>(bytes);
  const Duration window = options_.throughput_window;
  const Duration age = now - *disk.average_start;
  if (window <= Duration::zero() || age <= window) return;
  // Forgets half the window at once; the average stays.
  disk.average_bytes *= ToSeconds(window) / 2 / ToSeconds(age);
  disk.average_start = now - window / 2;
}

void Cooperative::Completed(ClassQueue* queue, const Request& request, Duration device_time,
                            TimePoint now) {
  DiskState& disk = queue->disk;
  if (device_time <= Duration::zero()) {
    Settle(queue, request, -request.charge);
    return;
  }
  const double time = ToSeconds(device_time);
  disk.estimate =
      disk.estimate <= 0 ? time : disk.estimate + kServiceTimeGain * (time - disk.estimate);
  if (turn_of_ == queue) turn_used_ += time;
  if (disk.filed == ClassType::kThroughput) CountForAverage(queue, request.bytes, now);
  Settle(queue, request, (options_.count_requests ? 1 : time) - request.charge);
  now_ = std::max(now_, now);
  if (disk.offered) File(queue);
}

void Cooperative::Settle(ClassQueue* queue, const Request& request, double correction) {
  if (request.account == Request::Account::kSpare) ChargeSpare(queue, correction);
  if (request.account != Request::Account::kCharged) return;
  const auto payer = disks_.find(request.payer);
  if (payer == disks_.end()) {
    system_clock_ += correction;
  } else {
    Charge(payer->second, correction);
  }
}

}  // namespace weir::osd::qos
