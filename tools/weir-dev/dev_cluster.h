// DevCluster: a real multi-process cluster on this machine, whose state outlives the command.
//
//   DIR/endpoint         where the MDS answers (osdctl --cluster DIR)
//   DIR/mds/             the MDS's data          DIR/osd.N.img   image files of the OSDs
//   DIR/log/NAME.log     what each daemon says   DIR/run/        pid and ready files
//   DIR/weir-dev.json    the state               DIR/lock        one weir-dev at a time
//   DIR/owner.json       whose DIR is (common/disk/data_directory.h)
//   DIR/prometheus.json  where the daemons' metrics are, for file_sd_configs of Prometheus
//
// The daemons are the programs beside our own. Starting returns when the daemon serves.
// Errors: kBusy (another weir-dev, or up already), kIo naming the daemon with the end of its log;
//         kExists: DIR or a disk is another's; kCorrupt: something is missing or damaged; kInvalid:
//         the options contradict what is there. With these three nothing has been changed.
#pragma once

#include <string>

#include "common/base/result.h"
#include "tools/cli/files.h"
#include "tools/weir-dev/state.h"

namespace weir::dev {

class DevCluster {
 public:
  struct UpOptions {
    cli::DisksWanted disks;  // nothing: as recorded
    std::vector<std::string> mounts;
    std::string mount_options;  // of all that `mounts` names
    std::string token_rate;     // as typed; `rate` is what it means
    uint64_t rate = 0;
    bool force = false;    // format named disks whatever they hold, at first use
    bool metrics = false;  // of every daemon, at a port that is free
    std::string web;       // ADDR:PORT of the page; empty: as recorded, else none
  };
  // Makes or wakes the cluster in `dir`; what was started is stopped again when it fails.
  static Status Up(const std::string& dir, const UpOptions& options);
  // Takes hold of the cluster in `dir`. kNotFound when there is none.
  static Result<DevCluster> Open(const std::string& dir);

  // Unmounts, stops all daemons, in whatever state they are.
  Status Down();
  Status Start(const DaemonName& name);
  // SIGKILL, or SIGTERM and a wait for the end.
  Status Kill(const DaemonName& name);
  Status Stop(const DaemonName& name);

  [[nodiscard]] State& state() { return state_; }

 private:
  DevCluster(std::string dir, cli::LockFile lock, State state)
      : dir_(std::move(dir)), lock_(std::move(lock)), state_(std::move(state)) {}

  // Whose `dir` is, and what is there; refuses what a look can tell.
  static Result<State> Examine(const std::string& dir, const UpOptions& options);
  Status Plan(const UpOptions& options);
  Status PlanDisks(const UpOptions& options);
  Status PlanMetrics();
  Status StartAll(bool force);
  Status StartMds();
  Status FormatOsd(size_t index, bool force);
  Status NoteWhole() const;
  Status StartOsd(size_t index);
  Status StartMount(size_t index);
  // Waits until `ready` says so, while `process` lives.
  template <typename Ready>
  Status WaitFor(const std::string& name, const cli::ProcessId& process, Ready ready);
  [[nodiscard]] std::string LogOf(const std::string& name) const;
  [[nodiscard]] std::string Binary(const std::string& name) const;
  Status Save() { return SaveState(dir_, state_); }

  std::string dir_;
  cli::LockFile lock_;
  State state_;
};

}  // namespace weir::dev
