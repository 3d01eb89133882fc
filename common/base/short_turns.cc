#include "common/base/short_turns.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <thread>

namespace weir {
namespace {

// What the system call takes, of the size that it had first; the C library does not say.
struct Attributes {
  uint32_t size;
  uint32_t policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime_ns;  // of the normal policy: the turn
  uint64_t deadline_ns;
  uint64_t period_ns;
};
static_assert(sizeof(Attributes) == 48);

// The shortest that the kernel grants.
constexpr Duration kTurn = std::chrono::microseconds(100);

constexpr uint64_t kResetOnFork = 1;  // SCHED_FLAG_RESET_ON_FORK
constexpr int32_t kMostWeight = -20;  // the nicest to itself

std::optional<Attributes> AttributesOfThisThread() {
  Attributes attributes{};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0) return std::nullopt;
  return attributes;
}

std::optional<Attributes> NormalPolicy() {
  std::optional<Attributes> attributes = AttributesOfThisThread();
  if (attributes && attributes->policy != SCHED_OTHER) return std::nullopt;
  return attributes;
}

thread_local bool runs_ahead = false;

bool RunAhead(int policy) {
  const sched_param priority{.sched_priority = 1};
  return sched_setscheduler(0, policy, &priority) == 0;
}

}  // namespace

void TakeShortTurns() {
  std::optional<Attributes> attributes = NormalPolicy();
  if (!attributes || attributes->runtime_ns == 0) return;
  attributes->runtime_ns = static_cast<uint64_t>(kTurn.count());
  (void)syscall(SYS_sched_setattr, 0, &*attributes, 0);
}

bool RunAheadOfTurns() {
  runs_ahead = RunAhead(SCHED_FIFO | SCHED_RESET_ON_FORK);
  return runs_ahead;
}

bool RunsAheadOfTurns() {
  return runs_ahead;
}

void WeighMost() {
  runs_ahead = false;
  std::optional<Attributes> attributes = AttributesOfThisThread();
  if (!attributes) return;
  const bool ran_ahead =
      attributes->policy == SCHED_FIFO && (attributes->flags & kResetOnFork) != 0;
  if (attributes->policy != SCHED_OTHER && !ran_ahead) return;
  if (ran_ahead) attributes->runtime_ns = static_cast<uint64_t>(kTurn.count());
  attributes->policy = SCHED_OTHER;
  attributes->priority = 0;
  attributes->flags |= kResetOnFork;
  attributes->nice = kMostWeight;
  (void)syscall(SYS_sched_setattr, 0, &*attributes, 0);
}

Duration TurnOfThisThread() {
  const std::optional<Attributes> attributes = NormalPolicy();
  return attributes ? Duration(static_cast<int64_t>(attributes->runtime_ns)) : Duration(0);
}

}  // namespace weir
