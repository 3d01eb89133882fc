#include "common/fsck/findings.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/base/units.h"

namespace weir {

void Findings::Add(std::string_view kind, std::string text, bool repaired) {
  Count& count = kinds_[std::string(kind)];
  ++count.found;
  count.repaired += repaired ? 1 : 0;
  if (listed_.size() < kListedMax)
    listed_.push_back({std::string(kind), std::move(text), repaired});
}

void Findings::Repaired(std::string_view kind) {
  const auto count = kinds_.find(kind);
  if (count == kinds_.end()) return;
  count->second.repaired = count->second.found;
  for (Finding& finding : listed_) finding.repaired = finding.repaired || finding.kind == kind;
}

uint64_t Findings::damaged() const {
  uint64_t sum = 0;
  for (const auto& [kind, count] : kinds_) sum += count.found - count.repaired;
  return sum;
}

uint64_t Findings::found() const {
  uint64_t sum = 0;
  for (const auto& [kind, count] : kinds_) sum += count.found;
  return sum;
}

uint64_t Findings::CountOf(std::string_view kind) const {
  const auto count = kinds_.find(kind);
  return count == kinds_.end() ? 0 : count->second.found;
}

uint64_t CheckReport::Fact(std::string_view key) const {
  for (const auto& [name, value] : facts) {
    if (name == key) return value;
  }
  return 0;
}

std::string ToText(const CheckReport& report) {
  std::string text = report.subject + "\n";
  for (const auto& [key, value] : report.facts) {
    const bool bytes = key.ends_with("_bytes");
    text += fmt::format("  {:<20} {}\n", bytes ? key.substr(0, key.size() - 6) : key,
                        bytes ? FormatSize(value) : std::to_string(value));
  }
  const Findings& findings = report.findings;
  for (const Finding& finding : findings.listed()) {
    text += fmt::format("! {}: {}{}\n", finding.kind, finding.text,
                        finding.repaired ? " (repaired)" : "");
  }
  if (findings.found() > findings.listed().size()) {
    text += fmt::format("! and {} more\n", findings.found() - findings.listed().size());
  }
  if (findings.found() == 0) return text + "clean\n";
  text += fmt::format("{} found, {} repaired:", findings.found(),
                      findings.found() - findings.damaged());
  for (const auto& [kind, count] : findings.kinds())
    text += fmt::format(" {} {}", count.found, kind);
  return text + "\n";
}

std::string ToJson(const CheckReport& report) {
  nlohmann::ordered_json json{{"version", 1}, {"subject", report.subject}};
  for (const auto& [key, value] : report.facts) json[key] = value;
  auto kinds = nlohmann::ordered_json::object();
  for (const auto& [kind, count] : report.findings.kinds()) {
    kinds[kind] = {{"found", count.found}, {"repaired", count.repaired}};
  }
  auto list = nlohmann::ordered_json::array();
  for (const Finding& finding : report.findings.listed()) {
    list.push_back(
        {{"kind", finding.kind}, {"text", finding.text}, {"repaired", finding.repaired}});
  }
  json["clean"] = report.findings.clean();
  json["kinds"] = kinds;
  json["findings"] = list;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace weir
