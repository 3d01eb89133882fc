#include "tools/weirfs/options.h"

#include <fmt/format.h>

#include <array>
#include <cctype>

#include "common/base/nearest.h"
#include "tools/cli/values.h"

namespace weir::weirfs {
namespace {

// For mount(8), fstab and init: nothing to do here.
constexpr std::array kNotForUs = {"auto",
                                  "noauto",
                                  "user",
                                  "nouser",
                                  "users",
                                  "owner",
                                  "group",
                                  "nofail",
                                  "defaults",
                                  "_netdev",
                                  "default_permissions",
                                  "async",
                                  "lazytime",
                                  "silent",
                                  "nonempty"};
// Flags of the kernel's mount that only take rights away, and those that give them back to root.
constexpr std::array kRestricting = {"nosuid", "nodev", "noexec", "sync", "dirsync"};
constexpr std::array kLoosening = {"suid", "dev", "exec"};
// What the kernel shows of a mount, and mount(8) gives back when it mounts that anew.
constexpr std::array kOfTheKernel = {"user_id", "group_id", "rootmode", "max_read", "blksize"};
constexpr std::array kWithValue = {"class",    "client",  "commit", "data",
                                   "reactors", "timeout", "uring"};
// What else has a meaning, for whoever mistypes it.
constexpr std::array kFlagWords = {"ro",          "rw",         "allow_other",     "supervise",
                                   "sync_close",  "keep_awake", "writeback_cache", "noatime",
                                   "strictatime", "nodiratime", "relatime",        "remount"};
constexpr uint64_t kMostReactors = 4;
constexpr Duration kMostCommit = std::chrono::minutes(1);

// `timeout=30`: a bare number is seconds here, as mount options have it.
Result<Duration> TimeoutValue(const std::string& text) {
  const bool bare = !text.empty() && (std::isdigit(static_cast<unsigned char>(text.back())) != 0);
  return cli::DurationValue("-o timeout", bare ? text + "s" : text);
}

// `commit=500`: a bare number is milliseconds.
Result<Duration> CommitValue(const std::string& text) {
  const bool bare = !text.empty() && (std::isdigit(static_cast<unsigned char>(text.back())) != 0);
  WEIR_ASSIGN_OR_RETURN(const Duration commit,
                        cli::DurationValue("-o commit", bare ? text + "ms" : text));
  if (commit <= kMostCommit) return commit;
  return Status(ErrorCode::kInvalid,
                fmt::format("-o commit={}: at most a minute, as a crash takes so much", text));
}

Result<uint32_t> ReactorsValue(const std::string& text) {
  if (text.size() == 1 && text[0] >= '1' && text[0] <= '0' + static_cast<char>(kMostReactors)) {
    return static_cast<uint32_t>(text[0] - '0');
  }
  return {ErrorCode::kInvalid,
          fmt::format("-o reactors={}: a number from 1 to {}", text, kMostReactors)};
}

Result<client::Mount::Uring> UringValue(const std::string& text) {
  if (text == "auto") return client::Mount::Uring::kAuto;
  if (text == "on") return client::Mount::Uring::kOn;
  if (text == "off") return client::Mount::Uring::kOff;
  return {ErrorCode::kInvalid, fmt::format("-o uring={}: auto, on or off", text)};
}

Status AddValue(std::string_view name, const std::string& value, MountOptions* options) {
  if (name == "data") {
    options->data = value;
    return Status::Ok();
  }
  if (name == "class") {
    options->mount_class = value;
    return cli::CheckName("class", value);
  }
  if (name == "client") {
    options->client_name = value;
    return cli::CheckName("client", value);
  }
  if (name == "uring") {
    WEIR_ASSIGN_OR_RETURN(options->uring, UringValue(value));
    return Status::Ok();
  }
  if (name == "commit") {
    WEIR_ASSIGN_OR_RETURN(options->commit, CommitValue(value));
    return Status::Ok();
  }
  if (name == "reactors") {
    WEIR_ASSIGN_OR_RETURN(options->reactors, ReactorsValue(value));
    return Status::Ok();
  }
  WEIR_ASSIGN_OR_RETURN(options->timeout, TimeoutValue(value));
  return Status::Ok();
}

// The last word holds.
bool AddAtime(const std::string& word, MountOptions* options) {
  if (word == "noatime") {
    options->noatime = true;
    options->strictatime = false;
  } else if (word == "atime" || word == "relatime" || word == "norelatime") {
    options->noatime = options->strictatime = false;
  } else if (word == "strictatime") {
    options->noatime = false;
    options->strictatime = true;
  } else if (word == "nodiratime" || word == "diratime") {
    options->nodiratime = word == "nodiratime";
  } else {
    return word == "nostrictatime";
  }
  return true;
}

// Of the word, without its value.
std::string NearestOption(const std::string& name) {
  std::vector<std::string> names(kFlagWords.begin(), kFlagWords.end());
  names.insert(names.end(), kWithValue.begin(), kWithValue.end());
  names.insert(names.end(), kRestricting.begin(), kRestricting.end());
  return NearestOf(name, names);
}

Status AddOne(const std::string& word, bool is_root, MountOptions* options) {
  const size_t equals = word.find('=');
  const std::string_view name = std::string_view(word).substr(0, equals);
  if (equals != std::string::npos && HasWord(kWithValue, name)) {
    return AddValue(name, word.substr(equals + 1), options);
  }
  if (word == "ro" || word == "rw") {
    options->read_only = word == "ro";
  } else if (word == "allow_other" || word == "noallow_other") {
    options->allow_other = word == "allow_other";
  } else if (word == "supervise" || word == "nosupervise") {
    options->supervise = word == "supervise";
  } else if (word == "sync_close" || word == "nosync_close") {
    options->sync_close = word == "sync_close";
  } else if (word == "keep_awake" || word == "nokeep_awake") {
    options->keep_awake = word == "keep_awake";
  } else if (word == "writeback_cache") {
    options->writeback_cache = true;
  } else if (word == "nowriteback_cache") {
    options->writeback_cache = false;
  } else if (HasWord(kRestricting, word)) {
    options->kernel_flags.push_back(word);
  } else if (HasWord(kLoosening, word)) {
    if (is_root) options->kernel_flags.push_back(word);
  } else if (!word.empty() && !AddAtime(word, options) && word != "remount" &&
             !(options->remount && HasWord(kOfTheKernel, name)) && !HasWord(kNotForUs, word) &&
             !word.starts_with("x-") && !word.starts_with("comment=")) {
    const std::string nearest = NearestOption(std::string(name));
    const std::string meant = nearest.empty() ? "" : "did you mean '" + nearest + "'? ";
    return {ErrorCode::kInvalid,
            fmt::format("unknown mount option '{}' ({}see weirfs --help)", word, meant)};
  }
  return Status::Ok();
}

}  // namespace

Result<std::vector<std::string>> SplitMountOptions(const std::string& list) {
  std::vector<std::string> words(1);
  bool quoted = false;
  for (size_t i = 0; i < list.size(); ++i) {
    const char c = list[i];
    const bool escaped =
        c == '\\' && i + 1 < list.size() && (list[i + 1] == ',' || list[i + 1] == c);
    if (escaped) {
      words.back() += list[++i];
    } else if (c == '"' && (quoted || words.back().ends_with('='))) {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  if (!quoted) return words;
  return {ErrorCode::kInvalid, fmt::format("-o '{}': a quote is not closed", list)};
}

Status AddMountOptions(const std::string& list, bool is_root, MountOptions* options) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> words, SplitMountOptions(list));
  if (HasWord(words, "remount")) options->remount = true;
  for (const std::string& word : words) {
    WEIR_RETURN_IF_ERROR(AddOne(word, is_root, options));
  }
  return Status::Ok();
}

}  // namespace weir::weirfs
