// What a file and the environment say of mounts: defaults for the command line, [mount] and
// WEIR_MOUNT_CLASS, named as the options behind -o and as some that have a flag (log, metrics ...).
//
// They become words of the command line, before those that were typed, which hold against them. A
// process that goes on with a mount is called with these words, not with the file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/config/config.h"
#include "tools/cli/program_config.h"
#include "tools/weirfs/arguments.h"

namespace weir::weirfs {

cli::ProgramConfig::Options MountSettings();

// Tells `settings` what was typed. kInvalid: a mount option that nobody knows, or a wrong value.
Status GiveTyped(const CLI::App& app, const Arguments& arguments, cli::ProgramConfig* settings);
// Words for all that is neither typed nor default. `embedded` is with --data: there is no second
// process then, and no class of a file's, and without it no page.
std::vector<std::string> WordsOf(const Config& config, bool embedded);
// An error names options as they are typed: says where those come from that nobody typed.
Status WithOrigins(const Status& status, const Config& config);
// A command line with such words in front and without --config.
std::vector<std::string> WithWords(const std::vector<std::string>& argv,
                                   const std::vector<std::string>& words);

}  // namespace weir::weirfs
