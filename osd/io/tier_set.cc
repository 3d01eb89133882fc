#include "osd/io/tier_set.h"

#include <algorithm>

#include "common/base/check.h"
#include "osd/io/background_floor.h"
#include "osd/qos/admission/service_monitor.h"

namespace weir::osd {
namespace {

// What a tier is taken to do before it has shown anything: too little, which mends itself, since it
// then gets more than that. Too much would stay unless it came to fill the tier.
constexpr double kNominalRequests = 1;

size_t SlowestOf(const std::vector<TierSet::Tier>& tiers) {
  const auto slower = [](const TierSet::Tier& a, const TierSet::Tier& b) {
    return a.token_rate < b.token_rate;
  };
  return static_cast<size_t>(std::min_element(tiers.begin(), tiers.end(), slower) - tiers.begin());
}

qos::BottleneckAware::Options LoopOptions(const std::vector<TierSet::Tier>& tiers) {
  qos::BottleneckAware::Options options;
  options.tiers.count = tiers.size();
  for (size_t k = 0; k < tiers.size(); ++k) {
    options.nominal[k] = kNominalRequests;
  }
  return options;
}

bool TakesPart(ClassId id) {
  return id == kBestEffort || id >= kFirstUserClass;
}

// One operation that went to several tiers; the last part answers.
class Joined {
 public:
  Joined(std::unique_ptr<ObjectOp> whole, size_t parts)
      : whole_(std::move(whole)), missing_(parts) {}
  [[nodiscard]] const ObjectOp& whole() const { return *whole_; }
  void Arrived(const ObjectOpResult& part) {
    if (error_.ok()) error_ = part.status;
    if (part.next_index > 0) {
      next_ = next_ == 0 ? part.next_index : std::min(next_, part.next_index);
    }
    freed_bytes_ += part.info.freed_bytes;
    if (--missing_ > 0) return;
    ObjectOpResult result;
    result.status = error_;
    result.info.freed_bytes = freed_bytes_;
    result.next_index = next_;
    whole_->Done(std::move(result));
  }

 private:
  const std::unique_ptr<ObjectOp> whole_;
  size_t missing_;
  Status error_;
  uint64_t next_ = 0;  // the first object that some tier has left
  uint64_t freed_bytes_ = 0;
};

class PartOp final : public ObjectOp {
 public:
  explicit PartOp(std::shared_ptr<Joined> joined) : joined_(std::move(joined)) {
    kind = joined_->whole().kind;
    object = joined_->whole().object;
    length = joined_->whole().length;
    class_id = joined_->whole().class_id;
    elsewhere = joined_->whole().elsewhere;
  }
  void Done(ObjectOpResult result) override { joined_->Arrived(result); }

 private:
  const std::shared_ptr<Joined> joined_;
};

void Add(const StoreStats& one, StoreStats* sum) {
  sum->capacity_bytes += one.capacity_bytes;
  sum->used_bytes += one.used_bytes;
  sum->objects += one.objects;
  sum->checksum_errors += one.checksum_errors;
  sum->commits += one.commits;
  sum->committed_ops += one.committed_ops;
  sum->background_bytes += one.background_bytes;
  sum->unmetered_bytes += one.unmetered_bytes;
}

}  // namespace

TierSet::TierSet(Dispatcher& first, std::vector<Tier> tiers, Clock& clock, bool meter_background)
    : first_(first),
      tiers_(std::move(tiers)),
      slowest_(SlowestOf(tiers_)),
      clock_(clock),
      loop_(LoopOptions(tiers_), clock.Now()),
      seen_(tiers_.size()),
      busy_(tiers_.size()),
      looked_(clock.Now()) {
  WEIR_CHECK(tiers_.size() >= 2 && tiers_.size() <= qos::kTiersMax, "2 to 8 tiers");
  for (size_t k = 1; k < tiers_.size(); ++k) {
    SchedulerConfig config;
    config.token_rate = tiers_[k].token_rate;
    Further tier;
    tier.dispatcher = std::make_unique<Dispatcher>(*tiers_[k].store, clock, first.loop(), config);
    tier.gate =
        std::make_shared<BackgroundGate>(*tier.dispatcher, clock, kSystemCompaction,
                                         DefaultFloor(kSystemCompaction, config.token_rate));
    if (meter_background) tiers_[k].store->SetBackgroundMeter(tier.gate);
    further_.push_back(std::move(tier));
  }
  sharing_.insert(kBestEffort);
}

TierSet::~TierSet() = default;

size_t TierSet::IndexOf(TierName name) const {
  for (size_t k = 1; k < tiers_.size(); ++k) {
    if (tiers_[k].name == name) return k;
  }
  return 0;
}

void TierSet::Submit(std::unique_ptr<ObjectOp> op, TierName tier) {
  if (op->kind == ObjectOpKind::kDeleteInode) return SubmitToAll(std::move(op));
  const size_t k = IndexOf(tier);
  op->waited = Duration(0);  // nobody knows of which tier
  // A class that is not known is served as best effort.
  const bool known = sharing_.contains(op->class_id);
  const ClassId id = known ? op->class_id : kBestEffort;
  if (known || TakesPart(op->class_id)) {
    const int64_t cost = config_.cost == CostKind::kRequests ? 1 : TokensOf(ChargedBytesOf(*op));
    op->elsewhere = delays_.OnRequest(id, k, op->elsewhere, cost);
    loop_.Count(id, k, clock_.Now());
  }
  At(k).Submit(std::move(op));
}

void TierSet::SubmitToAll(std::unique_ptr<ObjectOp> op) {
  const auto joined = std::make_shared<Joined>(std::move(op), tiers_.size());
  for (size_t k = 0; k < tiers_.size(); ++k) At(k).Submit(std::make_unique<PartOp>(joined));
}

SchedulerConfig TierSet::ConfigOf(size_t tier, const SchedulerConfig& config) const {
  SchedulerConfig own = config;
  if (tier == slowest_ || tiers_[slowest_].token_rate == 0) return own;
  const double factor =
      static_cast<double>(config.token_rate) / static_cast<double>(tiers_[slowest_].token_rate);
  own.token_rate = static_cast<uint64_t>(factor * static_cast<double>(tiers_[tier].token_rate));
  return own;
}

void TierSet::TakeClasses(const std::vector<ClassSpec>& classes, TimePoint now) {
  std::set<ClassId> wanted{kBestEffort};
  for (const ClassSpec& spec : classes) {
    if (!TakesPart(spec.id)) continue;
    wanted.insert(spec.id);
    loop_.SetWeight(spec.id, spec.weight, now);
  }
  for (const ClassId id : sharing_) {
    if (wanted.contains(id)) continue;
    loop_.Remove(id);
    delays_.Forget(id);
    shares_.erase(id);
  }
  sharing_ = std::move(wanted);
  classes_ = classes;
}

void TierSet::Apply(const SchedulerConfig& config, const std::vector<ClassSpec>& classes) {
  const TimePoint now = clock_.Now();
  if (!(config.allocation == config_.allocation)) {
    loop_.Configure(config.allocation, now);
    shares_.clear();
  }
  config_ = config;
  TakeClasses(classes, now);
  ApplyToAll();
}

// The shares that were computed, as weights whose sum is that of the operator's.
std::vector<ClassSpec> TierSet::Weighted() const {
  std::vector<ClassSpec> weighted = classes_;
  if (config_.allocation.kind == AllocationKind::kFair) return weighted;
  double operators = 0, shared = 0;
  for (const ClassSpec& spec : classes_) {
    const auto share = shares_.find(spec.id);
    if (share == shares_.end()) continue;
    operators += spec.weight;
    shared += share->second;
  }
  for (ClassSpec& spec : weighted) {
    const auto share = shares_.find(spec.id);
    if (share == shares_.end() || share->second <= 0) continue;
    const double weight = share->second / shared * operators;
    spec.min_weight *= weight / spec.weight;
    spec.weight = weight;
  }
  return weighted;
}

void TierSet::ApplyToAll() {
  const std::vector<ClassSpec> classes = Weighted();
  for (size_t k = 0; k < tiers_.size(); ++k) {
    const SchedulerConfig own = ConfigOf(k, config_);
    for (const ClassSpec& spec : classes) {
      if (k == 0 || spec.id != kSystemCompaction) continue;
      further_[k - 1].gate->SetFloor(BackgroundFloor(spec, own.token_rate));
    }
    At(k).Apply(own, classes);
  }
}

// True when the weights are others now.
bool TierSet::Look(TimePoint now, const std::vector<DispatcherActivity>& activity) {
  if (now - looked_ >= kLook) {
    std::vector<qos::TierActivity> since;
    since.reserve(tiers_.size());
    for (size_t k = 0; k < tiers_.size(); ++k) {
      since.push_back(
          {activity[k].completed - seen_[k].completed, activity[k].full - seen_[k].full});
      busy_[k] = std::min(1.0, ToSeconds(since[k].busy) / ToSeconds(now - looked_));
    }
    loop_.Observe(since, now);
    seen_ = activity;
    looked_ = now;
  }
  const auto weights = loop_.Tick(now);
  for (const auto& [id, weight] : weights) shares_[id] = weight;
  return !weights.empty() && config_.allocation.kind != AllocationKind::kFair;
}

void TierSet::SetBooked(uint64_t bytes_per_s) {
  for (size_t k = 0; k < tiers_.size(); ++k) At(k).SetBooked(bytes_per_s);
}

bool TierSet::disk_is_slow() const {
  return first_.disk_is_slow() ||
         std::any_of(further_.begin(), further_.end(),
                     [](const Further& tier) { return tier.dispatcher->disk_is_slow(); });
}

std::map<ClassId, OsdClassTimes> TierSet::Times() {
  std::map<ClassId, OsdClassTimes> sum = first_.Times();
  for (const Further& tier : further_) {
    for (const auto& [id, times] : tier.dispatcher->Times()) sum[id] += times;
  }
  return sum;
}

TimePoint TierSet::Poll() {
  std::vector<DispatcherActivity> activity;
  activity.reserve(tiers_.size());
  for (size_t k = 0; k < tiers_.size(); ++k) activity.push_back(At(k).Activity());
  if (Look(clock_.Now(), activity)) ApplyToAll();
  return std::min(looked_ + kLook, loop_.NextTick());
}

void TierSet::CloseGates() {
  for (size_t k = 1; k < tiers_.size(); ++k) {
    tiers_[k].store->SetBackgroundMeter(nullptr);
    further_[k - 1].gate->Close();
  }
}

void TierSet::BeginDrain() {
  for (const Further& tier : further_) tier.dispatcher->BeginDrain();
}

void TierSet::WhenIdle(const std::function<void()>& idle) {
  auto left = std::make_shared<size_t>(further_.size());
  for (const Further& tier : further_) {
    tier.dispatcher->WhenIdle([left, idle] {
      if (--*left == 0) idle();
    });
  }
}

bool TierSet::idle() const {
  return std::all_of(further_.begin(), further_.end(),
                     [](const Further& tier) { return tier.dispatcher->outstanding() == 0; });
}

std::vector<TierSet::Report> TierSet::Reports(const DispatcherStats& first, bool reset,
                                              bool flows) {
  std::vector<Report> reports(tiers_.size());
  for (size_t k = 0; k < tiers_.size(); ++k) {
    Report& report = reports[k];
    report.name = tiers_[k].name;
    report.store = tiers_[k].store->Stats();
    report.stats = k == 0 ? first : At(k).Stats(reset, flows);
    report.token_rate = report.stats.token_rate;
  }
  const qos::Tiers capacities = loop_.CurrentTiers();
  for (size_t k = 0; k < tiers_.size(); ++k) {
    reports[k].busy = busy_[k];
    reports[k].requests_per_s = capacities.capacity[k];
  }
  return reports;
}

std::vector<qos::BottleneckAware::Division> TierSet::Divisions() const {
  return loop_.divisions();
}

std::map<ClassId, double> TierSet::Weights() const {
  std::map<ClassId, double> weights;
  for (const ClassSpec& spec : Weighted()) weights[spec.id] = spec.weight;
  return weights;
}

StoreStats TierSet::TotalStore() const {
  StoreStats sum;
  for (const Tier& tier : tiers_) Add(tier.store->Stats(), &sum);
  return sum;
}

uint64_t TierSet::FreeBytes(TierName tier) const {
  return tiers_[IndexOf(tier)].store->Stats().free_bytes();
}

qos::ServiceReport TierSet::Measures() {
  return At(slowest_).Measures();
}

}  // namespace weir::osd
