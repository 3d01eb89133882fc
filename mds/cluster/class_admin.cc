// Classes and reservations.
#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/good_name.h"
#include "common/base/log.h"
#include "common/base/units.h"
#include "mds/cluster/admission.h"
#include "mds/cluster/class_contract.h"
#include "mds/cluster/cluster_keeper.h"

namespace weir::mds {
namespace {

constexpr double kWeightMax = 1e6;
constexpr uint64_t kRateMax = INT64_MAX;
constexpr uint64_t kIopsMax = 1'000'000'000;
constexpr double kLeewayMax = 1000;
constexpr size_t kUsersMax = 256;  // whom a class promises a part; the OSDs look at each

Status CheckWeights(const wire::SetClassRequest& request) {
  const auto good = [](double w) { return std::isfinite(w) && w > 0 && w <= kWeightMax; };
  if (request.has_weight() && !good(request.weight())) {
    return {ErrorCode::kInvalid, "a weight is more than 0 and at most 1000000"};
  }
  if (request.has_min_weight() && request.min_weight() != 0 && !good(request.min_weight())) {
    return {ErrorCode::kInvalid, "a minimum weight is from 0 to 1000000"};
  }
  if (request.has_limit_bytes_per_s() && request.limit_bytes_per_s() != UINT64_MAX &&
      (request.limit_bytes_per_s() == 0 || request.limit_bytes_per_s() > kRateMax)) {
    return {ErrorCode::kInvalid, "a limit is more than 0 and less than 8EiB/s, or max"};
  }
  return Status::Ok();
}

// Mounts and OSDs would find nobody of that uid where something else than users shares the class.
Status CheckFlow(const ClassEntry& entry) {
  const auto& reservation = entry.spec.reservation;
  if (entry.flow == FlowKind::kUser || !reservation || reservation->users.empty()) {
    return Status::Ok();
  }
  return {ErrorCode::kInvalid, "users can be promised parts of '" + entry.spec.name +
                                   "' while it is shared between users only, with --flow user "
                                   "(osdctl release CLASS --user UID takes a part back)"};
}

Status ApplySpec(const wire::SetClassRequest& request, ClassEntry* entry) {
  WEIR_RETURN_IF_ERROR(CheckWeights(request));
  ClassSpec& spec = entry->spec;
  if (request.has_weight()) {
    // The minimum follows the weight until somebody sets it apart.
    if (std::abs(spec.min_weight - 0.1 * spec.weight) < 1e-9 * spec.weight) {
      spec.min_weight = 0.1 * request.weight();
    }
    spec.weight = request.weight();
  }
  if (request.has_min_weight()) spec.min_weight = request.min_weight();
  if (request.has_limit_bytes_per_s()) {
    spec.limit_bytes_per_s = request.limit_bytes_per_s();
    if (request.limit_bytes_per_s() == UINT64_MAX) spec.limit_bytes_per_s.reset();
  }
  if (spec.limit_bytes_per_s.has_value() && spec.reservation.has_value() &&
      *spec.limit_bytes_per_s < spec.reservation->bytes_per_s) {
    return {ErrorCode::kInvalid,
            "the limit of '" + spec.name + "' would be below its reservation (release that first)"};
  }
  WEIR_RETURN_IF_ERROR(ApplyContract(request, &spec));
  if (request.has_limit_names_per_s()) {
    if (request.limit_names_per_s() > kIopsMax) {
      return {ErrorCode::kInvalid, "a limit is at most 1000000000 operations on names a second"};
    }
    entry->limit_names_per_s = request.limit_names_per_s();
  }
  if (request.has_flow()) {
    WEIR_ASSIGN_OR_RETURN(entry->flow, ParseFlowKind(request.flow()));
    WEIR_RETURN_IF_ERROR(CheckFlow(*entry));
  }
  if (!request.users().empty()) entry->users.assign(request.users().begin(), request.users().end());
  if (!request.groups().empty()) {
    entry->groups.assign(request.groups().begin(), request.groups().end());
  }
  return Status::Ok();
}

Status ApplyCapacity(const ClusterMap& map, const wire::SetClassRequest& request,
                     ClassEntry* entry) {
  if (!request.has_capacity_bytes()) return Status::Ok();
  if (IsSystemClass(entry->spec)) {
    return {ErrorCode::kInvalid, "'" + entry->spec.name + "' is WeirFS's own: it holds no files"};
  }
  uint64_t bytes = request.capacity_bytes();
  if (bytes == 0 || (bytes > kRateMax && bytes != UINT64_MAX)) {
    return {ErrorCode::kInvalid, "a capacity is more than 0 and less than 8EiB, or max"};
  }
  if (bytes == UINT64_MAX) bytes = 0;
  const bool more = bytes > entry->capacity_bytes;
  entry->capacity_bytes = bytes;
  return more ? AdmitCapacity(map, entry->spec, bytes) : Status::Ok();
}

// The class as it would be in `map`, whose own entry is the old one or none.
Status AdmitChange(const ClusterMap& map, const ClassSpec& before, const ClassSpec& now,
                   const MeasuresByOsd& measures) {
  for (const Wanted wanted : NewContracts(before, now)) {
    if (!AsksForMore(map, before, now, wanted)) continue;
    WEIR_RETURN_IF_ERROR(AdmitClass(map, now, wanted, measures));
  }
  return Status::Ok();
}

Result<Reservation> ReservationOf(const wire::ReserveRequest& request, WallTime now) {
  if (request.bytes_per_s() > kRateMax || (request.bytes_per_s() == 0 && request.iops() == 0)) {
    return Status(ErrorCode::kInvalid, "a reservation is more than 0 and less than 8EiB/s");
  }
  if (request.iops() > kIopsMax) {
    return Status(ErrorCode::kInvalid, "at most 1000000000 requests a second can be reserved");
  }
  Reservation wanted;
  wanted.bytes_per_s = request.bytes_per_s();
  wanted.iops = request.iops();
  if (!request.scope().empty()) {
    WEIR_ASSIGN_OR_RETURN(wanted.scope, ParseScope(request.scope()));
  }
  if (!request.admission().empty()) {
    WEIR_ASSIGN_OR_RETURN(wanted.admission, ParseAdmission(request.admission()));
  }
  if (request.leeway() != 0) {
    if (!(request.leeway() >= 1 && request.leeway() <= kLeewayMax)) {
      return Status(ErrorCode::kInvalid, "a leeway is 1 to 1000");
    }
    wanted.leeway = request.leeway();
  }
  if (request.has_duration_ns()) {
    if (request.duration_ns() == 0 ||
        request.duration_ns() > static_cast<uint64_t>(INT64_MAX - now.ns)) {
      return Status(ErrorCode::kInvalid, "a reservation lasts more than 0 and less than 200 years");
    }
    wanted.ends = WallTime{now.ns + static_cast<int64_t>(request.duration_ns())};
  }
  return wanted;
}

// A part of what the class is promised, or another one than before, for one user.
Status GiveUser(const wire::ReserveRequest& request, ClassEntry* entry) {
  ClassSpec* const spec = &entry->spec;
  const bool more = request.iops() > 0 || request.leeway() != 0 || request.choose_leeway() ||
                    request.has_duration_ns() || !request.scope().empty() ||
                    !request.admission().empty();
  if (more || request.bytes_per_s() == 0) {
    return {ErrorCode::kInvalid,
            "a user has a bandwidth of what the class is promised, which says all else (--user "
            "with --bandwidth only)"};
  }
  if (TransactionOf(request.user()) == 0) return {ErrorCode::kInvalid, "there is no such uid"};
  if (!spec->reservation || spec->reservation->bytes_per_s == 0 || IsSystemClass(*spec)) {
    return {ErrorCode::kInvalid, "'" + spec->name +
                                     "' is promised no bandwidth that a user could have a part "
                                     "of (osdctl reserve CLASS --bandwidth RATE)"};
  }
  std::vector<UserPart>& users = spec->reservation->users;
  std::erase_if(users, [&](const UserPart& user) { return user.uid == request.user(); });
  if (users.size() >= kUsersMax) {
    return {ErrorCode::kInvalid, "at most 256 users of a class can be promised a part of it"};
  }
  users.push_back({.uid = request.user(), .bytes_per_s = request.bytes_per_s()});
  WEIR_RETURN_IF_ERROR(CheckFlow(*entry));
  WEIR_RETURN_IF_ERROR(CheckUsers(*spec));  // the new one is the last, and the one to blame
  std::sort(users.begin(), users.end(),
            [](const UserPart& a, const UserPart& b) { return a.uid < b.uid; });
  return Status::Ok();
}

// The users of a class keep their parts of its promise when that is changed.
Status KeepUsers(const ClassSpec& before, ClassSpec* now) {
  if (!before.reservation) return Status::Ok();
  now->reservation->users = before.reservation->users;
  if (CheckUsers(*now).ok()) return Status::Ok();
  uint64_t sum = 0;
  for (const UserPart& user : now->reservation->users) sum += user.bytes_per_s;
  return {ErrorCode::kRefused, "cannot reserve less for '" + now->name +
                                   "' than its users are promised: " + FormatRate(sum) +
                                   " (osdctl release CLASS --user UID)"};
}

Status NoClass(const std::string& name) {
  return {ErrorCode::kNotFound,
          "there is no class '" + name + "' (osdctl class ls shows what there is)"};
}

}  // namespace

Result<wire::ClassInfo> ClusterKeeper::CreateClass(const wire::SetClassRequest& request,
                                                   const Asked& asked) {
  const std::lock_guard changing(changing_);
  const std::string& name = request.name();
  if (!IsGoodName(name)) {
    return Status(ErrorCode::kInvalid,
                  "'" + name + "' is no name for a class: " + std::string(kGoodName));
  }
  if (name.starts_with("system.")) {
    return Status(ErrorCode::kInvalid, "names with 'system.' are for WeirFS's own classes");
  }
  ClusterMap next = *map();
  if (next.FindClass(name) != nullptr) {
    return Status(ErrorCode::kExists,
                  "class '" + name + "' exists already (osdctl class set " + name + ")");
  }
  Ids ids = ids_;
  ClassEntry entry;
  entry.spec.id = ClassId(ids.klass++);
  entry.spec.name = name;
  WEIR_RETURN_IF_ERROR(ApplySpec(request, &entry));
  WEIR_RETURN_IF_ERROR(ApplyCapacity(next, request, &entry));
  WEIR_RETURN_IF_ERROR(AdmitChange(next, {}, entry.spec, Measures()));
  wire::ClassInfo info = ToWire(entry);
  ShowBooking(next, entry.spec, &info);
  if (request.dry_run()) return info;
  next.classes[entry.spec.id] = std::move(entry);
  WEIR_RETURN_IF_ERROR(Commit(std::move(next), std::move(ids), {asked, info.SerializeAsString()}));
  WEIR_LOG_INFO("class '{}' is made", LogClass(name));
  return info;
}

Result<wire::ClassInfo> ClusterKeeper::SetClass(const wire::SetClassRequest& request,
                                                const Asked& asked) {
  const std::lock_guard changing(changing_);
  ClusterMap next = *map();
  const ClassEntry* found = next.FindClass(request.name());
  if (found == nullptr) return NoClass(request.name());
  ClassEntry& entry = next.classes.at(found->spec.id);
  const ClassSpec before = entry.spec;
  WEIR_RETURN_IF_ERROR(ApplySpec(request, &entry));
  WEIR_RETURN_IF_ERROR(ApplyCapacity(next, request, &entry));
  WEIR_RETURN_IF_ERROR(AdmitChange(next, before, entry.spec, Measures()));
  wire::ClassInfo info = ToWire(entry);
  ShowBooking(next, entry.spec, &info);
  if (request.dry_run()) return info;
  WEIR_RETURN_IF_ERROR(CommitSame(std::move(next), {asked, info.SerializeAsString()}));
  WEIR_LOG_INFO("class '{}' is changed", LogClass(request.name()));
  return info;
}

Status ClusterKeeper::RemoveClass(const std::string& name, const Asked& asked) {
  const std::lock_guard changing(changing_);
  ClusterMap next = *map();
  const ClassEntry* found = next.FindClass(name);
  if (found == nullptr) return NoClass(name);
  const ClassId id = found->spec.id;
  if (id < kFirstUserClass) return {ErrorCode::kInvalid, "class '" + name + "' always exists"};
  next.classes.erase(id);
  WEIR_RETURN_IF_ERROR(CommitSame(std::move(next), {asked, {}}));
  WEIR_LOG_INFO("class '{}' is removed; what is tagged with it is served as best-effort",
                LogClass(name));
  return Status::Ok();
}

Result<wire::ReserveReply> ClusterKeeper::Reserve(const wire::ReserveRequest& request,
                                                  const Asked& asked) {
  const std::lock_guard changing(changing_);
  ClusterMap next = *map();
  const ClassEntry* found = next.FindClass(request.name());
  if (found == nullptr) return NoClass(request.name());
  if (found->spec.id == kBestEffort) {
    return Status(ErrorCode::kInvalid,
                  "best-effort has a minimum, not a reservation (osdctl osd set all "
                  "--best-effort-min RATE)");
  }
  ClassEntry& entry = next.classes.at(found->spec.id);
  const ClassSpec before = entry.spec;
  wire::ReserveReply reply;
  if (request.has_user()) {
    WEIR_RETURN_IF_ERROR(GiveUser(request, &entry));
  } else {
    WEIR_ASSIGN_OR_RETURN(entry.spec.reservation, ReservationOf(request, clock_.WallNow()));
    WEIR_RETURN_IF_ERROR(KeepUsers(before, &entry.spec));
  }
  Reservation& wanted = *entry.spec.reservation;
  if (request.choose_leeway() && !request.has_user()) {
    const SkewBook::Choice chosen = skew_.Choose(entry.spec, next.osds.size(), clock_.Now());
    wanted.leeway = chosen.leeway;
    reply.set_leeway_periods(static_cast<uint32_t>(chosen.periods));
  }
  // Each disk's background work is its own.
  if (IsSystemClass(entry.spec)) wanted.scope = ReservationScope::kOsd;
  if (entry.spec.limit_bytes_per_s.has_value() &&
      *entry.spec.limit_bytes_per_s < wanted.bytes_per_s) {
    return Status(ErrorCode::kInvalid, "the reservation would be above the limit of '" +
                                           entry.spec.name + "' (raise that first)");
  }
  if (AsksForMore(next, before, entry.spec, Wanted::kReservation)) {
    const Status admitted = AdmitClass(next, entry.spec, Wanted::kReservation, Measures());
    if (!admitted.ok()) {
      WEIR_LOG_INFO("refused to class '{}': {}", LogClass(request.name()), admitted.message());
      return admitted;
    }
  }
  *reply.mutable_class_info() = ToWire(entry);
  ShowBooking(next, entry.spec, reply.mutable_class_info());
  reply.set_booked_per_osd(
      BookedPerOsd(wanted.bytes_per_s, wanted.scope, next.osds.size(), wanted.leeway));
  if (request.dry_run()) return reply;
  const std::string promised = FormatRate(wanted.bytes_per_s);
  const uint64_t requests = wanted.iops;
  WEIR_RETURN_IF_ERROR(CommitSame(std::move(next), {asked, reply.SerializeAsString()}));
  WEIR_LOG_INFO("class '{}' is promised {} and {} requests/s", LogClass(request.name()), promised,
                requests);
  return reply;
}

Status ClusterKeeper::ReleaseReservation(const std::string& name, std::optional<uint32_t> user,
                                         const Asked& asked) {
  const std::lock_guard changing(changing_);
  ClusterMap next = *map();
  const ClassEntry* found = next.FindClass(name);
  if (found == nullptr) return NoClass(name);
  if (!found->spec.reservation.has_value()) {
    return {ErrorCode::kNotFound, "class '" + name + "' has no reservation"};
  }
  auto& reservation = next.classes.at(found->spec.id).spec.reservation;
  if (!user.has_value()) {
    reservation.reset();
  } else if (std::erase_if(reservation->users,
                           [&](const UserPart& one) { return one.uid == *user; }) == 0) {
    return {ErrorCode::kNotFound,
            "uid " + std::to_string(*user) + " is promised nothing of '" + name + "'"};
  }
  WEIR_RETURN_IF_ERROR(CommitSame(std::move(next), {asked, {}}));
  if (user.has_value()) {
    WEIR_LOG_INFO("uid {} has no part of the promise of class '{}' any more", *user,
                  LogClass(name));
  } else {
    WEIR_LOG_INFO("the reservation of class '{}' is released", LogClass(name));
  }
  return Status::Ok();
}

}  // namespace weir::mds
