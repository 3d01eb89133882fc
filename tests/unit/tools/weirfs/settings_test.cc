// Goal: a file and the environment say what holds for mounts, and what is typed holds against them.
#include "tools/weirfs/settings.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace weir::weirfs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;

class SettingsTest : public ::testing::Test {
 protected:
  SettingsTest()
      : path_(std::filesystem::temp_directory_path() /
              ("weir_mount_" + std::to_string(getpid()) + ".toml")),
        settings_(MountSettings()) {}
  ~SettingsTest() override {
    std::filesystem::remove(path_);
    unsetenv("WEIR_MOUNT_CLASS");
  }

  // What the file adds to the words that are typed; an error is its text.
  Words Add(const std::string& toml, Words typed = {}, bool embedded = false) {
    std::ofstream(path_) << "[mount]\n" << toml;
    CLI::App app;
    Arguments arguments;
    app.add_option("-o", arguments.option_lists)->allow_extra_args(false);
    app.add_option("--log", arguments.log);
    app.add_option("--log-file", arguments.log_file);
    app.add_option("--metrics", arguments.metrics);
    app.add_option("--web", arguments.web);
    app.add_flag("--insecure", arguments.insecure);
    settings_.AddFileFlags(app);
    typed.insert(typed.end(), {"--config", path_});
    std::reverse(typed.begin(), typed.end());  // as CLI11 takes them
    app.parse(typed);
    const Status given = GiveTyped(app, arguments, &settings_);
    if (!given.ok()) return {given.message()};
    ::testing::internal::CaptureStderr();
    const auto ended = settings_.Load();
    const std::string said = ::testing::internal::GetCapturedStderr();
    if (ended) return {said};
    if (const Status status = settings_.Check(); !status.ok()) return {status.message()};
    return WordsOf(settings_.config(), embedded);
  }

  const std::filesystem::path path_;
  cli::ProgramConfig settings_;
};

TEST_F(SettingsTest, AFileBecomesOptions) {
  EXPECT_THAT(Add("class = 'gold'\ncommit = 500\ntimeout = '30s'\nreactors = 1\nuring = 'off'\n"
                  "allow_other = true\nsync_close = true\nsupervise = true\nro = false\n"
                  "keep_awake = false\nwriteback_cache = 'auto'\nlog = 'warn'\nlog_file = '/x'\n"
                  "metrics = '127.0.0.1:9'\nweb = '127.0.0.1:8'\ninsecure = true\n"),
              ElementsAre("--log", "warn", "--log-file", "/x", "--metrics", "127.0.0.1:9",
                          "--insecure", "-o",
                          "class=gold,commit=500,timeout=30s,reactors=1,uring=off,allow_other,"
                          "sync_close,supervise,nokeep_awake"));
}

TEST_F(SettingsTest, WhatIsTypedHoldsAgainstTheFile) {
  const std::string file =
      "class = 'gold'\nro = true\nsync_close = true\nnoatime = true\nlog = 'warn'\ncommit = 9\n";
  EXPECT_THAT(Add(file, {"-o", "class=silver,nosync_close,relatime", "--log", "debug", "-o", "rw"}),
              ElementsAre("-o", "commit=9"));
  const Config& config = settings_.config();
  EXPECT_EQ(config.String("mount.class"), "silver");
  EXPECT_EQ(config.Origin("mount.class"), "-o class");
  EXPECT_FALSE(config.Bool("mount.sync_close"));
  EXPECT_EQ(config.Origin("mount.sync_close"), "-o nosync_close");
  EXPECT_FALSE(config.Bool("mount.ro"));
  EXPECT_FALSE(config.Bool("mount.noatime"));
  EXPECT_EQ(config.Origin("mount.log"), "--log");
}

TEST_F(SettingsTest, AVariableGoesBeforeTheFile) {
  setenv("WEIR_MOUNT_CLASS", "bronze", 1);
  EXPECT_THAT(Add("class = 'gold'\n"), ElementsAre("-o", "class=bronze"));
}

TEST_F(SettingsTest, WhatIsOfOneKindOfMountIsNotForTheOther) {
  const std::string file = "class = 'gold'\nsupervise = true\nweb = '127.0.0.1:8'\n";
  EXPECT_THAT(Add(file), ElementsAre("-o", "class=gold,supervise"));
  EXPECT_THAT(Add(file, {}, true), ElementsAre("--web", "127.0.0.1:8"));
  EXPECT_THAT(Add(""), IsEmpty());
  // What this shell says is of this mount.
  setenv("WEIR_MOUNT_CLASS", "bronze", 1);
  EXPECT_THAT(Add("", {}, true), ElementsAre("-o", "class=bronze"));
}

TEST_F(SettingsTest, ErrorsSayWhereOptionsAreFromThatNobodyTyped) {
  setenv("WEIR_MOUNT_CLASS", "bronze", 1);
  Add("sync_close = true\nlog_file = '/x/y'\nallow_other = true\n", {"-o", "allow_other"});
  const auto said = [&](const std::string& text) {
    const Status status = WithOrigins({ErrorCode::kBusy, text}, settings_.config());
    EXPECT_EQ(status.code(), ErrorCode::kBusy);
    return status.message();
  };
  const std::string before = "; what is typed goes before it)";
  EXPECT_EQ(said("no 'bronze' (-o class)"),
            "no 'bronze' (-o class) (-o class is from WEIR_MOUNT_CLASS" + before);
  EXPECT_EQ(said("--log-file: no /x"),
            "--log-file: no /x (--log-file is from " + path_.string() + ":3" + before);
  EXPECT_EQ(
      said("-o class and -o sync_close"),
      "-o class and -o sync_close (-o class is from WEIR_MOUNT_CLASS, -o sync_close is from " +
          path_.string() + ":2" + before);
  for (const char* text :
       {"-o classes", "-o allow_other", "--log", "--log-files", "-o timeout", ""}) {
    EXPECT_EQ(said(text), text);
  }
}

TEST_F(SettingsTest, WrongValuesNameTheLine) {
  const std::string line = "weirfs: " + path_.string() + ":2: ";
  EXPECT_THAT(Add("uring = 'maybe'\n"),
              ElementsAre(line + "mount.uring: -o uring=maybe: auto, on or off\n"));
  EXPECT_THAT(Add("keep_awake = 'on'\n"),
              ElementsAre(line + "mount.keep_awake: 'on' is none of \"auto\", true and false\n"));
  EXPECT_THAT(Add("clas = 'x'\n"),
              ElementsAre(line + "unknown setting 'mount.clas'; did you mean 'mount.class'? "
                                 "(weirfs --help lists all)\n"));
  EXPECT_THAT(Add("metrics = 'x'\n"),
              ElementsAre(path_.string() +
                          ":2: mount.metrics x: write ADDR:PORT with an address of this machine, "
                          "as 127.0.0.1:9100"));
  EXPECT_THAT(Add("", {"-o", "nonsense"}),
              ElementsAre("unknown mount option 'nonsense' (see weirfs --help)"));
}

TEST_F(SettingsTest, AValueCannotBringASecondOption) {
  for (const char* name : {"class", "client", "commit", "timeout", "reactors", "uring"}) {
    EXPECT_THAT(Add(std::string(name) + " = 'a,allow_other'\n"),
                ElementsAre(::testing::HasSubstr(":2: mount." + std::string(name) + ": ")))
        << name;
  }
}

TEST_F(SettingsTest, WordsComeFirstAndTheFileIsGone) {
  EXPECT_EQ(WithWords({"weirfs", "--config", "f", "a", "-o", "ro", "m"}, {"-o", "class=x"}),
            (Words{"weirfs", "-o", "class=x", "a", "-o", "ro", "m"}));
  EXPECT_EQ(WithWords({"weirfs", "--config=f", "a", "--", "--config"}, {}),
            (Words{"weirfs", "a", "--", "--config"}));
}

}  // namespace
}  // namespace weir::weirfs
