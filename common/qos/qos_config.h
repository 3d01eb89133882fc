// What operators set about quality of service: classes and the boxes of an OSD's pipeline. Kept by
// the MDS, carried in the cluster map, obeyed by the OSDs, shown by osdctl.
//
// Units: rates in bytes per second, times monotonic of whoever holds the struct.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/result.h"
#include "common/base/time.h"
#include "common/qos/cvc_config.h"
#include "common/qos/service_contract.h"
#include "common/qos/virtual_disk.h"

namespace weir {

enum class GuaranteeKind : uint8_t { kNone, kHtb };
enum class SurplusKind : uint8_t { kFcfs, kDsfq, kCooperative, kPass };
// DSFQ delay: 0, (7), (12), (12) with what it cut off remembered.
enum class SharingKind : uint8_t { kSingle, kTotal, kHybrid, kHybridH };
enum class GateKind : uint8_t { kStrict, kConserving };
enum class DispatchKind : uint8_t { kFifo, kCscan, kVc, kCvc };
enum class CostKind : uint8_t { kBytes, kRequests, kDeviceTime };
// Whose clock spare device time moves (surplus `cooperative`): the system's, as it must be (A25);
// nobody's, as the paper has it; or that of whoever uses it, to see what that would break.
enum class SpareCharge : uint8_t { kSystem, kNobody, kOwner };
enum class ReservationScope : uint8_t { kCluster, kOsd };
// What a promise was weighed with: its worst case, or what the OSDs measure (contract_admission.h).
enum class AdmissionKind : uint8_t { kAdditive, kMeasured };

// Who gets how much of an OSD of several tiers: as bottleneck-aware allocation has it, equal shares
// of what each loads most (DRF), or requests by weight whatever disk they need.
enum class AllocationKind : uint8_t { kBottleneckAware, kDominantResource, kFair };

struct AllocationConfig {
  AllocationKind kind = AllocationKind::kBottleneckAware;
  Duration period{0};  // between two computations; 0: one second
  Duration window{0};  // hit ratios are those of so long; 0: of a thousand requests, 60 s at most
  bool alarm = true;   // computes at once when one tier idles while another is full

  friend bool operator==(const AllocationConfig&, const AllocationConfig&) = default;
};

// Every choice of one OSD's pipeline. Defaults: profile `unified` as far as it is built.
struct SchedulerConfig {
  std::string profile = "unified";
  GuaranteeKind guarantee = GuaranteeKind::kHtb;
  SurplusKind surplus = SurplusKind::kDsfq;
  SharingKind sharing = SharingKind::kHybridH;
  GateKind gate = GateKind::kConserving;
  DispatchKind dispatch = DispatchKind::kCvc;
  CostKind cost = CostKind::kBytes;
  bool maximizer = false;   // acts only under the strict gate
  uint32_t depth = 0;       // requests on the device; 0 is auto
  uint64_t token_rate = 0;  // G0 in bytes per second; 0: not profiled, no promises possible
  std::optional<uint64_t> best_effort_min;  // unset: max(1 % of G0, one largest request a second)
  // IOPSmax that admission counts with, requests per second; 0: as many as G0 has units of 64 KiB.
  uint64_t iops_max = 0;

  // The device is kept idle for a reader who is about to ask again, at the price of throughput;
  // acts under dispatch `cvc` behind other stages, with depth auto (osd/qos/device/anticipation).
  bool anticipation = false;

  // Percent of the time in which somebody may wait for a processor of the OSD's machine while a
  // class with a latency bound reads: bulk is held to that, where depth adapts and surplus is
  // `dsfq` (osd/qos/control/bulk_governor). 100: it is not held.
  static constexpr uint32_t kDefaultPressure = 10;
  static constexpr uint32_t kAnyPressure = 100;
  uint32_t processor_pressure = kDefaultPressure;

  AllocationConfig allocation;  // over the tiers of an OSD that has several

  // Surplus `cooperative`: device time that a virtual disk keeps the device while its requests are
  // sequential (A30), and how far back the average of a throughput disk looks (A28; 0: to its
  // start).
  Duration quantum{0};
  Duration throughput_window = std::chrono::seconds(60);
  SpareCharge spare = SpareCharge::kSystem;

  CvcConfig cvc;  // dispatch `vc` and `cvc`

  // Surplus `dsfq`: a class that had nothing here for so long is forgiven what it got elsewhere
  // meanwhile, beyond K * cost of its first request (A6); 0: never, as the paper has it.
  Duration reset_idle = std::chrono::seconds(5);

  // Depth that `auto` stands for until a control loop moves it; virtual disks and finish-time
  // orders (C6) have one at a time.
  static constexpr uint32_t kAutoDepth = 32;
  [[nodiscard]] uint32_t EffectiveDepth() const;
  [[nodiscard]] uint64_t EffectiveBestEffortMin() const;
  [[nodiscard]] double EffectiveIopsMax() const;  // 0 while the token rate is not known
  // What one promised request is worth in bytes of G0: G0 / IOPSmax. A larger request is worth
  // as many. Infinite while nothing is known.
  [[nodiscard]] double RequestUnit() const;
};

// The row of that name in the profile table (noqos, odis, sfq, dsfq-total, dsfq-hybrid, unified
// ...); rates and depth of `base` stay. kInvalid names a profile that does not exist and lists
// them.
Result<SchedulerConfig> ApplyProfile(std::string_view profile, SchedulerConfig base);

inline constexpr double kLeeway = 1.5;  // f: room for skewed access over several OSDs

// A user's part of what a class is promised in bytes.
struct UserPart {
  uint32_t uid = 0;
  uint64_t bytes_per_s = 0;

  friend bool operator==(const UserPart&, const UserPart&) = default;
};

struct Reservation {
  uint64_t bytes_per_s = 0;
  ReservationScope scope = ReservationScope::kCluster;
  std::optional<WallTime> ends;  // none: until released
  uint64_t iops = 0;             // requests per second; 0: counted in bytes only
  AdmissionKind admission = AdmissionKind::kAdditive;
  double leeway = kLeeway;      // see BookedPerOsd
  std::vector<UserPart> users;  // by uid; see CheckUsers

  friend bool operator==(const Reservation&, const Reservation&) = default;
};

// A part of a class's promise for one of its transactions (users, files): AQuA's second level.
// Requests say which; those that name no promised one share what the class has left.
struct TransactionSpec {
  uint32_t id = 0;
  uint64_t bytes_per_s = 0;

  friend bool operator==(const TransactionSpec&, const TransactionSpec&) = default;
};

// That of a user; 0 is nobody's, and there is no uid of all ones.
constexpr uint32_t TransactionOf(uint32_t uid) {
  return uid + 1;
}

struct ClassSpec {
  ClassId id;
  std::string name;
  double weight = 1;
  double min_weight = 0.1;  // absolute, not a fraction; default 0.1 x weight
  std::optional<uint64_t> limit_bytes_per_s;
  VirtualDisk disk;  // obeyed by surplus `cooperative`
  std::optional<Reservation> reservation;
  std::optional<TimePoint> reservation_ends;  // `ends` translated to the holder's monotonic clock
  ServiceContract service;                    // obeyed by dispatch `vc` and `cvc`
  AdmissionKind admission = AdmissionKind::kAdditive;  // of the bound in `service`
  std::vector<TransactionSpec> transactions;           // see CheckTransactions
};

inline constexpr uint64_t kTokenBytes = 1024;         // AQuA §5.2: one token buys 1 KiB
inline constexpr uint64_t kRequestUnit = 64 << 10;    // see SchedulerConfig::iops_max
inline constexpr uint64_t kLargestRequest = 4 << 20;  // an object, the most one request may move

// ceil(bytes / 1 KiB), at least 1.
constexpr int64_t TokensOf(uint64_t bytes) {
  return bytes == 0 ? 1 : static_cast<int64_t>((bytes + kTokenBytes - 1) / kTokenBytes);
}

std::string_view ToText(GuaranteeKind kind);
std::string_view ToText(SurplusKind kind);
std::string_view ToText(SharingKind kind);
std::string_view ToText(GateKind kind);
std::string_view ToText(DispatchKind kind);
std::string_view ToText(CostKind kind);
std::string_view ToText(ReservationScope kind);
std::string_view ToText(AdmissionKind kind);
std::string_view ToText(AllocationKind kind);
// Parsers of the same words; kInvalid lists what there is.
Result<SurplusKind> ParseSurplus(std::string_view text);
Result<SharingKind> ParseSharing(std::string_view text);
Result<GateKind> ParseGate(std::string_view text);
Result<DispatchKind> ParseDispatch(std::string_view text);
Result<CostKind> ParseCost(std::string_view text);
Result<ReservationScope> ParseScope(std::string_view text);
Result<AdmissionKind> ParseAdmission(std::string_view text);
Result<AllocationKind> ParseAllocation(std::string_view text);

// The linear additive admission test of AQuA §5.1 on one OSD: best-effort minimum plus what is
// promised plus `rate` must fit into G0 (the configured rate, never the raised one).
struct AdmissionDecision {
  bool admitted = false;
  uint64_t promised = 0;  // to others, best-effort minimum included
  uint64_t largest = 0;   // the largest rate that would fit
};
AdmissionDecision AdmitAdditive(uint64_t token_rate, uint64_t promised_to_others, uint64_t rate);

// Transactions need a promise to take part of: kRefused when together they want more than the class
// has, kInvalid for transaction 0 (the default one) or one named twice.
Status CheckTransactions(const ClassSpec& spec);

// kRefused when the users of the class are promised more than it is. Pure.
Status CheckUsers(const ClassSpec& spec);
// What one of `osds` OSDs has to keep of that, as transactions: each user's part with the leeway of
// the class, or with less, so that over all OSDs all parts are no more than the class's promise.
std::vector<TransactionSpec> TransactionsOf(const Reservation& reservation, size_t osds);

// What a cluster-scope reservation R over n OSDs books on each: min(R, f * R / n), the leeway f in
// hundredths, from 1 to n.
uint64_t BookedPerOsd(uint64_t rate, ReservationScope scope, size_t osds, double leeway = kLeeway);

}  // namespace weir
