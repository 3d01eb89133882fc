#include "common/qos/qos_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "common/base/units.h"
#include "common/qos/qos_words.h"

namespace weir {
namespace {

template <typename Kind>
struct Word {
  std::string_view text;
  Kind kind;
};

constexpr std::array<Word<SurplusKind>, 4> kSurplusWords{
    {{"fcfs", SurplusKind::kFcfs},
     {"dsfq", SurplusKind::kDsfq},
     {"cooperative", SurplusKind::kCooperative},
     {"pass", SurplusKind::kPass}}};
constexpr std::array<Word<SharingKind>, 4> kSharingWords{{{"single", SharingKind::kSingle},
                                                          {"total", SharingKind::kTotal},
                                                          {"hybrid", SharingKind::kHybrid},
                                                          {"hybrid-h", SharingKind::kHybridH}}};
constexpr std::array<Word<GateKind>, 2> kGateWords{
    {{"strict", GateKind::kStrict}, {"conserving", GateKind::kConserving}}};
constexpr std::array<Word<DispatchKind>, 4> kDispatchWords{{{"fifo", DispatchKind::kFifo},
                                                            {"cscan", DispatchKind::kCscan},
                                                            {"vc", DispatchKind::kVc},
                                                            {"cvc", DispatchKind::kCvc}}};
constexpr std::array<Word<CostKind>, 3> kCostWords{{{"bytes", CostKind::kBytes},
                                                    {"requests", CostKind::kRequests},
                                                    {"device-time", CostKind::kDeviceTime}}};
constexpr std::array<Word<AdmissionKind>, 2> kAdmissionWords{
    {{"additive", AdmissionKind::kAdditive}, {"measured", AdmissionKind::kMeasured}}};
constexpr std::array<Word<AllocationKind>, 3> kAllocationWords{
    {{"baa", AllocationKind::kBottleneckAware},
     {"drf", AllocationKind::kDominantResource},
     {"fair", AllocationKind::kFair}}};
constexpr std::array<Word<ReservationScope>, 2> kScopeWords{
    {{"cluster", ReservationScope::kCluster}, {"osd", ReservationScope::kOsd}}};

struct Profile {
  std::string_view name;
  GuaranteeKind guarantee;
  SurplusKind surplus;
  SharingKind sharing;
  GateKind gate;
  DispatchKind dispatch;
  bool maximizer;
  CostKind cost = CostKind::kBytes;
};

constexpr std::array<Profile, 12> kProfiles{{
    {"noqos", GuaranteeKind::kNone, SurplusKind::kFcfs, SharingKind::kSingle, GateKind::kConserving,
     DispatchKind::kCscan, false},
    {"odis", GuaranteeKind::kHtb, SurplusKind::kFcfs, SharingKind::kSingle, GateKind::kStrict,
     DispatchKind::kCscan, true},
    {"sfq", GuaranteeKind::kNone, SurplusKind::kDsfq, SharingKind::kSingle, GateKind::kConserving,
     DispatchKind::kFifo, false},
    {"dsfq-total", GuaranteeKind::kNone, SurplusKind::kDsfq, SharingKind::kTotal,
     GateKind::kConserving, DispatchKind::kFifo, false},
    {"dsfq-hybrid", GuaranteeKind::kNone, SurplusKind::kDsfq, SharingKind::kHybrid,
     GateKind::kConserving, DispatchKind::kFifo, false},
    {"vd", GuaranteeKind::kNone, SurplusKind::kCooperative, SharingKind::kSingle,
     GateKind::kConserving, DispatchKind::kFifo, false, CostKind::kDeviceTime},
    {"vc", GuaranteeKind::kNone, SurplusKind::kPass, SharingKind::kSingle, GateKind::kConserving,
     DispatchKind::kVc, false, CostKind::kRequests},
    {"cscan", GuaranteeKind::kNone, SurplusKind::kPass, SharingKind::kSingle, GateKind::kConserving,
     DispatchKind::kCscan, false, CostKind::kRequests},
    {"cvc", GuaranteeKind::kNone, SurplusKind::kPass, SharingKind::kSingle, GateKind::kConserving,
     DispatchKind::kCvc, false, CostKind::kRequests},
    {"baa", GuaranteeKind::kNone, SurplusKind::kDsfq, SharingKind::kTotal, GateKind::kConserving,
     DispatchKind::kFifo, false, CostKind::kRequests},
    {"dsfq-hybrid-h", GuaranteeKind::kNone, SurplusKind::kDsfq, SharingKind::kHybridH,
     GateKind::kConserving, DispatchKind::kFifo, false},
    {"unified", GuaranteeKind::kHtb, SurplusKind::kDsfq, SharingKind::kHybridH,
     GateKind::kConserving, DispatchKind::kCvc, false},
}};

// "unknown sharing 'half' (there is: single, total, hybrid, hybrid-h)".
template <typename Rows, typename NameOf>
Status NoSuchWord(std::string_view what, std::string_view text, const Rows& rows, NameOf name_of) {
  std::string there_is;
  for (const auto& row : rows) {
    if (!there_is.empty()) there_is += ", ";
    there_is += name_of(row);
  }
  return {ErrorCode::kInvalid, "unknown " + std::string(what) + " '" + std::string(text) +
                                   "' (there is: " + there_is + ")"};
}

template <typename Kind, size_t kCount>
std::string_view TextOf(const std::array<Word<Kind>, kCount>& words, Kind kind) {
  for (const auto& word : words) {
    if (word.kind == kind) return word.text;
  }
  return "?";
}

template <typename Kind, size_t kCount>
Result<Kind> Parse(std::string_view what, std::string_view text,
                   const std::array<Word<Kind>, kCount>& words) {
  for (const auto& word : words) {
    if (word.text == text) return word.kind;
  }
  return NoSuchWord(what, text, words, [](const auto& word) { return word.text; });
}

template <typename Rows>
std::vector<std::string_view> TextsOf(const Rows& rows) {
  std::vector<std::string_view> texts;
  texts.reserve(rows.size());
  for (const auto& row : rows) texts.push_back(row.text);
  return texts;
}

}  // namespace

uint64_t SchedulerConfig::EffectiveBestEffortMin() const {
  if (best_effort_min.has_value()) return *best_effort_min;
  return std::min(token_rate, std::max(token_rate / 100, kLargestRequest));
}

double SchedulerConfig::EffectiveIopsMax() const {
  if (iops_max > 0) return static_cast<double>(iops_max);
  return static_cast<double>(token_rate) / kRequestUnit;
}

double SchedulerConfig::RequestUnit() const {
  if (token_rate == 0) return std::numeric_limits<double>::infinity();
  return static_cast<double>(token_rate) / EffectiveIopsMax();
}

uint32_t SchedulerConfig::EffectiveDepth() const {
  if (depth > 0) return depth;
  const bool one = surplus == SurplusKind::kCooperative || surplus == SurplusKind::kPass;
  return one ? 1 : kAutoDepth;
}

Result<SchedulerConfig> ApplyProfile(std::string_view profile, SchedulerConfig base) {
  for (const Profile& row : kProfiles) {
    if (row.name != profile) continue;
    base.profile = std::string(row.name);
    base.guarantee = row.guarantee;
    base.surplus = row.surplus;
    base.sharing = row.sharing;
    base.gate = row.gate;
    base.dispatch = row.dispatch;
    base.cost = row.cost;
    base.maximizer = row.maximizer;
    base.anticipation = false;
    base.processor_pressure = SchedulerConfig::kDefaultPressure;
    base.cvc.fixed_estimate = Duration(0);
    return base;
  }
  return NoSuchWord("profile", profile, kProfiles, [](const Profile& row) { return row.name; });
}

std::string_view ToText(GuaranteeKind kind) {
  return kind == GuaranteeKind::kHtb ? "htb" : "none";
}
std::string_view ToText(SurplusKind kind) {
  return TextOf(kSurplusWords, kind);
}
std::string_view ToText(SharingKind kind) {
  return TextOf(kSharingWords, kind);
}
std::string_view ToText(GateKind kind) {
  return TextOf(kGateWords, kind);
}
std::string_view ToText(DispatchKind kind) {
  return TextOf(kDispatchWords, kind);
}
std::string_view ToText(CostKind kind) {
  return TextOf(kCostWords, kind);
}
std::string_view ToText(AllocationKind kind) {
  return TextOf(kAllocationWords, kind);
}
std::string_view ToText(ReservationScope kind) {
  return TextOf(kScopeWords, kind);
}
std::string_view ToText(AdmissionKind kind) {
  return TextOf(kAdmissionWords, kind);
}

Result<SurplusKind> ParseSurplus(std::string_view text) {
  return Parse("surplus", text, kSurplusWords);
}
Result<SharingKind> ParseSharing(std::string_view text) {
  return Parse("sharing", text, kSharingWords);
}
Result<GateKind> ParseGate(std::string_view text) {
  return Parse("gate", text, kGateWords);
}
Result<DispatchKind> ParseDispatch(std::string_view text) {
  return Parse("dispatch", text, kDispatchWords);
}
Result<CostKind> ParseCost(std::string_view text) {
  return Parse("cost", text, kCostWords);
}
Result<ReservationScope> ParseScope(std::string_view text) {
  return Parse("scope", text, kScopeWords);
}
Result<AdmissionKind> ParseAdmission(std::string_view text) {
  return Parse("admission", text, kAdmissionWords);
}
Result<AllocationKind> ParseAllocation(std::string_view text) {
  return Parse("allocation", text, kAllocationWords);
}

std::vector<std::string_view> ProfileWords() {
  std::vector<std::string_view> names;
  names.reserve(kProfiles.size());
  for (const Profile& row : kProfiles) names.push_back(row.name);
  return names;
}
std::vector<std::string_view> SurplusWords() {
  return TextsOf(kSurplusWords);
}
std::vector<std::string_view> SharingWords() {
  return TextsOf(kSharingWords);
}
std::vector<std::string_view> GateWords() {
  return TextsOf(kGateWords);
}
std::vector<std::string_view> DispatchWords() {
  return TextsOf(kDispatchWords);
}
std::vector<std::string_view> CostWords() {
  return TextsOf(kCostWords);
}
std::vector<std::string_view> AllocationWords() {
  return TextsOf(kAllocationWords);
}

AdmissionDecision AdmitAdditive(uint64_t token_rate, uint64_t promised_to_others, uint64_t rate) {
  AdmissionDecision decision;
  decision.promised = promised_to_others;
  decision.largest = token_rate > promised_to_others ? token_rate - promised_to_others : 0;
  decision.admitted = rate <= decision.largest;
  return decision;
}

Status CheckTransactions(const ClassSpec& spec) {
  const uint64_t promised = spec.reservation ? spec.reservation->bytes_per_s : 0;
  uint64_t left = promised;
  std::set<uint32_t> seen;
  for (const TransactionSpec& transaction : spec.transactions) {
    const std::string name = "transaction " + std::to_string(transaction.id);
    if (transaction.id == 0 || !seen.insert(transaction.id).second) {
      return {ErrorCode::kInvalid,
              name + " of '" + spec.name + "': numbers are 1 and up, each once"};
    }
    if (transaction.bytes_per_s > left) {
      return {ErrorCode::kRefused, name + " of '" + spec.name + "' wants " +
                                       FormatRate(transaction.bytes_per_s) + ": " +
                                       FormatRate(promised - left) + " of the class's " +
                                       FormatRate(promised) + " already promised"};
    }
    left -= transaction.bytes_per_s;
  }
  return Status::Ok();
}

Status CheckUsers(const ClassSpec& spec) {
  uint64_t left = spec.reservation ? spec.reservation->bytes_per_s : 0;
  const uint64_t promised = left;
  if (!spec.reservation) return Status::Ok();
  for (const UserPart& user : spec.reservation->users) {
    if (user.bytes_per_s > left) {
      return {ErrorCode::kRefused,
              "cannot promise " + FormatRate(user.bytes_per_s) + " of '" + spec.name + "' to uid " +
                  std::to_string(user.uid) + ": " + FormatRate(promised - left) +
                  " of the class's " + FormatRate(promised) +
                  " already promised to users (largest that fits: " + FormatRate(left) + ")"};
    }
    left -= user.bytes_per_s;
  }
  return Status::Ok();
}

std::vector<TransactionSpec> TransactionsOf(const Reservation& reservation, size_t osds) {
  double sum = 0;
  for (const UserPart& user : reservation.users) sum += static_cast<double>(user.bytes_per_s);
  const double most = static_cast<double>(reservation.bytes_per_s) / std::max(1.0, sum);
  const double leeway = std::min(reservation.leeway, std::floor(100 * most) / 100);
  std::vector<TransactionSpec> all;
  for (const UserPart& user : reservation.users) {
    all.push_back(
        {TransactionOf(user.uid), BookedPerOsd(user.bytes_per_s, reservation.scope, osds, leeway)});
  }
  return all;
}

uint64_t BookedPerOsd(uint64_t rate, ReservationScope scope, size_t osds, double leeway) {
  if (scope == ReservationScope::kOsd || osds <= 1) return rate;
  // ceil(parts / 100 * rate / osds) without overflow: rate = whole * 100 n + rest.
  const uint64_t divisor = 100 * static_cast<uint64_t>(osds);
  const double hundredths = std::clamp(100 * leeway, 100.0, static_cast<double>(divisor));
  const auto parts = static_cast<uint64_t>(std::llround(hundredths));
  const uint64_t booked = rate / divisor * parts + (rate % divisor * parts + divisor - 1) / divisor;
  return std::min(rate, booked);
}

}  // namespace weir
