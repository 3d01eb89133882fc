#include "tools/sim/oracles/fairness_bound.h"

#include <algorithm>

namespace weir::sim {

FairnessBound::FairnessBound(Cluster* cluster, Theorem theorem, const std::vector<Stream>& streams,
                             int depth)
    : cluster_(cluster), theorem_(theorem), depth_(depth) {
  for (const Stream& stream : streams) {
    index_[stream.id] = streams_.size();
    streams_.emplace_back();
    streams_.back().weight = stream.weight;
    streams_.back().bricks.resize(cluster->osds());
  }
  pairs_.assign(cluster->osds(), std::vector<Pair>(streams_.size() * streams_.size()));
  for (size_t brick = 0; brick < cluster->osds(); ++brick) Watch(brick);
}

size_t FairnessBound::IndexOf(ClassId id) const {
  return index_.at(id);
}

void FairnessBound::Watch(size_t brick) {
  SimOsd& osd = cluster_->osd(brick);
  osd.on_arrival = [this, brick](const Job& job) {
    State& state = streams_[IndexOf(job.request.class_id)];
    AtBrick& here = state.bricks[brick];
    const auto cost = static_cast<double>(job.request.cost);
    here.used = true;
    ++here.queued;
    here.largest_batch =
        std::max(here.largest_batch, cost + static_cast<double>(job.request.elsewhere));
    state.largest_cost = std::max(state.largest_cost, cost);
    Update(brick);
  };
  osd.on_dispatch = [this, brick](const Job& job) {
    --streams_[IndexOf(job.request.class_id)].bricks[brick].queued;
    Update(brick);
  };
  osd.on_completion = [this, brick](const Job& job) {
    State& state = streams_[IndexOf(job.request.class_id)];
    state.served += static_cast<double>(job.request.cost);
    state.bricks[brick].served += static_cast<double>(job.request.cost);
    for (size_t other = 0; other < pairs_.size(); ++other) {
      if (other == brick || theorem_ == Theorem::kTwo) Update(other);
    }
  };
}

double FairnessBound::Difference(size_t brick, size_t f, size_t g) const {
  const auto served = [&](size_t stream) {
    const State& state = streams_[stream];
    const double work = theorem_ == Theorem::kOne ? state.bricks[brick].served : state.served;
    return work / state.weight;
  };
  return served(f) - served(g);
}

int FairnessBound::BricksOf(const State& state) const {
  return static_cast<int>(std::count_if(state.bricks.begin(), state.bricks.end(),
                                        [](const AtBrick& at) { return at.used; }));
}

double FairnessBound::BoundOf(size_t brick, size_t f, size_t g, const Pair& pair) const {
  double bound = 0;
  for (size_t stream : {f, g}) {
    const State& state = streams_[stream];
    const double cost = state.largest_cost / state.weight;
    if (theorem_ == Theorem::kOne) {
      bound += (depth_ + 1) * cost;
    } else {
      bound += ((depth_ + pair.largest_queue) * BricksOf(state) + 1) * cost;
      bound += (pair.largest_queue + 1) * state.bricks[brick].largest_batch / state.weight;
    }
  }
  return bound;
}

void FairnessBound::Update(size_t brick) {
  const size_t n = streams_.size();
  for (size_t f = 0; f < n; ++f) {
    for (size_t g = f + 1; g < n; ++g) {
      Pair& pair = pairs_[brick][f * n + g];
      const AtBrick& at_f = streams_[f].bricks[brick];
      const AtBrick& at_g = streams_[g].bricks[brick];
      if (at_f.queued == 0 || at_g.queued == 0) {
        if (pair.open) Close(brick, f, g, &pair);
        continue;
      }
      const double difference = Difference(brick, f, g);
      if (!pair.open) pair = {true, difference, difference, 0};
      pair.low = std::min(pair.low, difference);
      pair.high = std::max(pair.high, difference);
      pair.largest_queue = std::max({pair.largest_queue, at_f.queued, at_g.queued});
    }
  }
}

void FairnessBound::Close(size_t brick, size_t f, size_t g, Pair* pair) {
  pair->open = false;
  ++intervals_;
  worst_ = std::max(worst_, (pair->high - pair->low) / BoundOf(brick, f, g, *pair));
}

double FairnessBound::WorstPart() {
  const size_t n = streams_.size();
  for (size_t brick = 0; brick < pairs_.size(); ++brick) {
    for (size_t f = 0; f < n; ++f) {
      for (size_t g = f + 1; g < n; ++g) {
        Pair& pair = pairs_[brick][f * n + g];
        if (pair.open) Close(brick, f, g, &pair);
      }
    }
  }
  return worst_;
}

}  // namespace weir::sim
