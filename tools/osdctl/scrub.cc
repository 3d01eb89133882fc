// osdctl osd scrub: verifies the checksums of everything an OSD stores, while it serves.

#include <fmt/format.h>

#include <thread>

#include "common/base/units.h"
#include "common/wire/osd.pb.h"
#include "tools/cli/values.h"
#include "tools/osdctl/command.h"

namespace weir::osdctl {
namespace {

constexpr Duration kScrubTimeout = std::chrono::seconds(10);

struct ScrubOptions {
  std::string id;
  bool wait = false, stop = false, status = false;
};

wire::ScrubRequest::Action ActionOf(const ScrubOptions& options) {
  if (options.stop) return wire::ScrubRequest::STOP;
  return options.status ? wire::ScrubRequest::STATUS : wire::ScrubRequest::START;
}

std::string StateOf(const wire::ScrubReply& reply) {
  if (reply.running()) return "running";
  if (!reply.error().empty()) return reply.error();
  return reply.runs() > 0 ? "done" : "never run";
}

void PrintScrub(uint32_t id, const wire::ScrubReply& reply, bool json) {
  if (json) {
    PrintJson({{"id", id},
               {"state", StateOf(reply)},
               {"running", reply.running()},
               {"runs", reply.runs()},
               {"objects", reply.objects()},
               {"objects_total", reply.objects_total()},
               {"verified_bytes", reply.bytes()},
               {"damaged_blocks", reply.damaged_blocks()}});
    return;
  }
  fmt::print("osd.{}: scrub {}: {} of {} objects, {} verified, {} damaged blocks\n", id,
             StateOf(reply), reply.objects(), reply.objects_total(), FormatSize(reply.bytes()),
             reply.damaged_blocks());
}

Result<ExitCode> RunScrub(Globals& globals, const ScrubOptions& options) {
  WEIR_ASSIGN_OR_RETURN(const uint32_t id, cli::OsdIdValue(options.id));
  WEIR_ASSIGN_OR_RETURN(ClusterLink * link, globals.Link());
  WEIR_ASSIGN_OR_RETURN(const wire::ClusterMap map, link->Map());
  const wire::OsdInfo* osd = FindOsd(map, id);
  if (osd == nullptr) return NoSuchOsd(id);
  wire::ScrubRequest request;
  request.set_action(ActionOf(options));
  wire::ScrubReply reply;
  WEIR_RETURN_IF_ERROR(link->CallOsd(*osd, wire::OSD_SCRUB, request, &reply, kScrubTimeout));
  request.set_action(wire::ScrubRequest::STATUS);
  while (options.wait && reply.running()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    WEIR_RETURN_IF_ERROR(link->CallOsd(*osd, wire::OSD_SCRUB, request, &reply, kScrubTimeout));
  }
  PrintScrub(id, reply, globals.json());
  return reply.damaged_blocks() > 0 ? ExitCode::kUnhealthy : ExitCode::kDone;
}

}  // namespace

void AddScrub(CLI::App* osd, Globals& globals) {
  auto* verb = osd->add_subcommand("scrub", "verify every checksum while it serves");
  auto options = std::make_shared<ScrubOptions>();
  verb->add_option("id", options->id, "the OSD")->required()->type_name("ID");
  auto* wait = verb->add_flag("--wait", options->wait, "until it is done");
  auto* status = verb->add_flag("--status", options->status, "only say how far it is");
  verb->add_flag("--stop", options->stop, "end it")->excludes(wait)->excludes(status);
  verb->footer(
      "Reads as class system.scrub, as fast as that class is served; 7 when blocks are damaged.\n"
      "Example: osdctl osd scrub 0 --wait");
  verb->callback([&globals, options] {
    globals.action = [options](Globals& g) { return RunScrub(g, *options); };
  });
}

}  // namespace weir::osdctl
