// The command line of weirfs, as it was typed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace weir::weirfs {

struct Arguments {
  std::vector<std::string> places;  // [ENDPOINT[:/SUBTREE]] MNT
  std::vector<std::string> option_lists;
  std::string data, osd_size, token_rate, log = "info", log_file, pid_file;
  std::string metrics, web;
  bool insecure = false, replace = false, upgrade = false;
  size_t osds = 0;
  std::vector<std::string> disks, tier_disks;
  bool foreground = false, force = false;
  // For weirfs itself, as one version starts another.
  std::string held, held_at;
  uint32_t takes_over = 0;
};
void Declare(CLI::App& app, Arguments& arguments);

}  // namespace weir::weirfs
