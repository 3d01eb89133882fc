// osdctl pool create | ls | show | rm: named sets of OSDs.

#include <fmt/format.h>

#include "common/wire/mds.pb.h"
#include "tools/cli/table.h"
#include "tools/cli/values.h"
#include "tools/osdctl/command.h"

namespace weir::osdctl {
namespace {

const wire::PoolInfo* FindPool(const wire::ClusterMap& map, const std::string& name) {
  for (const auto& pool : map.pools()) {
    if (pool.name() == name) return &pool;
  }
  return nullptr;
}

void PrintPools(const std::vector<const wire::PoolInfo*>& pools) {
  cli::Table table({"POOL", ">ID", ">REPLICAS", ">SLOTS", "IN USE", "OSDS"});
  for (const auto* pool : pools) {
    table.AddRow({pool->name(), std::to_string(pool->id()), std::to_string(pool->replicas()),
                  std::to_string(pool->chains_size()), pool->in_use() ? "yes" : "no",
                  fmt::format("{}{}", fmt::join(pool->osds(), ","),
                              pool->all_osds() ? " (takes every OSD until in use)" : "")});
  }
  fmt::print("{}", table.Render());
}

void PrintOne(const Globals& globals, const wire::PoolInfo& pool) {
  if (globals.json()) {
    PrintJson(ToJson(pool));
  } else {
    PrintPools({&pool});
  }
}

Result<ExitCode> RunPoolLs(Globals& globals) {
  WEIR_ASSIGN_OR_RETURN(ClusterLink * link, globals.Link());
  WEIR_ASSIGN_OR_RETURN(const wire::ClusterMap map, link->Map());
  Json pools = Json::array();
  std::vector<const wire::PoolInfo*> rows;
  for (const auto& pool : map.pools()) {
    pools.push_back(ToJson(pool));
    rows.push_back(&pool);
  }
  if (globals.json()) {
    PrintJson({{"pools", pools}});
  } else {
    PrintPools(rows);
  }
  return ExitCode::kDone;
}

Result<ExitCode> RunPoolShow(Globals& globals, const std::string& name) {
  WEIR_RETURN_IF_ERROR(cli::CheckOldName("pool", name));
  WEIR_ASSIGN_OR_RETURN(ClusterLink * link, globals.Link());
  WEIR_ASSIGN_OR_RETURN(const wire::ClusterMap map, link->Map());
  const wire::PoolInfo* pool = FindPool(map, name);
  if (pool == nullptr) {
    return {ErrorCode::kNotFound,
            fmt::format("there is no pool '{}' (osdctl pool ls shows them)", name)};
  }
  PrintOne(globals, *pool);
  return ExitCode::kDone;
}

Result<ExitCode> RunPoolRm(Globals& globals, const std::string& name) {
  WEIR_RETURN_IF_ERROR(cli::CheckOldName("pool", name));
  WEIR_ASSIGN_OR_RETURN(ClusterLink * link, globals.Link());
  wire::PoolNameRequest request;
  request.set_name(name);
  wire::Empty done;
  WEIR_RETURN_IF_ERROR(link->Call(wire::MDS_POOL_REMOVE, request, &done));
  if (globals.json()) PrintJson({{"removed", name}});
  return ExitCode::kDone;
}

struct CreateOptions {
  std::string name;
  std::vector<std::string> osds;
  int replicas = 1;
};

Result<ExitCode> RunCreate(Globals& globals, const CreateOptions& options) {
  WEIR_RETURN_IF_ERROR(cli::CheckName("pool", options.name));
  if (options.replicas < 1) {
    return {ErrorCode::kInvalid, fmt::format("--replicas {}: at least 1", options.replicas)};
  }
  if (options.replicas > 1) return cli::NotBuilt(fmt::format("--replicas {}", options.replicas));
  wire::PoolCreateRequest request;
  request.set_name(options.name);
  request.set_replicas(static_cast<uint32_t>(options.replicas));
  for (const std::string& text : options.osds) {
    WEIR_ASSIGN_OR_RETURN(const uint32_t id, cli::OsdIdValue(text));
    request.add_osds(id);
  }
  WEIR_ASSIGN_OR_RETURN(ClusterLink * link, globals.Link());
  WEIR_ASSIGN_OR_RETURN(const wire::ClusterMap map, link->Map());
  for (const uint32_t id : request.osds()) {
    if (FindOsd(map, id) == nullptr) return NoSuchOsd(id);
  }
  wire::PoolInfo pool;
  WEIR_RETURN_IF_ERROR(link->Call(wire::MDS_POOL_CREATE, request, &pool));
  if (globals.json()) PrintOne(globals, pool);
  return ExitCode::kDone;
}

constexpr NamedThing kPool = {"pool", "P", "fast"};

}  // namespace

void AddPool(CLI::App& app, Globals& globals) {
  auto* parent = app.add_subcommand("pool", "named sets of OSDs; a directory's layout names one");
  parent->require_subcommand(1);
  parent->footer("Example: osdctl pool ls");
  auto* ls = parent->add_subcommand("ls", "all pools");
  ls->footer("Example: osdctl pool ls");
  ls->callback([&globals] { globals.action = RunPoolLs; });
  AddNamedVerb(parent, globals, kPool, "show", "one pool", RunPoolShow);
  auto* create = parent->add_subcommand("create", "make a pool");
  auto options = std::make_shared<CreateOptions>();
  create->add_option("pool", options->name, "its name")->required()->type_name("P");
  create->add_option("--osds", options->osds, "its OSDs")
      ->required()
      ->delimiter(',')
      ->type_name("0,1,...");
  create->add_option("--replicas", options->replicas, "copies of each object (1)")->type_name("N");
  create->footer(
      "Example: osdctl pool create fast --osds 0,1\n"
      "         setfattr -n user.weir.layout.pool -v fast /mnt/weir/db");
  create->callback([&globals, options] {
    globals.action = [options](Globals& g) { return RunCreate(g, *options); };
  });
  AddNamedVerb(parent, globals, kPool, "rm", "remove a pool that no file uses", RunPoolRm);
}

}  // namespace weir::osdctl
