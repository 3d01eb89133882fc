#include "tools/weirfs/settings.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cctype>
#include <utility>

#include "common/monitor/http_server.h"
#include "tools/weirfs/options.h"

namespace weir::weirfs {
namespace {

constexpr const char* kTable = "mount.";
constexpr std::array kLongFlags = {"log", "log_file", "metrics", "web"};
// Texts, for they may be left to the machine and the kind of mount.
constexpr std::array kAutomatic = {"keep_awake", "writeback_cache"};
// What a word behind -o says of settings that have another name.
constexpr std::array<std::pair<const char*, const char*>, 6> kAlsoOff = {
    {{"rw", "ro"},
     {"noatime", "strictatime"},
     {"strictatime", "noatime"},
     {"relatime", "noatime"},
     {"relatime", "strictatime"},
     {"diratime", "nodiratime"}}};

// A value as the option of that name takes it.
Setting Option(const std::string& name, const std::string& default_text, const std::string& help) {
  return {.name = kTable + name,
          .default_text = default_text,
          .help = help,
          .check = [name](const std::string& text) {
            if (text.find_first_of(",\"\\") != std::string::npos) {
              return Status(ErrorCode::kInvalid, "'" + text + "': one value without , \" and \\");
            }
            MountOptions ignored;
            return AddMountOptions(name + "=" + text, false, &ignored);
          }};
}

Setting Switch(const std::string& name, const std::string& help) {
  return {kTable + name, SettingType::kBool, "false", help};
}

Setting Automatic(const std::string& name, const std::string& help) {
  return {.name = kTable + name,
          .default_text = "auto",
          .help = help,
          .check = [](const std::string& text) {
            if (text == "auto" || text == "true" || text == "false") return Status::Ok();
            return Status(ErrorCode::kInvalid,
                          "'" + text + "' is none of \"auto\", true and false");
          }};
}

Status CheckHttp(const Config& config) {
  for (const std::string name : {"mount.metrics", "mount.web"}) {
    const std::string& text = config.String(name);
    if (text.empty()) continue;
    WEIR_RETURN_IF_ERROR(
        monitor::ParseHttpAddress(config.Where(name), text, config.Bool("mount.insecure"))
            .status());
  }
  return Status::Ok();
}

std::vector<Setting> Schema() {
  return {
      Option("class", "", "of all I/O that no rule, tag or name says more of"),
      Option("client", "", "name of the mount, as rules call it"),
      Option("commit", "1000", "changes of names are on the medium after so many milliseconds"),
      Option("timeout", "", "seconds that I/O waits for lost peers; none: as long as it takes"),
      Option("reactors", "2", "threads that serve the kernel"),
      Option("uring", "auto", "FUSE over io_uring: auto, on or off"),
      Switch("ro", "read-only"),
      Switch("allow_other", "others than the user who mounts may enter"),
      Switch("sync_close", "close(2) waits for the disks"),
      Switch("supervise", "of a cluster: a second process goes on when weirfs dies"),
      Automatic("writeback_cache", "of the kernel; auto: with --data"),
      Automatic("keep_awake", "of processors; auto: where there are at most eight"),
      Switch("noatime", "access times do not move"),
      Switch("nodiratime", "those of directories do not move"),
      Switch("strictatime", "access times move with each read"),
      {.name = "mount.log",
       .default_text = "info",
       .help = "trace, debug, info, warn, error or off",
       .check = cli::CheckLogLevel},
      {"mount.log_file", SettingType::kString, "", "where"},
      {"mount.metrics", SettingType::kString, "", "ADDR:PORT for Prometheus"},
      {"mount.web", SettingType::kString, "", "with --data: ADDR:PORT of a page"},
      Switch("insecure", "other machines may reach metrics and web"),
  };
}

// As it is typed, and as errors name it.
std::string TypedOf(const std::string& name) {
  return HasWord(kLongFlags, KeyOf(name)) ? FlagOf(name) : "-o " + KeyOf(name);
}

// `word` and no longer one.
bool Names(const std::string& message, const std::string& word) {
  for (size_t at = message.find(word); at != std::string::npos; at = message.find(word, at + 1)) {
    const char next = (message + " ")[at + word.size()];
    if (next != '_' && next != '-' && std::isalpha(static_cast<unsigned char>(next)) == 0)
      return true;
  }
  return false;
}

// A file that holds for all mounts cannot know which classes a cluster in one process has.
bool IsForOthers(const Config& config, const std::string& name, bool embedded) {
  const std::string key = KeyOf(name);
  if (!embedded) return key == "web";
  return key == "supervise" || (key == "class" && config.IsOfFile(name));
}

}  // namespace

cli::ProgramConfig::Options MountSettings() {
  return {.program = "weirfs",
          .table = "mount",
          .schema = Schema(),
          .default_file = cli::ConfigDirectory() + "/mount.toml",
          .check = CheckHttp};
}

Status GiveTyped(const CLI::App& app, const Arguments& arguments, cli::ProgramConfig* settings) {
  MountOptions understood;
  std::vector<std::string> known;
  for (const Setting& setting : Schema()) known.push_back(KeyOf(setting.name));
  const auto give = [&](const std::string& key, const std::string& word, const std::string& text) {
    if (HasWord(known, key)) settings->Give(kTable + key, {"-o " + word, {text}});
  };
  for (const std::string& list : arguments.option_lists) {
    WEIR_RETURN_IF_ERROR(AddMountOptions(list, false, &understood));
    WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> words, SplitMountOptions(list));
    for (const std::string& word : words) {
      const size_t equals = word.find('=');
      if (equals != std::string::npos) {
        give(word.substr(0, equals), word.substr(0, equals), word.substr(equals + 1));
        continue;
      }
      give(word, word, "true");
      if (word.starts_with("no")) give(word.substr(2), word, "false");
      for (const auto& [typed, off] : kAlsoOff) {
        if (word == typed) give(off, word, "false");
      }
    }
  }
  const std::array<std::pair<const char*, const std::string*>, 4> flags = {
      {{"log", &arguments.log},
       {"log_file", &arguments.log_file},
       {"metrics", &arguments.metrics},
       {"web", &arguments.web}}};
  for (const auto& [key, text] : flags) {
    const std::string flag = FlagOf(key);
    if (app.count(flag) > 0) settings->Give(std::string(kTable) + key, {flag, {*text}});
  }
  if (app.count("--insecure") > 0) {
    settings->Give("mount.insecure", {"--insecure", {arguments.insecure ? "true" : "false"}});
  }
  return Status::Ok();
}

std::vector<std::string> WordsOf(const Config& config, bool embedded) {
  std::vector<std::string> words;
  std::string list;  // no value in it has a comma: the schema refuses it
  for (const Setting& setting : Schema()) {
    const std::string& name = setting.name;
    const std::string key = KeyOf(name);
    if (config.IsDefault(name) || config.IsTyped(name)) continue;
    if (IsForOthers(config, name, embedded)) continue;
    const bool is_flag = setting.type == SettingType::kBool;
    const std::string text = is_flag ? (config.Bool(name) ? "true" : "") : config.String(name);
    if (text.empty() || text == "auto") continue;
    if (key == "insecure") {
      words.push_back(FlagOf(name));
    } else if (HasWord(kLongFlags, key)) {
      words.insert(words.end(), {FlagOf(name), text});
    } else if (is_flag || HasWord(kAutomatic, key)) {
      list += (list.empty() ? "" : ",") + (text == "false" ? "no" + key : key);
    } else {
      list += fmt::format("{}{}={}", list.empty() ? "" : ",", key, text);
    }
  }
  if (!list.empty()) words.insert(words.end(), {"-o", list});
  return words;
}

Status WithOrigins(const Status& status, const Config& config) {
  std::string origins;
  for (const Setting& setting : Schema()) {
    if (config.IsDefault(setting.name) || config.IsTyped(setting.name)) continue;
    const std::string typed = TypedOf(setting.name);
    if (!Names(status.message(), typed)) continue;
    origins += fmt::format("{}{} is from {}", origins.empty() ? "" : ", ", typed,
                           config.Origin(setting.name));
  }
  if (origins.empty()) return status;
  return {status.code(),
          fmt::format("{} ({}; what is typed goes before it)", status.message(), origins)};
}

std::vector<std::string> WithWords(const std::vector<std::string>& argv,
                                   const std::vector<std::string>& words) {
  std::vector<std::string> all = {argv.front()};
  all.insert(all.end(), words.begin(), words.end());
  for (size_t i = 1; i < argv.size(); ++i) {
    if (argv[i] == "--") {
      all.insert(all.end(), argv.begin() + static_cast<ptrdiff_t>(i), argv.end());
      break;
    }
    if (argv[i] == "--config")
      ++i;  // with the name behind it
    else if (!argv[i].starts_with("--config="))
      all.push_back(argv[i]);
  }
  return all;
}

}  // namespace weir::weirfs
