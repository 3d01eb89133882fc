#include "mds/service/mds_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/base/prng.h"

namespace weir::mds {
namespace {

constexpr Duration kAnswerCheckInterval = std::chrono::seconds(60);
// Deep enough for a group commit that pays, shallow enough that whoever comes next waits for some
// milliseconds of it.
constexpr size_t kOperationsBegun = 128;

ClassOrder::Terms TermsOf(const ClassEntry& entry) {
  return {.weight = entry.spec.weight,
          .limit_per_s = entry.limit_names_per_s,
          .promised_per_s = entry.spec.reservation ? entry.spec.reservation->iops : 0};
}

std::string NewUuid() {
  Prng prng(RandomSeed());
  const uint64_t a = prng.Next();
  const uint64_t b = prng.Next();
  return fmt::format("{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}", a >> 32, a >> 16 & 0xffff, a & 0xfff,
                     0x8000 | (b >> 48 & 0x3fff), b & 0xffffffffffff);
}

}  // namespace

MdsCore::MdsCore(KvStore& store, Clock& clock, OsdPort& osds, const MdsOptions& options)
    : store_(store),
      clock_(clock),
      osds_(osds),
      options_(options),
      replays_(clock, options.replay_patience,
               [this](uint64_t session) { names_->GiveUpKeeper(session); }),
      operations_(clock, {.depth = kOperationsBegun,
                          .hand_over = [this](auto work) { Post(std::move(work)); },
                          .post_here = options.post_here,
                          .on_sooner =
                              [this] {
                                const std::lock_guard lock(mutex_);
                                sooner_ = true;
                                posted_.notify_one();
                              }}) {}

Result<std::unique_ptr<MdsCore>> MdsCore::Open(KvStore& store, Clock& clock, OsdPort& osds,
                                               const MdsOptions& options) {
  std::unique_ptr<MdsCore> core(new MdsCore(store, clock, osds, options));
  WEIR_RETURN_IF_ERROR(core->Begin());
  return core;
}

Status MdsCore::Begin() {
  const std::string uuid =
      options_.new_cluster_uuid.empty() ? NewUuid() : options_.new_cluster_uuid;
  WEIR_ASSIGN_OR_RETURN(keeper_, ClusterKeeper::Open(store_, clock_, uuid));
  sessions_ = std::make_unique<Sessions>(clock_, options_.lease);
  objects_ = std::make_unique<ObjectWork>(
      osds_, clock_,
      ObjectWork::Callbacks{
          [this] { return keeper_->map(); }, [this](uint64_t inode) { names_->FinishPurge(inode); },
          [this](OsdId osd, uint64_t freed_bytes) { keeper_->OsdFreed(osd, freed_bytes); },
          [this](uint64_t inode, uint64_t freed_bytes) {
            names_->FinishTruncate(inode, freed_bytes);
          }});
  keeper_->SetBeingFreed([this] { return objects_->bytes_to_free(); });
  WEIR_ASSIGN_OR_RETURN(names_, NamespaceDb::Open(store_, clock_, *keeper_, *this, options_.ns));
  WEIR_ASSIGN_OR_RETURN(const std::vector<uint64_t> holders, names_->LockHolders());
  replays_.Await(names_->Keepers(/*given_up=*/false), names_->Keepers(/*given_up=*/true));
  locks_ = std::make_unique<LockService>(
      *names_, clock_, holders,
      LockService::Callbacks{[this] { OnRecall(); },
                             [this](uint64_t session) { return sessions_->Knows(session); }});
  tag_epoch_ = names_->DurableTagEpoch();
  watchers_ = std::make_unique<Watchers>(Watchers::Sources{
      *keeper_, names_->leases(), names_->file_leases(), [this] { return tag_epoch_.load(); },
      [this](uint64_t session) { return locks_->AskedOf(session); },
      [this] { return names_->durable_order(); }, names_->life(), clock_});
  evictions_ = std::make_unique<Evictions>(*keeper_, [this](uint64_t id) {
    sessions_->Close(id);  // it may have come back just before its fence
    DropSession(id);
  });
  keeper_->SetOnChange([this] {
    RenewTerms();
    watchers_->Flush();
  });
  grace_ends_ = clock_.Now() + options_.grace;
  next_answer_check_ = grace_ends_ + kAnswerCheckInterval;

  WEIR_ASSIGN_OR_RETURN(const std::vector<PurgeJob> purges, names_->PendingPurges());
  for (const PurgeJob& job : purges) objects_->Purge(job);
  for (const TruncateJob& job : names_->PendingTruncates()) objects_->Truncate(job);
  if (options_.background) background_ = std::thread([this] { RunBackground(); });
  return Status::Ok();
}

MdsCore::~MdsCore() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  posted_.notify_all();
  if (background_.joinable()) background_.join();
  if (objects_ != nullptr) objects_->Stop();
  osds_.Stop();  // whose answers are for objects_
  operations_.Stop();
  names_.reset();
  if (keeper_ != nullptr) keeper_->SetOnChange(nullptr);
}

RequestOrigin MdsCore::OriginOf(const Call& call) {
  RequestOrigin origin;
  origin.session = call->session();
  origin.sub_session = call->sub_session();
  origin.request_id = call->request_id();
  origin.acked_below = call->acked_below();
  origin.method = call->method();
  Sessions::Opening opening = sessions_->TouchOrAdmit(origin.session);
  origin.mount_class = std::move(opening.mount_class);
  origin.client = std::move(opening.client_name);
  origin.ordered_within = opening.ordered_within;
  origin.alone = opening.exclusive;
  return origin;
}

void MdsCore::WhenItsTurn(const Asker& asker, FairQueue::Work work) {
  const auto map = keeper_->map();
  auto entry = map->classes.find(ClassId(asker.class_id));
  const bool foreign = entry == map->classes.end() || entry->first < kFirstUserClass;
  if (foreign) entry = map->classes.find(kBestEffort);
  FlowSource flow = asker.flow;
  flow.kind = asker.report ? FlowKind::kUser : entry->second.flow;
  flow.cgroup = CutCgroup(flow.cgroup);
  operations_.Submit({.class_id = entry->first,
                      .terms = TermsOf(entry->second),
                      .flow = KeyOf(flow),
                      .counted_for = CountedKeyOf(flow),
                      .owner = OwnerOf(flow),
                      .session = flow.session,
                      .cost = asker.cost,
                      .report = asker.report},
                     std::move(work));
}

void MdsCore::RenewTerms() {
  operations_.Renew([map = keeper_->map()](ClassId id) {
    const auto entry = map->classes.find(id);
    return entry == map->classes.end() ? ClassOrder::Terms() : TermsOf(entry->second);
  });
}

void MdsCore::Handle(const Call& call) {
  // Both come however little happens here.
  const bool routine =
      call->method() == wire::MDS_WATCH || call->method() == wire::MDS_DIVIDE_LIMITS;
  if (!routine) Used();
  if (HandleNamespace(call) || HandleSession(call) || HandleAdmin(call) || HandleRules(call) ||
      HandleLocks(call)) {
    return;
  }
  call->Respond(
      Status(ErrorCode::kNotSupported, "this MDS has no method " + std::to_string(call->method())));
}

void MdsCore::OnTagEpoch(uint64_t tag_epoch) {
  uint64_t known = tag_epoch_.load();
  while (known < tag_epoch && !tag_epoch_.compare_exchange_weak(known, tag_epoch)) {
  }
  if (watchers_ != nullptr) watchers_->Flush();
}

void MdsCore::OnRecall() {
  if (watchers_ != nullptr) watchers_->Flush();
}

// Somebody waits for a lease of theirs, or for what they may have buffered before our restart.
void MdsCore::EvictSilentHolders() {
  const Duration patience = names_->file_leases().patience();
  std::vector<uint64_t> overdue = names_->file_leases().Overdue();
  const std::vector<uint64_t> missing = names_->OverdueWriters(patience);
  overdue.insert(overdue.end(), missing.begin(), missing.end());
  for (const uint64_t session : overdue) {
    if (sessions_->SilentFor(session) <= patience) continue;
    if (evictions_->Evicting(session)) continue;
    WEIR_LOG_WARN(
        "mount '{}' (session {:x}) is silent and holds what others wait for: it is evicted",
        LogClient(sessions_->ClientOf(session)), session);
    evictions_->Evict({session});
    sessions_->Close(session);
  }
}

// They were told what is not so any more.
void MdsCore::EvictSilentKeepers() {
  const auto silent = [this](uint64_t session) { return sessions_->SilentFor(session); };
  for (const uint64_t session : replays_.TakeOverdue(silent)) {
    WEIR_LOG_WARN(
        "session {:x} has not come back after the restart with what it was told: it is "
        "evicted",
        session);
    if (!evictions_->Evicting(session)) evictions_->Evict({session});
    sessions_->Close(session);
  }
}

void MdsCore::DropSession(uint64_t session) {
  replays_.GiveUp(session);
  operations_.DropSession(session);
  names_->DropSession(session, false);
  locks_->EndSession(session);
  keeper_->times().MountGone(session);
  keeper_->limits().MountGone(session);
}

// What a mount that has not come back since our restart held is nobody else's, and its orphans are
// not purged, before every OSD refuses what it may still send. True: none is missing.
bool MdsCore::FenceMissing() {
  std::vector<uint64_t> missing = names_->MissingWriters();
  std::erase_if(missing, [this](uint64_t session) { return sessions_->IsOpen(session); });
  for (const uint64_t session : missing) {
    sessions_->Close(session);
    if (evictions_->Evicting(session)) continue;
    WEIR_LOG_WARN("session {:x} has not come back since the restart: it is evicted", session);
  }
  evictions_->Evict(missing);
  return missing.empty();
}

void MdsCore::Tick() {
  keeper_->Tick();
  operations_.Run();
  names_->leases().Tick();
  names_->file_leases().Tick();
  names_->RetryParked();
  names_->TellUsage();
  names_->EndLingering();
  locks_->Tick();
  names_->CommitLazy();
  EvictSilentHolders();
  EvictSilentKeepers();
  for (const uint64_t session : sessions_->TakeExpired()) {
    if (evictions_->Evicting(session)) continue;
    if (names_->MayWrite(session)) {
      evictions_->Evict({session});
    } else {
      DropSession(session);
    }
  }
  evictions_->Tick();
  const TimePoint now = clock_.Now();
  if (in_grace_ && now >= grace_ends_ && FenceMissing()) {
    in_grace_ = false;
    names_->EndGrace();
    locks_->EndGrace();
  }
  if (now >= next_answer_check_) {
    next_answer_check_ = now + kAnswerCheckInterval;
    for (const uint64_t session : names_->SessionsWithAnswers()) {
      if (!sessions_->Knows(session)) names_->ForgetAnswers(session);
    }
    // As long as the map knows that it was evicted.
    const auto map = keeper_->map();
    for (const uint64_t session : names_->Keepers(/*given_up=*/true)) {
      const bool forgets = !sessions_->Knows(session) && !map->fences.contains(session);
      if (forgets) names_->ForgetGivenUp(session);
    }
  }
  objects_->Tick();
  osds_.Tick();
  watchers_->Flush();
  watchers_->FlushObeyed();
}

void MdsCore::Post(std::function<void()> work) {
  if (!options_.background) {
    work();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  posted_.notify_one();
}

void MdsCore::Used() {
  if (!pace_.Used()) return;
  const std::lock_guard lock(mutex_);
  posted_.notify_one();
}

// Somebody waits for a tick.
bool MdsCore::Busy() const {
  return in_grace_ || names_->AnyWait() || objects_->pending_purges() > 0 || !evictions_->empty() ||
         watchers_->AnyObeying();
}

void MdsCore::RunBackground() {
  auto next_tick = std::chrono::steady_clock::now();
  bool rarely = false;
  while (true) {
    std::function<void()> work;
    bool sooner = false;
    // A burst of what limits let go is worth one waking.
    const Duration until_limit = std::max(operations_.NextAt() - clock_.Now(), kLimitPause);
    const auto limit_at = until_limit < kLongestSleep
                              ? std::chrono::steady_clock::now() + until_limit
                              : std::chrono::steady_clock::time_point::max();
    {
      std::unique_lock lock(mutex_);
      posted_.wait_until(lock, std::min(next_tick, limit_at),
                         [&] { return stopping_ || !work_.empty() || sooner_ || pace_.woken(); });
      if (stopping_) return;
      sooner = std::exchange(sooner_, false);
      if (pace_.woken()) next_tick = std::chrono::steady_clock::now();
      if (!work_.empty()) {
        work = std::move(work_.front());
        work_.pop_front();
      }
    }
    if (work != nullptr) work();
    if (sooner || std::chrono::steady_clock::now() >= limit_at) operations_.Run();
    if (std::chrono::steady_clock::now() < next_tick) continue;
    Tick();
    if (rarely) watchers_->FlushEarly();
    const bool busy = Busy();
    // Watches end when they are to, however long nothing has happened.
    const Duration watched =
        std::max<Duration>(watchers_->FirstEnd() - clock_.Now(), Duration::zero());
    const std::lock_guard lock(mutex_);
    const Duration sleep = pace_.Next(busy);
    rarely = sleep == kLongestSleep;
    next_tick = std::chrono::steady_clock::now() + std::min(sleep, watched);
  }
}

}  // namespace weir::mds
