#include "tools/weirfs/arguments.h"

#include <CLI/CLI.hpp>

#include "common/disk/disk_spec.h"
#include "tools/cli/version.h"

namespace weir::weirfs {
namespace {

// CLI11 would write "places(1x)".
class HelpText final : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override {
    return "Usage: weirfs [OPTIONS] --data DIR MNT\n"
           "       weirfs [OPTIONS] ENDPOINT[:/SUBTREE] MNT\n"
           "       weirfs --upgrade MNT\n";
  }
  std::string make_positionals(const CLI::App* /*app*/) const override { return ""; }
};

}  // namespace

void Declare(CLI::App& app, Arguments& arguments) {
  app.formatter(std::make_shared<HelpText>());
  app.footer(
      std::string(kDiskSpecHelp) +
      "\n\nOptions behind -o: class=NAME, client=NAME (as rules call this mount), ro, allow_other, "
      "timeout=S,\nreactors=N (threads that serve the kernel, 1 to 4; default: 2), "
      "uring=auto|on|off (FUSE over\n"
      "io_uring; auto: where the kernel offers it), "
      "[no]writeback_cache (the kernel's, which knows no classes; on with --data), "
      "data=DIR, noatime,\nnodiratime, strictatime (else access times move as by relatime), "
      "supervise (of a cluster: a\nsecond process goes on with open files when weirfs dies, and "
      "for --upgrade), sync_close (close(2)\nwaits for the disks; else, as on a local filesystem, "
      "only fsync does),\ncommit=MS (changes of names are on the medium so soon, or "
      "at fsync; default: 1000; dirsync: at\nonce), [no]keep_awake (processors do not sleep while "
      "few "
      "requests for names and attributes or small\nreads are under way, which are answered sooner; "
      "on where there are at most eight), remount (with ro, "
      "rw, nosuid and the like, which then\nhold for the mount that is there), and what mount(8) "
      "and fstab give every filesystem. A comma\nin a value stands behind a backslash. Without "
      "allow_other only the user who mounts may enter,\nwhich keeps even root's mount from all "
      "others. It returns once the mount is usable; umount ends\nit.\n\n"
      "A file (/etc/weirfs/mount.toml, or --config) says below [mount] what holds for mounts that "
      "say\nnothing else: class, client, commit, timeout, reactors, uring, ro, allow_other, "
      "sync_close,\nsupervise, writeback_cache, keep_awake, noatime, nodiratime, strictatime, log, "
      "log_file, metrics,\nweb, insecure. Variables (WEIR_MOUNT_CLASS) go before it; "
      "--check-config prints all of them.\n\n"
      "Example:\n"
      "  weirfs --data /srv/weir /mnt/weir                    all in one process, on an image "
      "file\n"
      "  weirfs --data /srv/weir --disk /dev/sdb /mnt/weir    the same on a raw disk\n"
      "  weirfs --data /srv/weir --disk hdd:20GiB /mnt/weir   the same on an emulated disk\n"
      "  weirfs --data /srv/weir --tier-disk ssd=/dev/nvme0n1,hdd=/dev/sdb /mnt/weir\n"
      "  weirfs tcp://10.0.0.1:7370:/projects /mnt/p -o class=gold,ro\n"
      "  weirfs tcp://10.0.0.1:7370 /mnt/w -o supervise       and later: weirfs --upgrade /mnt/w\n"
      "  mount -t fuse.weirfs 10.0.0.1:/projects /mnt/p -o _netdev");
  app.add_option("places", arguments.places, "[ENDPOINT[:/SUBTREE]] MNT")
      ->expected(0, 2)
      ->type_name("");
  app.set_version_flag("--version", cli::VersionText("weirfs"));
  app.add_option("--data", arguments.data, "everything in this process, with its files in DIR")
      ->type_name("DIR");
  app.add_option("--osds", arguments.osds, "with --data: OSDs on image files, at first use (1)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  app.add_option("--osd-size", arguments.osd_size, "with --data: of each image (8GiB or what fits)")
      ->type_name("SIZE");
  app.add_option("--disk", arguments.disks,
                 "with --data: an OSD on this raw or emulated disk; repeatable")
      ->allow_extra_args(false)  // what follows is MNT
      ->type_name("DISK");
  app.add_option("--tier-disk", arguments.tier_disks,
                 "with --data: an OSD of several disks, fastest first; repeatable")
      ->allow_extra_args(false)
      ->type_name("NAME=DISK,NAME=DISK...");
  app.add_flag("--force", arguments.force,
               "with --data, at first use: format the disks that are named whatever they hold");
  app.add_option("--token-rate", arguments.token_rate,
                 "with --data: global token rate of each OSD (default: measured at first use)")
      ->type_name("RATE");
  app.add_option("-o", arguments.option_lists, "mount options")
      ->allow_extra_args(false)
      ->type_name("OPTIONS");
  app.add_flag("-f", arguments.foreground, "stay in the foreground");
  app.add_option("--log", arguments.log, "trace, debug, info, warn, error or off")
      ->type_name("LEVEL");
  app.add_option("--log-file", arguments.log_file,
                 "where (default: DIR/weirfs.log, or the journal)")
      ->type_name("PATH");
  app.add_option("--metrics", arguments.metrics,
                 "serve metrics for Prometheus at http://ADDR:PORT/metrics")
      ->type_name("ADDR:PORT");
  app.add_option("--web", arguments.web,
                 "with --data: a page with live charts of every class at http://ADDR:PORT/")
      ->type_name("ADDR:PORT");
  app.add_flag("--insecure", arguments.insecure,
               "let --metrics and --web be reached from other machines");
  app.add_flag("--replace", arguments.replace,
               "take the place of a WeirFS mounted there: files that are open stay with the old\n"
               "process, which ends with the last of them");
  app.add_flag("--upgrade", arguments.upgrade,
               "have a mount made with -o supervise served by the program that is installed now:\n"
               "open files go on, nothing is lost");
  app.add_option("--pid-file", arguments.pid_file, "written once the mount is usable")
      ->type_name("PATH");
  app.add_option("--held", arguments.held)->group("");
  app.add_option("--held-at", arguments.held_at)->group("");
  app.add_option("--takes-over", arguments.takes_over)->group("");
}

}  // namespace weir::weirfs
