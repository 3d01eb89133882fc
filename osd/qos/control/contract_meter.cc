#include "osd/qos/control/contract_meter.h"

#include <algorithm>
#include <cmath>

#include "common/qos/delay_bound.h"

namespace weir::osd::qos {
namespace {

// What the class is promised, as far as measurements of it depend on it.
ContractState::Terms TermsOf(const ClassSpec& spec) {
  ContractState::Terms terms;
  terms.service = spec.service;
  terms.disk_bound = spec.disk.latency;
  if (spec.reservation) {
    terms.rate = spec.reservation->bytes_per_s;
    terms.iops = spec.reservation->iops;
  }
  return terms;
}

}  // namespace

void ContractMeter::Changed(ClassQueue* queue, double iops_max, double unit_bytes) {
  ContractState& state = queue->contract;
  const ClassSpec& spec = queue->spec;
  const ContractState::Terms terms = TermsOf(spec);
  if (!(terms == state.terms)) {
    const bool same_clock = terms.service.bound > Duration(0) && state.clock &&
                            terms.service.max_pending == state.terms.service.max_pending;
    if (!same_clock) state.clock.reset();
    state.requests = 0;
    state.seconds = 0;
    state.terms = terms;
    state.disk_bound = terms.disk_bound;
  }
  if (spec.service.bound > Duration(0) && !state.clock) {
    state.clock = std::make_unique<DelayClock>(spec.service.max_pending);
  }
  state.unit_bytes = unit_bytes;
  const double fastest = iops_max > 0 ? iops_max : 1e12;
  const auto needed = spec.service.bound > Duration(0)
                          ? IopsForDelay(spec.service.max_pending, fastest, spec.service.bound)
                          : std::nullopt;
  const double declared = std::max(spec.service.iops, static_cast<double>(terms.iops));
  state.latency_bound = needed && *needed > declared;
  state.counts_rate = !state.latency_bound && spec.reservation &&
                      spec.reservation->admission == AdmissionKind::kMeasured;
}

void ContractMeter::NoteDelay(ClassQueue* queue, Duration delay, TimePoint now) {
  ContractState& state = queue->contract;
  const bool by_clock = state.clock != nullptr;
  const Duration bound = by_clock ? state.terms.service.bound : state.disk_bound;
  ++state.second_done;
  if (delay > bound) {
    ++state.second_missed;
    ++queue->counters.deadline_misses;
  }
  // The worst case (10) at the rate that the bound needs is the bound itself.
  if (state.latency_bound) monitor_.NoteDelay(ToSeconds(delay) / ToSeconds(bound), now);
}

void ContractMeter::Completed(ClassQueue* queue, const Request& request, bool promised,
                              TimePoint now) {
  ContractState& state = queue->contract;
  if (state.clock) {
    const Duration delay = state.clock->Completed(request.sequence, now);
    if (delay > Duration(0)) NoteDelay(queue, delay, now);
  } else if (state.disk_bound > Duration(0)) {
    NoteDelay(queue, now - request.arrival, now);
  }
  if (state.counts_rate && promised) {
    const double units = static_cast<double>(request.bytes) / state.unit_bytes;
    monitor_.NoteRequest(now, std::max(1.0, units));
  }
  ++state.requests;
  state.active = true;
}

bool ContractMeter::CloseSecond(ClassQueue* queue, bool waited_throughout) {
  ContractState& state = queue->contract;
  if (state.active) ++state.seconds;
  state.active = false;
  if (!state.clock && state.disk_bound == Duration(0)) return false;
  const double allowed =
      (1 - state.terms.service.probability) * static_cast<double>(state.second_done);
  const auto missed = static_cast<double>(state.second_missed);
  const bool stuck = state.second_done == 0 && waited_throughout;
  state.second_done = state.second_missed = 0;
  return stuck || missed > std::ceil(allowed - 1e-9);
}

bool ContractMeter::IsMeasured(const ClassQueue& queue) {
  const ContractState& state = queue.contract;
  if (!state.latency_bound && !state.counts_rate) return false;
  return state.requests >= kEnoughRequests || state.seconds >= kEnoughSeconds;
}

}  // namespace weir::osd::qos
