// weir-sim: the QoS engine in virtual time against modelled disks; reproduces the papers'
// experiments and runs scenarios that people write.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "osd/decisions/recording.h"
#include "osd/decisions/replay.h"
#include "osd/decisions/served.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/parse.h"
#include "tools/cli/program.h"
#include "tools/cli/table.h"
#include "tools/cli/version.h"
#include "tools/sim/output/document.h"
#include "tools/sim/output/plot.h"
#include "tools/sim/output/report.h"
#include "tools/sim/output/scenario_document.h"
#include "tools/sim/recordings/record.h"
#include "tools/sim/scenario/scenario.h"

namespace weir::sim {
namespace {

using cli::ExitCode;

struct Arguments {
  std::vector<std::string> ids;
  std::string output = "table";
  uint64_t seed = 1;
  uint64_t seeds = 1;  // so many, from `seed` on
  std::string fault;
  std::string plot;  // directory for figures
  std::string save;  // file for the document, beside the table
  ReportOptions report;
  std::string scenario;
  std::string decisions;
  std::string recordings;  // a folder, or of `pack` a file
  bool inputs_only = false;
  uint64_t events = UINT64_MAX;
  double percent = 5;
  bool timing = false;
  unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
  std::function<Result<ExitCode>(const Arguments&)> action;
};

// "e30B" is E30b.
const Experiment* Find(std::string id) {
  for (char& c : id) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (!id.empty() && id[0] == 'e') id[0] = 'E';
  return FindExperiment(id);
}

// Words up to the 98th column of a line.
std::string Wrapped(const std::string& text) {
  constexpr size_t kColumns = 98;
  std::string out;
  size_t column = 0;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (column > 0 && column + 1 + word.size() > kColumns) {
      out += '\n';
      column = 0;
    }
    if (column > 0) out += ' ';
    column += word.size() + (column > 0 ? 1 : 0);
    out += word;
  }
  return out;
}

Result<std::vector<const Experiment*>> Chosen(const std::vector<std::string>& ids) {
  std::vector<const Experiment*> chosen;
  for (const std::string& id : ids) {
    if (id == "all" || id == "quick") {
      for (const Experiment& e : AllExperiments()) {
        if (id == "all" || !e.slow) chosen.push_back(&e);
      }
      continue;
    }
    const Experiment* experiment = Find(id);
    if (experiment == nullptr) {
      return {ErrorCode::kInvalid,
              fmt::format("there is no experiment '{}'; `weir-sim list` shows what there is", id)};
    }
    chosen.push_back(experiment);
  }
  return chosen;
}

Result<ExitCode> List(const Arguments& /*arguments*/) {
  cli::Table table({"ID", "TITLE", "SOURCE"});
  for (const Experiment& e : AllExperiments()) table.AddRow({e.id, e.title, e.source});
  fmt::print("{}", table.Render());
  return ExitCode::kDone;
}

Result<ExitCode> Show(const Arguments& arguments) {
  WEIR_ASSIGN_OR_RETURN(const auto chosen, Chosen(arguments.ids));
  for (const Experiment* e : chosen) {
    fmt::print("{}  {}\nsource: {}\n{}\n", e->id, e->title, e->source, Wrapped(e->about));
  }
  return ExitCode::kDone;
}

// Experiments share nothing, so each thread takes the next one that nobody has.
std::vector<Outcome> RunChosen(const std::vector<const Experiment*>& chosen, uint64_t seed,
                               Fault fault, unsigned jobs, bool timing) {
  std::vector<Outcome> outcomes;
  outcomes.reserve(chosen.size());
  for (const Experiment* e : chosen) outcomes.push_back({e, Run(seed, fault)});
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < outcomes.size(); i = next++) {
      const auto start = std::chrono::steady_clock::now();
      outcomes[i].experiment->run(outcomes[i].run);
      const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
      if (timing) {
        cli::Say("weir-sim",
                 fmt::format("{:<6} {:6.2f} s", outcomes[i].experiment->id, wall.count()));
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < jobs; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

// One SVG for each figure: DIR/E7-1.svg ...
Status SaveFigures(const std::string& directory, const std::vector<Outcome>& outcomes) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  for (const Outcome& outcome : outcomes) {
    size_t number = 0;
    for (const Figure& figure : outcome.run.figures()) {
      const std::string path =
          fmt::format("{}/{}-{}.svg", directory, outcome.experiment->id, ++number);
      std::ofstream file(path);
      file << SvgOf(figure);
      if (!file.flush()) {
        return {ErrorCode::kIo, fmt::format("--plot: cannot write '{}'; is '{}' a directory that "
                                            "you may write to?",
                                            path, directory)};
      }
    }
  }
  return Status::Ok();
}

Status SaveDocument(const std::string& path, const std::vector<Outcome>& outcomes) {
  std::ofstream file(path);
  file << JsonOf(outcomes) << '\n';
  if (file.flush()) return Status::Ok();
  return {ErrorCode::kIo, fmt::format("--save: cannot write '{}'", path)};
}

void PrintOutcome(const Outcome& outcome, bool with_figures) {
  fmt::print("{}\n", TableOf(outcome));
  if (!with_figures) return;
  for (const Figure& figure : outcome.run.figures()) fmt::print("{}\n", TextOf(figure));
}

Result<ExitCode> RunOneScenario(const Arguments& arguments) {
  WEIR_ASSIGN_OR_RETURN(const Scenario scenario, LoadScenario(arguments.scenario));
  const ScenarioResult result = RunScenario(scenario);
  const bool json = arguments.output == "json";
  fmt::print("{}\n", json ? JsonOf(scenario, result) : TableOf(scenario, result));
  return ExitCode::kDone;
}

// Says which checks failed; the number of experiments that have one.
size_t PrintFailures(uint64_t seed, const std::vector<Outcome>& outcomes) {
  size_t failed = 0;
  for (const Outcome& outcome : outcomes) {
    failed += outcome.run.pass() ? 0 : 1;
    for (const Check& check : outcome.run.checks()) {
      if (check.pass()) continue;
      fmt::print("seed {}: {} {}: {:.5g}, not within [{:.5g}, {:.5g}]\n", seed,
                 outcome.experiment->id, check.name, check.measured, check.low, check.high);
    }
  }
  return failed;
}

Result<ExitCode> RunSeeds(const Arguments& arguments, const std::vector<const Experiment*>& chosen,
                          Fault fault) {
  size_t failed = 0;
  for (uint64_t i = 0; i < arguments.seeds; ++i) {
    const uint64_t seed = arguments.seed + i;
    failed += PrintFailures(seed, RunChosen(chosen, seed, fault, arguments.jobs, arguments.timing));
  }
  const size_t all = chosen.size() * arguments.seeds;
  fmt::print("{} of {} experiments passed, with {} seeds\n", all - failed, all, arguments.seeds);
  return failed == 0 ? ExitCode::kDone : ExitCode::kFailed;
}

Result<ExitCode> RunExperiments(const Arguments& arguments) {
  WEIR_ASSIGN_OR_RETURN(const auto chosen, Chosen(arguments.ids));
  const Fault fault = ParseFault(arguments.fault);
  if (fault == Fault::kNone && !arguments.fault.empty()) {
    std::string there_is;
    for (Fault known : AllFaults()) there_is += fmt::format(" {}", ToText(known));
    return {ErrorCode::kInvalid,
            fmt::format("--break '{}': no such fault (there is:{})", arguments.fault, there_is)};
  }
  if (arguments.seeds > 1) return RunSeeds(arguments, chosen, fault);
  const std::vector<Outcome> outcomes =
      RunChosen(chosen, arguments.seed, fault, arguments.jobs, arguments.timing);
  if (!arguments.plot.empty()) WEIR_RETURN_IF_ERROR(SaveFigures(arguments.plot, outcomes));
  if (!arguments.save.empty()) WEIR_RETURN_IF_ERROR(SaveDocument(arguments.save, outcomes));
  size_t failed = 0;
  for (const Outcome& outcome : outcomes) failed += outcome.run.pass() ? 0 : 1;
  if (arguments.output == "json") {
    fmt::print("{}\n", JsonOf(outcomes));
  } else {
    for (const Outcome& outcome : outcomes) PrintOutcome(outcome, !arguments.plot.empty());
    fmt::print("{} of {} experiments passed\n", outcomes.size() - failed, outcomes.size());
  }
  return failed == 0 ? ExitCode::kDone : ExitCode::kFailed;
}

// Exit 0 also when a check fails: the page says so. `run` is for judging.
Result<ExitCode> Report(const Arguments& arguments) {
  if (!arguments.report.from.empty()) {
    WEIR_RETURN_IF_ERROR(WriteReport(arguments.report, ""));
    return ExitCode::kDone;
  }
  WEIR_RETURN_IF_ERROR(FindReportProgram().status());  // rather now than after a minute
  WEIR_ASSIGN_OR_RETURN(
      const auto chosen,
      Chosen(arguments.ids.empty() ? std::vector<std::string>{"all"} : arguments.ids));
  const std::vector<Outcome> outcomes =
      RunChosen(chosen, arguments.seed, Fault::kNone, arguments.jobs, arguments.timing);
  WEIR_RETURN_IF_ERROR(WriteReport(arguments.report, JsonOf(outcomes)));
  return ExitCode::kDone;
}

Result<ExitCode> Replay(const Arguments& arguments) {
  WEIR_ASSIGN_OR_RETURN(const osd::Replayed replayed, osd::ReplayDecisions(arguments.decisions));
  fmt::print("{} requests, {} of them pulled, {} records, profile {} at the end\n",
             replayed.requests, replayed.pulled, replayed.decisions, replayed.profile);
  if (replayed.cut_off) fmt::print("the log ends within a record: its OSD was killed\n");
  if (!replayed.difference) {
    fmt::print("every decision came out as recorded\n");
    return ExitCode::kDone;
  }
  const auto request = [](uint64_t number) {
    return number == 0 ? std::string("nobody") : fmt::format("request {}", number);
  };
  fmt::print("record {} differs: recorded is {}, chosen now {}\n", replayed.difference->decision,
             request(replayed.difference->recorded), request(replayed.difference->chosen));
  return ExitCode::kFailed;
}

// Where the totals of classes are furthest apart when only the inputs are given.
Result<ExitCode> ReplayLoosely(const Arguments& arguments) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<osd::Event> events,
                        osd::LoadRecording(arguments.decisions));
  const osd::ServedGap gap = osd::LargestGap(
      osd::ServedOf(events), osd::ServedOf(osd::ReplayInputs(events)), osd::kRequestsFree);
  fmt::print("class {} is furthest off after {:.1f} s: {} bytes recorded, {} replayed ({:.2f} %)\n",
             gap.id.value, ToSeconds(gap.at), gap.recorded, gap.replayed, 100 * gap.part);
  return ExitCode::kDone;
}

Result<ExitCode> Record(const Arguments& arguments) {
  WEIR_RETURN_IF_ERROR(RecordAll(arguments.recordings));
  return ExitCode::kDone;
}

Result<ExitCode> Compare(const Arguments& arguments) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<Compared> all,
                        CompareRecordings(arguments.recordings, arguments.decisions));
  cli::Table table({"RECORDING", "APART", "CLASS", "AFTER", "BYTES", "BYTES NOW"});
  size_t apart = 0;
  for (const auto& [name, gap] : all) {
    if (100 * gap.part <= arguments.percent) continue;
    ++apart;
    table.AddRow({name, fmt::format("{:.1f} %", 100 * gap.part), fmt::format("{}", gap.id.value),
                  fmt::format("{:.1f} s", ToSeconds(gap.at)), fmt::format("{}", gap.recorded),
                  fmt::format("{}", gap.replayed)});
  }
  if (apart > 0) fmt::print("{}", table.Render());
  fmt::print("{} of {} recordings are more than {} % apart\n", apart, all.size(),
             arguments.percent);
  return apart == 0 ? ExitCode::kDone : ExitCode::kFailed;
}

Result<ExitCode> Pack(const Arguments& arguments) {
  osd::EventKeeper keeper(arguments.events);
  WEIR_ASSIGN_OR_RETURN(const osd::Replayed replayed,
                        osd::ReplayDecisions(arguments.decisions, &keeper));
  if (replayed.difference) {
    return {ErrorCode::kInvalid,
            fmt::format("'{}' does not come out as recorded (weir-sim replay says where)",
                        arguments.decisions)};
  }
  WEIR_RETURN_IF_ERROR(osd::SaveRecording(arguments.recordings, keeper.events()));
  return ExitCode::kDone;
}

void DeclareReport(CLI::App& app, Arguments& arguments) {
  auto* report = app.add_subcommand(
      "report", "one page (HTML): every figure and table of the papers, ours beside it");
  auto* ids = report->add_option("id", arguments.ids, "E1 ..., quick, or all, which is the default")
                  ->type_name("ID");
  report->add_option("-o,--output", arguments.report.output, "the page")
      ->required()
      ->type_name("FILE");
  report
      ->add_option("--live", arguments.report.live,
                   "what programs of tests/acceptance wrote to WEIR_RESULTS")
      ->type_name("FILE");
  report->add_option("--from", arguments.report.from, "what `run --save` wrote; runs nothing")
      ->type_name("FILE")
      ->excludes(ids);
  report->add_option("--plots", arguments.report.plots, "the plots also as files into DIR")
      ->type_name("DIR");
  report->add_option("--plot-format", arguments.report.format, "of these: pdf, png or svg (pdf)")
      ->check(CLI::IsMember({"pdf", "png", "svg"}))
      ->type_name("FORMAT");
  report->add_option("--seed", arguments.seed, "of all chance (1)")->type_name("N");
  report->add_option("--jobs", arguments.jobs, "experiments at a time (one per CPU)")
      ->check(CLI::Range(1, 256))
      ->type_name("N");
  report->footer(
      "Needs python3 with matplotlib (Debian: python3-matplotlib).\n"
      "Example: weir-sim report -o report.html\n"
      "         WEIR_RESULTS=/tmp/live.json tests/acceptance/paper_experiments.py\n"
      "         weir-sim report --live /tmp/live.json -o report.html --plots /tmp/plots");
  report->callback([&] { arguments.action = Report; });
}

void Declare(CLI::App& app, Arguments& arguments) {
  app.require_subcommand(1);
  app.set_version_flag("--version", cli::VersionText("weir-sim"));
  app.footer(
      "Example: weir-sim list\n"
      "         weir-sim run E7\n"
      "         weir-sim run all -o json --seed 3\n"
      "         weir-sim scenario my.toml -o json");
  app.add_subcommand("list", "the experiments")->callback([&] { arguments.action = List; });
  auto* show = app.add_subcommand("show", "what an experiment sets up and checks");
  show->add_option("id", arguments.ids, "E1 ...")->required()->type_name("ID");
  show->footer("Example: weir-sim show E7");
  show->callback([&] { arguments.action = Show; });
  auto* run = app.add_subcommand("run", "run experiments; exit 1 when a check fails");
  run->add_option("id", arguments.ids, "E1 ..., all, or quick")->required()->type_name("ID");
  auto* output = run->add_option("-o,--output", arguments.output, "table or json")
                     ->check(CLI::IsMember({"table", "json"}))
                     ->type_name("FORMAT");
  run->add_option("--seed", arguments.seed, "of all chance (1)")->type_name("N");
  auto* seeds =
      run->add_option("--seeds", arguments.seeds, "so many seeds, from --seed on; shows what fails")
          ->check(CLI::Range(1, 1'000'000))
          ->type_name("N")
          ->excludes(output);
  run->add_option("--plot", arguments.plot, "figures as SVG into DIR, and as text after each table")
      ->type_name("DIR")
      ->excludes(seeds);
  run->add_option("--save", arguments.save, "the JSON document also into FILE, for `report --from`")
      ->type_name("FILE")
      ->excludes(seeds);
  run->add_option("--jobs", arguments.jobs, "experiments at a time (one per CPU)")
      ->check(CLI::Range(1, 256))
      ->type_name("N");
  run->add_flag("--timing", arguments.timing, "wall time of each experiment, on stderr");
  run->add_option("--break", arguments.fault, "break a mechanism on purpose: checks must fail")
      ->type_name("FAULT");
  run->footer("Example: weir-sim run E7 -o json --seed 3");
  run->callback([&] { arguments.action = RunExperiments; });
  DeclareReport(app, arguments);
  auto* scenario = app.add_subcommand("scenario", "run a cluster and workloads of your own");
  scenario->add_option("file", arguments.scenario, "a TOML file")->required()->type_name("FILE");
  scenario->add_option("-o,--output", arguments.output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->type_name("FORMAT");
  scenario->footer(ScenarioHelp());
  scenario->callback([&] { arguments.action = RunOneScenario; });
  auto* replay = app.add_subcommand(
      "replay", "do again what an OSD wrote down; exit 1 when a decision comes out otherwise");
  replay->add_option("file", arguments.decisions, "of weir-osd --decision-log, or a recording")
      ->required()
      ->type_name("FILE");
  replay->add_flag("--inputs", arguments.inputs_only,
                   "only what comes from outside; how far what classes are served is off (of "
                   "recordings)");
  replay->footer(
      "Example: weir-osd --disk /dev/sdb --mds tcp://10.0.0.1:7370 --decision-log /tmp/d\n"
      "         weir-sim replay /tmp/d");
  replay->callback([&] { arguments.action = arguments.inputs_only ? ReplayLoosely : Replay; });
  auto* record = app.add_subcommand(
      "record", "record the scheduler under many workloads, as tests/decisions keeps them");
  record->add_option("directory", arguments.recordings, "for the files")
      ->required()
      ->type_name("DIR");
  record->footer("Example: weir-sim record tests/decisions");
  record->callback([&] { arguments.action = Record; });
  auto* compare = app.add_subcommand(
      "compare", "how far what classes were served is apart; exit 1 when it is too far");
  compare->add_option("recorded", arguments.recordings, "a folder of recordings")
      ->required()
      ->type_name("DIR");
  compare->add_option("now", arguments.decisions, "what `weir-sim record` made since")
      ->required()
      ->type_name("DIR");
  compare->add_option("--percent", arguments.percent, "that may be between them (5)")
      ->type_name("N");
  compare->footer(
      "Example: weir-sim record /tmp/now\n"
      "         weir-sim compare tests/decisions /tmp/now");
  compare->callback([&] { arguments.action = Compare; });
  auto* pack = app.add_subcommand("pack", "make a recording of what an OSD wrote down");
  pack->add_option("file", arguments.decisions, "of weir-osd --decision-log")
      ->required()
      ->type_name("FILE");
  pack->add_option("recording", arguments.recordings, "the new file")
      ->required()
      ->type_name("RECORDING");
  pack->add_option("--events", arguments.events, "no more than so many (all)")->type_name("N");
  pack->footer("Example: weir-sim pack /tmp/d tests/decisions/osd-fio.rec --events 10000");
  pack->callback([&] { arguments.action = Pack; });
}

}  // namespace
}  // namespace weir::sim

int main(int argc, char** argv) {
  return weir::cli::RunProgram("weir-sim", [=] {
    CLI::App app("weir-sim: the QoS engine in virtual time, against modelled disks", "weir-sim");
    weir::sim::Arguments arguments;
    weir::sim::Declare(app, arguments);
    if (const auto ended = weir::cli::Parse(app, argc, argv)) return *ended;
    const auto code = arguments.action(arguments);
    if (!code.ok()) return weir::cli::Fail("weir-sim", code.status());
    return static_cast<int>(*code);
  });
}
