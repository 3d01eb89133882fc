// What the verbs of osdctl share: the global options, the link, and how a verb is plugged in.
//
// A verb's Add… function declares its subcommand and options; when the command line names it, its
// callback puts an Action into Globals, which main runs.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/wire/map.pb.h"
#include "tools/cli/cluster_link.h"
#include "tools/cli/exit_code.h"

namespace weir::osdctl {

using cli::ClusterLink;
using cli::ExitCode;
using Json = nlohmann::ordered_json;

struct Globals {
  std::string cluster;
  std::string output = "table";
  // Set by the chosen verb.
  std::function<Result<ExitCode>(Globals&)> action;

  [[nodiscard]] bool json() const { return output == "json"; }
  // The link to the cluster, opened when first needed.
  Result<ClusterLink*> Link();

 private:
  std::unique_ptr<ClusterLink> link_;
};

// Prints one JSON document, with "version":1 in front.
void PrintJson(const Json& body);
// "max" for none, else as a rate.
std::string LimitText(const wire::ClassInfo& info);
std::string RateOrDash(uint64_t bytes_per_s);
// Between whom the class is fair: "user".
std::string FlowText(const wire::ClassInfo& info);

// Null when the map has none of that name or id.
const wire::ClassInfo* FindClass(const wire::ClusterMap& map, const std::string& name);
const wire::ClassInfo* FindClass(const wire::ClusterMap& map, uint32_t id);
const wire::OsdInfo* FindOsd(const wire::ClusterMap& map, uint32_t id);
Status NoSuchClass(const std::string& name);
Status NoSuchOsd(uint32_t id);

// What the map promises on one OSD: reservations as booked there and the best-effort minimum.
uint64_t PromisedOn(const wire::ClusterMap& map, const wire::OsdInfo& osd);

Json ToJson(const wire::ClassInfo& info);
Json ToJson(const wire::ClusterMap& map, const wire::OsdInfo& osd);
Json ToJson(const wire::PoolInfo& pool);

// A verb that acts on one named thing, as in `osdctl class show gold`.
struct NamedThing {
  const char* what;         // "class"
  const char* placeholder;  // "C"
  const char* example;      // "gold"
};
void AddNamedVerb(CLI::App* parent, Globals& globals, const NamedThing& thing,
                  const std::string& verb, const std::string& help,
                  Result<ExitCode> (*run)(Globals&, const std::string&));

void AddStatus(CLI::App& app, Globals& globals);
void AddOsd(CLI::App& app, Globals& globals);
void AddScrub(CLI::App* osd, Globals& globals);
void AddProfile(CLI::App& app, Globals& globals);
void AddClass(CLI::App& app, Globals& globals);
void AddReserve(CLI::App& app, Globals& globals);
void AddRelease(CLI::App& app, Globals& globals);
void AddRule(CLI::App& app, Globals& globals);
void AddStat(CLI::App& app, Globals& globals);
void AddTop(CLI::App& app, Globals& globals);
void AddWhy(CLI::App& app, Globals& globals);
void AddVerify(CLI::App& app, Globals& globals);
void AddPool(CLI::App& app, Globals& globals);
void AddVersion(CLI::App& app, Globals& globals);
void AddBundle(CLI::App& app, Globals& globals);
void AddConfig(CLI::App& app, Globals& globals);
void AddCompletion(CLI::App& app, Globals& globals);

}  // namespace weir::osdctl
