#include <fmt/format.h>

#include "tools/sim/scenario/parser.h"

namespace weir::sim {

// What virtual disks (profile `vd`) and finish times (`vc`, `cvc`, `unified`) go by.
void Parser::TakeContract(TomlTable* table, ClassSpec* spec) {
  TakePiece(table, "type", &spec->disk.type, ParseClassType);
  spec->disk.peak = table->Number("peak", 0, 0, 1);
  spec->disk.throughput_bytes_per_s = table->Rate("throughput", 0);
  spec->disk.tolerance = table->Number("tolerance", spec->disk.tolerance, 0, .99);
  if (spec->disk.type == ClassType::kBestEffort) {
    for (const char* key : {"peak", "throughput", "tolerance"}) {
      if (table->Has(key)) table->Fail(key, "needs a type of rent-a-disk, latency or throughput");
    }
  }
  if (table->Has("latency")) {
    spec->disk.latency = spec->service.bound = table->Time("latency", Duration(0));
    if (spec->disk.latency <= Duration(0)) table->Fail("latency", "must be longer than nothing");
  }
  spec->service.max_pending =
      static_cast<uint32_t>(table->Whole("max_pending", spec->service.max_pending, 0, 1'000'000));
  if (table->Has("max_pending") && !table->Has("latency")) {
    table->Fail("max_pending", "needs a latency");
  }
  if (table->Has("probability") && !table->Has("latency")) {
    table->Fail("probability", "needs a latency");
  }
  spec->service.probability = table->Number("probability", spec->service.probability, .01, .9999);
  if (const Status bad = CheckVirtualDisk(spec->disk); !bad.ok()) {
    std::string why = bad.message();  // names osdctl's options; here they are keys
    if (const size_t dashes = why.find("--"); dashes != std::string::npos) why.erase(dashes, 2);
    table->Fail("type", why);
  }
}

// Transactions 1, 2 ...: the parts of the class's promise that they have.
void Parser::TakeTransactions(TomlTable* table, ClassSpec* spec) {
  for (uint64_t rate : table->Rates("transactions")) {
    const auto id = static_cast<uint32_t>(spec->transactions.size() + 1);
    spec->transactions.push_back({id, rate});
  }
  if (const Status bad = CheckTransactions(*spec); !bad.ok()) {
    table->Fail("transactions", bad.message());
  }
}

// A class that asks is not there before it was admitted.
void Parser::TakeAdmission(TomlTable* table, const ClassSpec& spec, Scenario* scenario) {
  ClassAdmission admission;
  if (table->Has("admission")) {
    AdmissionKind kind = AdmissionKind::kAdditive;
    TakePiece(table, "admission", &kind, ParseAdmission);
    admission.kind = kind;
    admission.at = table->Time("asks", Duration(0));
    if (!spec.reservation && spec.service.bound <= Duration(0)) {
      table->Fail("admission", "needs something to be admitted: a reservation, iops or a latency");
    }
    if (admission.at >= scenario->duration) {
      table->Fail("asks", "must be before the scenario ends (duration)");
    }
    if (scenario->scheduler.EffectiveIopsMax() <= 0) {
      table->Fail("admission", "needs what a device can do: token_rate or iops_max of [scheduler]");
    }
    if (spec.reservation && spec.reservation->bytes_per_s > 0 &&
        scenario->scheduler.token_rate == 0) {
      table->Fail("admission", "of a promise in bytes needs the token_rate of [scheduler]");
    }
  } else if (table->Has("asks")) {
    table->Fail("asks", "needs an admission");
  }
  scenario->admissions.push_back(admission);
}

Status Parser::TakeClass(TomlTable* table, Scenario* scenario) {
  ClassSpec spec;
  spec.id = ClassId(kFirstUserClass.value + static_cast<uint32_t>(scenario->classes.size()));
  spec.name = table->Text("name", "");
  if (spec.name.empty()) table->Fail("name", "a class needs a name");
  if (spec.name == "best-effort") {
    table->Fail("name", "'best-effort' is always there; another name makes another class");
  }
  for (const ClassSpec& other : scenario->classes) {
    if (other.name == spec.name) table->Fail("name", fmt::format("'{}' is there twice", spec.name));
  }
  spec.weight = table->Number("weight", 1, 1e-6, 1e6);
  spec.min_weight = table->Number("min_weight", spec.weight / 10, 1e-9, spec.weight);
  if (table->Has("limit")) {
    spec.limit_bytes_per_s = table->Rate("limit", 0);
    if (*spec.limit_bytes_per_s < 1024) table->Fail("limit", "must be at least 1KiB/s");
  }
  TakeContract(table, &spec);
  if (table->Has("reservation") || table->Has("iops")) {
    Reservation reservation;
    reservation.bytes_per_s = table->Rate("reservation", 0);
    reservation.iops = static_cast<uint64_t>(table->Whole("iops", 0, 0, 1'000'000'000));
    spec.reservation = reservation;
    TakePiece(table, "scope", &spec.reservation->scope, ParseScope);
    if (table->Has("reservation_for")) {
      spec.reservation_ends = TimePoint{0} + table->Time("reservation_for", Duration(0));
    }
    TakeTransactions(table, &spec);
  } else {
    for (const char* key : {"scope", "reservation_for", "transactions"}) {
      if (table->Has(key)) table->Fail(key, "needs a reservation");
    }
  }
  TakeAdmission(table, spec, scenario);
  scenario->classes.push_back(std::move(spec));
  return Status::Ok();
}

}  // namespace weir::sim
