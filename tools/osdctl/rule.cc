// osdctl rule add | ls | rm | test: who is charged to which class where no tag says so.

#include <fmt/format.h>

#include <charconv>

#include "common/placement/cluster_map.h"
#include "common/wire/mds.pb.h"
#include "tools/cli/mounts.h"
#include "tools/cli/table.h"
#include "tools/cli/values.h"
#include "tools/osdctl/command.h"
#include "tools/osdctl/owner.h"

namespace weir::osdctl {
namespace {

struct Who {
  std::string uid, gid, exe, cgroup, client;
};

Result<uint32_t> RuleNumber(const std::string& text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (!text.empty() && error == std::errc() && end == text.data() + text.size()) return number;
  return {ErrorCode::kInvalid, fmt::format("'{}' is no number of a rule (osdctl rule ls)", text)};
}

Json RuleToJson(const wire::RuleInfo& rule) {
  Json json = {{"rule", rule.number()},
               {"uid", nullptr},
               {"gid", nullptr},
               {"exe", nullptr},
               {"cgroup", nullptr},
               {"client", nullptr},
               {"class", rule.class_name()}};
  if (rule.has_uid()) json["uid"] = rule.uid();
  if (rule.has_gid()) json["gid"] = rule.gid();
  if (!rule.exe().empty()) json["exe"] = rule.exe();
  if (!rule.cgroup().empty()) json["cgroup"] = rule.cgroup();
  if (!rule.client().empty()) json["client"] = rule.client();
  return json;
}

Result<ExitCode> RunLs(Globals& globals) {
  WEIR_ASSIGN_OR_RETURN(ClusterLink * link, globals.Link());
  WEIR_ASSIGN_OR_RETURN(const wire::ClusterMap map, link->Map());
  if (globals.json()) {
    Json rules = Json::array();
    for (const auto& rule : map.rules()) rules.push_back(RuleToJson(rule));
    PrintJson({{"rules", rules}});
    return ExitCode::kDone;
  }
  cli::Table table({">RULE", "WHO", "CLASS"});
  for (const auto& info : map.rules()) {
    WEIR_ASSIGN_OR_RETURN(const ClassRule rule, FromWire(info));
    const bool exists = FindClass(map, rule.class_name) != nullptr;
    table.AddRow({std::to_string(rule.number), DescribeRule(rule),
                  rule.class_name + (exists ? "" : " (does not exist: best-effort)")});
  }
  fmt::print("{}", table.Render());
  return ExitCode::kDone;
}

// A mount is named by -o client=NAME, or by its host, maybe with a process id behind a colon.
Status CheckWho(const Who& who) {
  if (!who.cgroup.empty()) {
    WEIR_RETURN_IF_ERROR(CheckCgroupPath(who.cgroup).Annotate("--cgroup"));
  }
  if (who.client.empty()) return Status::Ok();
  return cli::CheckName("client", who.client.substr(0, who.client.rfind(':')));
}

struct AddOptions {
  Who who;
  std::string class_name, before;
};

Result<ExitCode> RunAdd(Globals& globals, const AddOptions& options) {
  WEIR_RETURN_IF_ERROR(cli::CheckOldName("class", options.class_name));
  wire::RuleAddRequest request;
  wire::RuleInfo& rule = *request.mutable_rule();
  rule.set_class_name(options.class_name);
  if (!options.who.uid.empty()) {
    WEIR_ASSIGN_OR_RETURN(const uint32_t uid, OwnerId(options.who.uid, true));
    rule.set_uid(uid);
  }
  if (!options.who.gid.empty()) {
    WEIR_ASSIGN_OR_RETURN(const uint32_t gid, OwnerId(options.who.gid, false));
    rule.set_gid(gid);
  }
  WEIR_RETURN_IF_ERROR(CheckWho(options.who));
  rule.set_exe(options.who.exe);
  rule.set_cgroup(options.who.cgroup);
  rule.set_client(options.who.client);
  if (!rule.has_uid() && !rule.has_gid() && rule.exe().empty() && rule.cgroup().empty() &&
      rule.client().empty()) {
    return {ErrorCode::kInvalid, "a rule for whom? --uid, --gid, --exe, --cgroup or --client"};
  }
  if (!options.before.empty()) {
    WEIR_ASSIGN_OR_RETURN(const uint32_t before, RuleNumber(options.before));
    request.set_before(before);
  }
  WEIR_ASSIGN_OR_RETURN(ClusterLink * link, globals.Link());
  wire::RuleInfo made;
  WEIR_RETURN_IF_ERROR(link->Call(wire::MDS_RULE_ADD, request, &made));
  if (globals.json()) PrintJson(RuleToJson(made));
  return ExitCode::kDone;
}

Result<ExitCode> RunRm(Globals& globals, const std::string& text) {
  WEIR_ASSIGN_OR_RETURN(const uint32_t number, RuleNumber(text));
  WEIR_ASSIGN_OR_RETURN(ClusterLink * link, globals.Link());
  wire::RuleNumberRequest request;
  request.set_number(number);
  wire::Empty done;
  WEIR_RETURN_IF_ERROR(link->Call(wire::MDS_RULE_REMOVE, request, &done));
  if (globals.json()) PrintJson({{"removed", number}});
  return ExitCode::kDone;
}

struct TestOptions {
  Who who;
  std::vector<std::string> groups;
  std::string mount_class, path;
};

Result<ExitCode> RunTest(Globals& globals, const TestOptions& options) {
  wire::RuleTestRequest request;
  if (!options.who.uid.empty()) {
    WEIR_ASSIGN_OR_RETURN(const uint32_t uid, OwnerId(options.who.uid, true));
    request.mutable_who()->set_uid(uid);
  }
  if (!options.who.gid.empty()) {
    WEIR_ASSIGN_OR_RETURN(const uint32_t gid, OwnerId(options.who.gid, false));
    request.mutable_who()->set_gid(gid);
  }
  for (const std::string& group : options.groups) {
    WEIR_ASSIGN_OR_RETURN(const uint32_t gid, OwnerId(group, false));
    request.mutable_who()->add_groups(gid);
  }
  request.mutable_who()->set_exe(options.who.exe);
  if (!options.who.cgroup.empty()) {
    WEIR_RETURN_IF_ERROR(CheckCgroupPath(options.who.cgroup).Annotate("--cgroup"));
  }
  request.mutable_who()->set_cgroup(options.who.cgroup);
  request.set_client(options.who.client);
  request.set_mount_class(options.mount_class);
  request.set_path(cli::WhereInWeirfs(options.path).inside);
  WEIR_ASSIGN_OR_RETURN(ClusterLink * link, globals.Link());
  WEIR_ASSIGN_OR_RETURN(const wire::ClusterMap map, link->Map());
  wire::EffectiveClass answer;
  WEIR_RETURN_IF_ERROR(link->Call(wire::MDS_RULE_TEST, request, &answer));
  if (!globals.json()) {
    fmt::print("{}\n", answer.reason());
    return ExitCode::kDone;
  }
  const wire::ClassInfo* info = FindClass(map, answer.class_id());
  PrintJson({{"class", info == nullptr ? "" : info->name()},
             {"id", answer.class_id()},
             {"reason", answer.reason()},
             {"tagged", answer.tagged()}});
  return ExitCode::kDone;
}

void AddWho(CLI::App* verb, Who* who) {
  verb->add_option("--uid", who->uid, "user, by number or name")->type_name("U");
  verb->add_option("--gid", who->gid, "group, his first or any other")->type_name("G");
  verb->add_option("--exe", who->exe, "file name of the program; with a slash: its whole path")
      ->type_name("NAME");
  verb->add_option("--cgroup", who->cgroup,
                   "cgroup (v2) as systemd-cgls prints it: whoever runs in it or below")
      ->type_name("PATH");
  verb->add_option("--client", who->client,
                   "mount: its host, or its name as -o client=NAME gave it")
      ->type_name("NAME");
}

void AddAdd(CLI::App* parent, Globals& globals) {
  auto* verb = parent->add_subcommand("add", "charge somebody's I/O to a class");
  auto options = std::make_shared<AddOptions>();
  AddWho(verb, &options->who);
  verb->add_option("--class", options->class_name, "to which")->required()->type_name("C");
  verb->add_option("--before", options->before, "tried before that rule (default: last)")
      ->type_name("RULE");
  verb->footer(
      "All that is named must match. Rules hold within a second, also for files that are open: of\n"
      "these the user, the group, the program and the cgroup count that opened them. A tag always\n"
      "wins.\n\n"
      "Example: osdctl rule add --uid www-data --class web\n"
      "         osdctl rule add --exe rsync --class backup --before 1\n"
      "         osdctl rule add --cgroup /system.slice/docker-abc.scope --class web");
  verb->callback([&globals, options] {
    globals.action = [options](Globals& g) { return RunAdd(g, *options); };
  });
}

void AddTest(CLI::App* parent, Globals& globals) {
  auto* verb = parent->add_subcommand("test", "which class somebody would get, and why");
  auto options = std::make_shared<TestOptions>();
  AddWho(verb, &options->who);
  verb->add_option("--group", options->groups, "further groups of his")->type_name("G");
  verb->add_option("--mount-class", options->mount_class, "of a mount with -o class=C")
      ->type_name("C");
  verb->add_option("path", options->path,
                   "of the file, on a mount here or from the root of the file system (default: an "
                   "untagged one)");
  verb->footer("Example: osdctl rule test --uid 1001 --exe /usr/bin/rsync /mnt/weir/db/table");
  verb->callback([&globals, options] {
    globals.action = [options](Globals& g) { return RunTest(g, *options); };
  });
}

}  // namespace

void AddRule(CLI::App& app, Globals& globals) {
  auto* parent = app.add_subcommand("rule", "who is charged to which class where no tag says so");
  parent->require_subcommand(1);
  parent->footer(
      "Rules are tried in their order; the first that matches counts.\n\n"
      "Example: osdctl rule add --uid 1001 --class web");
  AddAdd(parent, globals);
  auto* ls = parent->add_subcommand("ls", "all rules, in the order in which they are tried");
  ls->footer("Example: osdctl rule ls");
  ls->callback([&globals] { globals.action = RunLs; });
  auto* rm = parent->add_subcommand("rm", "remove a rule");
  auto number = std::make_shared<std::string>();
  rm->add_option("rule", *number, "its number")->required()->type_name("RULE");
  rm->footer("Example: osdctl rule rm 2");
  rm->callback(
      [&globals, number] { globals.action = [number](Globals& g) { return RunRm(g, *number); }; });
  AddTest(parent, globals);
}

}  // namespace weir::osdctl
