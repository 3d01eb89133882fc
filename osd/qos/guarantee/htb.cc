#include "osd/qos/guarantee/htb.h"

#include <algorithm>
#include <cmath>
#include <memory>

namespace weir::osd::qos {
namespace {

constexpr uint64_t kAfterAllInFull = uint64_t{1} << 62;  // no sequence number gets there
constexpr int64_t kMostElsewhere = int64_t{1} << 40;     // tokens; times the parts it still fits
constexpr int64_t kDebtCaps = 6;          // that a class may owe here for what it got elsewhere
constexpr int64_t kDebtMicros = 100'000;  // or so much of the device's time, if that is more
constexpr double kMicros = 1e6;           // tokens of a leaf in time, per second
constexpr double kTookGain = 1.0 / 8;
// Parts that a request is counted in, so that what was served elsewhere need not be whole.
constexpr int64_t kIopsParts = 64;

int64_t MicrosOf(double seconds) {
  return std::llround(seconds * kMicros);
}

int64_t PartsOf(const ClassQueue& queue, int64_t tokens) {
  if (queue.unit_tokens <= 0 || tokens <= queue.unit_tokens) return kIopsParts;
  return (tokens * kIopsParts + queue.unit_tokens - 1) / queue.unit_tokens;
}

// Any time left will do: what a request takes is known when it is done, and who had to save it up
// first would see others' surplus pass meanwhile.
TimePoint TimeCoversAt(MoreLeaves* more, TimePoint now) {
  return more->time->CoversAt(1, now);
}

// The leaves of a promise beside the one in bytes.
TimePoint RestCoversAt(ClassQueue* queue, int64_t tokens, TimePoint now) {
  MoreLeaves* const more = queue->more.get();
  TimePoint due{0};
  if (more == nullptr) return due;
  if (more->iops) {
    due = more->iops->CoversAt(queue->leaf ? kIopsParts : PartsOf(*queue, tokens), now);
  }
  return more->time && !queue->rents_time() ? std::max(due, TimeCoversAt(more, now)) : due;
}

TimePoint PromiseCoversAt(ClassQueue* queue, int64_t tokens, TimePoint now) {
  const bool has_iops = queue->more && queue->more->iops;
  if (!queue->leaf) return has_iops ? RestCoversAt(queue, tokens, now) : TimePoint::Max();
  return std::max(queue->leaf->CoversAt(tokens, now), RestCoversAt(queue, tokens, now));
}

TimePoint BoundCoversAt(ClassQueue* queue, int64_t tokens, TimePoint now) {
  if (!queue->more || !queue->more->bound) return TimePoint::Max();
  return queue->more->bound->CoversAt(PartsOf(*queue, tokens), now);
}

TimePoint DiskCoversAt(ClassQueue* queue, int64_t tokens, TimePoint now) {
  MoreLeaves* const more = queue->more.get();
  if (more == nullptr || !more->time || !queue->rents_time()) return TimePoint::Max();
  const TimePoint due = TimeCoversAt(more, now);
  return more->disk_rate ? std::max(due, more->disk_rate->CoversAt(tokens, now)) : due;
}

// Measured admission promises more than the disk has, counting on not all asking at once. When they
// do, what was promised whatever is measured goes first (RULES.md §7 rule 3).
bool OwedInFull(const ClassQueue& queue, bool promise_covers, bool bound_covers, bool disk_covers) {
  const auto& reservation = queue.spec.reservation;
  const bool measured = reservation && reservation->admission == AdmissionKind::kMeasured;
  if (disk_covers || (queue.transactions && !measured)) return true;
  return (promise_covers && !measured) ||
         (bound_covers && queue.spec.admission == AdmissionKind::kAdditive);
}

void SetMoreLeaves(ClassQueue* queue, TimePoint now) {
  const VirtualDisk& disk = queue->spec.disk;
  const bool rated = queue->rents_time() && disk.type == ClassType::kThroughput;
  if (queue->promised_iops == 0 && queue->bound_iops == 0 && queue->time_share <= 0) {
    queue->more.reset();
    return;
  }
  if (!queue->more) queue->more = std::make_unique<MoreLeaves>();
  MoreLeaves& more = *queue->more;
  SetLeaf(&more.iops, queue->promised_iops * kIopsParts * kTokenBytes, kIopsParts, now);
  SetLeaf(&more.bound, queue->bound_iops * kIopsParts * kTokenBytes, kIopsParts, now);
  SetLeaf(&more.time, static_cast<uint64_t>(queue->time_share * kMicros * kTokenBytes), 0, now);
  SetLeaf(&more.disk_rate, rated ? disk.throughput_bytes_per_s : 0, queue->largest_tokens, now);
}

}  // namespace

void Htb::PromiseChanged(ClassQueue* queue, TimePoint now) {
  if (queue->leaf) leaf_caps_ -= queue->leaf->cap();
  SetLeaf(&queue->leaf, queue->promised, queue->largest_tokens, now);
  if (queue->leaf) leaf_caps_ += queue->leaf->cap();
  SetMoreLeaves(queue, now);
  // What a request tells of was got since the one before: all that flowed in meanwhile pays for it.
  const int64_t spill = queue->promise_total ? kMostElsewhere : 0;
  if (queue->leaf) queue->leaf->KeepSpill(spill);
  if (queue->more && queue->more->iops) queue->more->iops->KeepSpill(spill);
}

void Htb::Remove(ClassQueue* queue) {
  Withdraw(queue);
  if (queue->leaf) leaf_caps_ -= queue->leaf->cap();
  queue->leaf.reset();
  queue->more.reset();
}

void Htb::Offer(ClassQueue* queue, TimePoint now) {
  if (!queue->leaf && !queue->more) {
    Withdraw(queue);
    return;
  }
  const Request& head = *queue->requests.front();
  const int64_t tokens = TokensOf(head.bytes);
  const TimePoint promise = PromiseCoversAt(queue, tokens, now);
  const TimePoint bound = BoundCoversAt(queue, tokens, now);
  const TimePoint disk = DiskCoversAt(queue, tokens, now);
  TimePoint due = std::min({promise, bound, disk});
  if (queue->transactions) {
    const TimePoint own = queue->transactions->Next(now).at;
    due = std::min(due, std::max(own, RestCoversAt(queue, tokens, now)));
  }
  if (due <= now) {
    waiting_.Remove(queue);
    const bool in_full = OwedInFull(*queue, promise <= now, bound <= now, disk <= now);
    ready_.Put(queue, head.sequence + (in_full ? 0 : kAfterAllInFull), head.sequence);
  } else {
    ready_.Remove(queue);
    waiting_.Put(queue, due, head.sequence);
  }
}

void Htb::Withdraw(ClassQueue* queue) {
  waiting_.Remove(queue);
  ready_.Remove(queue);
}

void Htb::ServedElsewhere(ClassQueue* queue, int64_t tokens, TimePoint now) {
  if (queue->leaf) {
    queue->leaf->Refill(now);
    queue->leaf->TakeElsewhere(-kDebtCaps * queue->leaf->cap(), tokens);
  }
  if (queue->more && queue->more->iops) {
    TokenBucket& iops = *queue->more->iops;
    // How many requests that was, each taken to be as large as the one that tells of them.
    const int64_t each = TokensOf(queue->requests.front()->bytes);
    const int64_t parts = queue->leaf ? kIopsParts : PartsOf(*queue, each);
    iops.Refill(now);
    const int64_t bounded = std::min(tokens, kMostElsewhere);
    iops.TakeElsewhere(-kDebtCaps * iops.cap(), bounded * parts / each);
  }
}

ClassQueue* Htb::Pick(TimePoint now) {
  while (!waiting_.empty() && waiting_.TopKey() <= now) {
    ClassQueue* queue = waiting_.Top();
    waiting_.Remove(queue);
    Offer(queue, now);
  }
  return ready_.empty() ? nullptr : ready_.Top();
}

// Of the leaves that could pay the first does; the others are drained too, but owe nothing for it.
void Htb::Take(ClassQueue* queue, int64_t tokens, TimePoint now) {
  enum class Payer : uint8_t { kPromise, kBound, kDisk };
  Payer payer = Payer::kPromise;
  if (queue->more && PromiseCoversAt(queue, tokens, now) > now) {
    if (BoundCoversAt(queue, tokens, now) <= now) {
      payer = Payer::kBound;
    } else if (DiskCoversAt(queue, tokens, now) <= now) {
      payer = Payer::kDisk;
    }
  }
  const auto take = [now](std::optional<TokenBucket>* leaf, int64_t amount, bool pays) {
    if (!*leaf) return;
    (*leaf)->Refill(now);
    pays ? (*leaf)->Take(amount) : (*leaf)->TakeDownTo(0, amount);
  };
  const int64_t parts = PartsOf(*queue, tokens);
  take(&queue->leaf, tokens, payer == Payer::kPromise);
  Request* const head = queue->requests.front();
  if (MoreLeaves* const more = queue->more.get(); more != nullptr) {
    take(&more->iops, queue->leaf ? kIopsParts : parts, payer == Payer::kPromise);
    take(&more->bound, parts, payer == Payer::kBound);
    const bool time_pays = queue->rents_time() ? payer == Payer::kDisk : payer == Payer::kPromise;
    const double charge = std::min(more->estimate, kDebtMicros / kMicros);
    take(&more->time, MicrosOf(charge), time_pays);
    take(&more->disk_rate, tokens, payer == Payer::kDisk);
    if (more->time && time_pays) head->charge = std::max(charge, 1 / kMicros);
  }
  if (queue->transactions) queue->transactions->Take(*head, now);
}

void Htb::Completed(ClassQueue* queue, const Request& request, Duration device_time,
                    TimePoint now) {
  MoreLeaves* const more = queue->more.get();
  if (more == nullptr || !more->time) return;
  const double took = ToSeconds(device_time);
  if (device_time > Duration(0)) {  // else cancelled
    more->estimate += more->estimate > 0 ? (took - more->estimate) * kTookGain : took;
  }
  // A charge with an account is surplus `cooperative`'s.
  const bool paid = request.charge > 0 && request.account == Request::Account::kNone;
  if (!paid || request.queue != queue->id()) return;
  const int64_t rest = MicrosOf(took) - MicrosOf(request.charge);
  if (rest <= 0) {
    more->time->Take(rest);
  } else {  // one stall of the device is no debt of minutes
    more->time->TakeDownTo(-std::max(kDebtCaps * more->time->cap(), kDebtMicros), rest);
  }
  more->time->CutAt(more->time->cap());
  const bool offered = waiting_.Contains(*queue) || ready_.Contains(*queue);
  if (offered) Offer(queue, now);  // it covers the head at another moment
}

// Little's law: who has n under way and waits T for each gets n / T, which is his rate at n / rate.
// Who waited no longer is not behind; what his own limit held back, which also cuts his rate, no
// other could give him.
Duration Htb::SpanOf(const ClassQueue& queue, const Request& done, TimePoint now) const {
  // Of what it is served elsewhere nothing is under way here.
  if (queue.promise_total && done.elsewhere > 0) return Duration::max();
  const int64_t tokens = TokensOf(done.bytes);
  const auto bytes =
      static_cast<double>(queue.counters.queued_bytes + queue.device_bytes - queue.landed_bytes);
  double span = 0;
  if (queue.leaf) {
    if (queue.leaf->CoversAt(tokens) > now) return Duration::max();
    span = bytes / static_cast<double>(queue.promised);
  }
  if (queue.more && queue.more->iops) {
    const int64_t parts = queue.leaf ? kIopsParts : PartsOf(queue, tokens);
    if (queue.more->iops->CoversAt(parts) > now) return Duration::max();
    const uint64_t here = queue.counters.queued_ops + queue.device_ops - queue.landed_ops;
    const auto all = static_cast<double>(here) * static_cast<double>(parts) / kIopsParts;
    span = std::max(span, all / static_cast<double>(queue.promised_iops));
  }
  if (span > 0 && queue.ceiling) {
    span =
        std::max(span, bytes / static_cast<double>(std::max<uint64_t>(queue.ceiling->rate(), 1)));
  }
  const Duration waited = now - done.arrival - done.held_by_limit;
  return span > 0 && waited > FromSeconds(span) ? FromSeconds(span) : Duration::max();
}

}  // namespace weir::osd::qos
