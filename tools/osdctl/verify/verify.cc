// osdctl verify isolation: a victim and an aggressor on this very cluster.

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <thread>

#include "tools/cli/program.h"
#include "tools/cli/values.h"
#include "tools/osdctl/verify/closed_loop.h"
#include "tools/osdctl/verify/isolation_result.h"
#include "tools/osdctl/verify/temporary.h"

namespace weir::osdctl {
namespace {

constexpr uint32_t kPhases = 3;
constexpr Duration kShortest = std::chrono::seconds(3);
constexpr Duration kLongest = std::chrono::seconds(60);
constexpr Duration kLook = std::chrono::milliseconds(50);
constexpr Duration kKeepAlive = std::chrono::seconds(5);

struct VerifyOptions {
  std::string length = "12s";
  std::vector<std::string> osds;
  double inflation = 4;
  std::string share_error = "10%";
};

volatile sig_atomic_t stop_asked = 0;

// While it lives SIGINT and SIGTERM only take a note.
class Interrupts {
 public:
  Interrupts() {
    struct sigaction action {};
    action.sa_handler = [](int) { stop_asked = 1; };
    sigaction(SIGINT, &action, &before_[0]);
    sigaction(SIGTERM, &action, &before_[1]);
  }
  ~Interrupts() {
    sigaction(SIGINT, &before_[0], nullptr);
    sigaction(SIGTERM, &before_[1], nullptr);
  }
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

 private:
  struct sigaction before_[2]{};
};

class Verification {
 public:
  Verification(Temporary& lab, Duration phase) : lab_(lab), phase_(phase) {}

  Result<IsolationResult> Run() {
    result_.osds = lab_.osds();
    result_.seconds = ToSeconds(phase_);
    WEIR_RETURN_IF_ERROR(WriteWhole(lab_.io(), Shape(true, 1 << 20, true, 1)));
    WEIR_RETURN_IF_ERROR(WriteWhole(lab_.io(), Shape(false, 1 << 20, true, 1)));
    WEIR_RETURN_IF_ERROR(Alone());
    WEIR_RETURN_IF_ERROR(Beside());
    WEIR_RETURN_IF_ERROR(Share());
    return std::move(result_);
  }

 private:
  ClosedLoop::Shape Shape(bool victim, uint64_t bytes, bool write, uint32_t outstanding) const {
    ClosedLoop::Shape shape;
    shape.class_id = victim ? lab_.victim() : lab_.aggressor();
    shape.pool = lab_.pool();
    shape.objects = victim ? lab_.victim_objects() : lab_.aggressor_objects();
    shape.object_bytes = Temporary::kObjectBytes;
    shape.bytes = bytes;
    shape.write = write;
    shape.outstanding = outstanding;
    return shape;
  }
  uint32_t PerOsd(uint32_t outstanding) const {
    return outstanding * static_cast<uint32_t>(lab_.osds().size());
  }
  Status Pass(const std::vector<ClosedLoop*>& loads) {
    SystemClock& clock = SystemClock::Get();
    const TimePoint end = clock.Now() + phase_;
    TimePoint keep_alive = clock.Now() + kKeepAlive;
    while (clock.Now() < end) {
      if (stop_asked != 0) return {ErrorCode::kCancelled, "interrupted; all it made is removed"};
      for (const ClosedLoop* load : loads) {
        if (load->failed()) return Status::Ok();  // Stop tells
      }
      std::this_thread::sleep_for(kLook);
      lab_.io().Tick();
      if (clock.Now() < keep_alive) continue;
      keep_alive = clock.Now() + kKeepAlive;
      lab_.KeepAlive();
    }
    return Status::Ok();
  }
  Status Alone() {
    ClosedLoop victim(lab_.io(), SystemClock::Get(), Shape(true, 4096, false, 1), 1);
    victim.Start();
    WEIR_RETURN_IF_ERROR(Pass({&victim}));
    ClosedLoop::Result alone = victim.Stop();
    result_.alone_us = std::move(alone.latencies_us);
    return alone.status;
  }
  Status Beside() {
    Clock& clock = SystemClock::Get();
    ClosedLoop writers(lab_.io(), clock, Shape(false, 512 << 10, true, PerOsd(4)), 2);
    ClosedLoop readers(lab_.io(), clock, Shape(false, 16 << 10, false, PerOsd(32)), 3);
    ClosedLoop victim(lab_.io(), clock, Shape(true, 4096, false, 1), 4);
    writers.Start();
    readers.Start();
    victim.Start();
    WEIR_RETURN_IF_ERROR(Pass({&victim, &writers, &readers}));
    ClosedLoop::Result beside = victim.Stop();
    const ClosedLoop::Result wrote = writers.Stop();
    const ClosedLoop::Result read = readers.Stop();
    result_.beside_us = std::move(beside.latencies_us);
    result_.aggressor_bytes = wrote.bytes + read.bytes;
    for (const Status& status : {beside.status, wrote.status, read.status}) {
      WEIR_RETURN_IF_ERROR(status);
    }
    return Status::Ok();
  }
  // The aggressor has four times as many requests under way, of the same kind.
  Status Share() {
    Clock& clock = SystemClock::Get();
    ClosedLoop victim(lab_.io(), clock, Shape(true, 64 << 10, false, PerOsd(24)), 5);
    ClosedLoop aggressor(lab_.io(), clock, Shape(false, 64 << 10, false, PerOsd(96)), 6);
    aggressor.Start();
    victim.Start();
    WEIR_RETURN_IF_ERROR(Pass({&victim, &aggressor}));
    const ClosedLoop::Result mine = victim.Stop();
    const ClosedLoop::Result theirs = aggressor.Stop();
    result_.victim_share_bytes = mine.bytes;
    result_.aggressor_share_bytes = theirs.bytes;
    WEIR_RETURN_IF_ERROR(mine.status);
    return theirs.status;
  }

  Temporary& lab_;
  const Duration phase_;
  IsolationResult result_;
};

std::string OsdNames(const std::vector<uint32_t>& osds) {
  std::string names;
  for (const uint32_t osd : osds) names += fmt::format("{}osd.{}", names.empty() ? "" : ", ", osd);
  return names;
}

Result<ExitCode> RunIsolation(Globals& globals, const VerifyOptions& options) {
  WEIR_ASSIGN_OR_RETURN(const Duration length, cli::DurationValue("--for", options.length));
  if (length < kShortest || length > kLongest) {
    return {ErrorCode::kInvalid, fmt::format("--for {}: from 3s to 60s", options.length)};
  }
  std::vector<uint32_t> osds;
  for (const std::string& text : options.osds) {
    WEIR_ASSIGN_OR_RETURN(const uint32_t id, cli::OsdIdValue(text));
    osds.push_back(id);
  }
  IsolationBounds bounds;
  if (!(options.inflation >= 1)) {
    return {ErrorCode::kInvalid,
            fmt::format("--max-inflation {:g}: at least 1", options.inflation)};
  }
  bounds.inflation_max = options.inflation;
  WEIR_ASSIGN_OR_RETURN(bounds.share_error_max,
                        cli::PercentValue("--max-share-error", options.share_error));
  WEIR_ASSIGN_OR_RETURN(ClusterLink * link, globals.Link());
  const Interrupts interrupts;
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<Temporary> lab, Temporary::Make(*link, osds));
  const uint64_t bytes = 2 * Temporary::kObjectsPerOsd * Temporary::kObjectBytes;
  if (!globals.json()) {
    fmt::print(
        "on {} for {:.0f} s: two temporary classes of weight 1 that ask for all they can get, "
        "{} MiB of temporary data on each OSD\n\n",
        OsdNames(lab->osds()), ToSeconds(length), bytes >> 20);
    cli::FlushStdout();
  }
  Verification verification(*lab, length / kPhases);
  const Result<IsolationResult> result = verification.Run();
  const Status removed = lab->Remove();
  if (!result.ok()) return result.status();
  if (!removed.ok()) return removed.Annotate("cannot remove what verify made");
  const IsolationVerdict verdict = JudgeIsolation(*result, bounds);
  if (globals.json()) {
    PrintJson(IsolationDocument(*result, verdict));
  } else {
    fmt::print("{}", IsolationScreen(*result, verdict));
  }
  return verdict.pass ? ExitCode::kDone : ExitCode::kUnhealthy;
}

}  // namespace

void AddVerify(CLI::App& app, Globals& globals) {
  auto* parent = app.add_subcommand("verify", "try on this very cluster what it promises");
  parent->require_subcommand(1);
  parent->footer("Example: osdctl verify isolation");
  auto* verb =
      parent->add_subcommand("isolation", "a victim beside an aggressor; exit 7 on failure");
  auto options = std::make_shared<VerifyOptions>();
  verb->add_option("--for", options->length, "all of it, 3s to 60s (12s)")->type_name("DURATION");
  verb->add_option("--osd", options->osds, "on these OSDs of one pool (default: all that are up)")
      ->type_name("ID")
      ->delimiter(',');
  verb->add_option("--max-inflation", options->inflation,
                   "of the victim's p99, beside the aggressor over alone (4)")
      ->type_name("X");
  verb->add_option("--max-share-error", options->share_error,
                   "of what equal weights get, when one asks four times as much (10%)")
      ->type_name("PERCENT");
  verb->footer(
      "Three phases of equal length: small reads alone; the same beside large writes and many\n"
      "reads of another class; both classes asking for all they can. For that time the two get\n"
      "the share of two classes of weight 1; what others were promised is theirs. 32 MiB on each\n"
      "OSD; classes and data are removed at the end, also after Ctrl-C. Where CPU or network are\n"
      "slower than the disks no request waits for its turn, shares follow their number, and the\n"
      "check fails, rightly (osdctl osd set ID --gate strict helps). The first file of a pool\n"
      "fixes its OSDs: do not run it before all of a new cluster's OSDs have joined.\n\n"
      "Example: osdctl verify isolation --for 30s --osd 0");
  verb->callback([&globals, options] {
    globals.action = [options](Globals& g) { return RunIsolation(g, *options); };
  });
}

}  // namespace weir::osdctl
