// Goal: what a daemon is told by its command line, variables and file, and what SIGHUP changes.
#include "tools/cli/program_config.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/base/log.h"
#include "tools/cli/parse.h"

namespace weir::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ProgramConfigTest : public ::testing::Test {
 protected:
  ProgramConfigTest()
      : path_(std::filesystem::temp_directory_path() /
              ("weir_program_config_" + std::to_string(getpid()) + ".toml")),
        settings_({.program = "weir-cat",
                   .table = "cat",
                   .schema =
                       {
                           {"cat.food", SettingType::kString, "", "what it eats"},
                           {"cat.lives_left", SettingType::kInteger, "9", "until it ends"},
                           {"cat.homes", SettingType::kList, "sofa", "where it sleeps", "PLACE"},
                           {.name = "cat.loud",
                            .type = SettingType::kBool,
                            .default_text = "false",
                            .help = "meows",
                            .is_switch = true},
                           {.name = "cat.log", .default_text = "info", .check = CheckLogLevel},
                       },
                   .check = [](const Config& config) {
                     return config.String("cat.food").empty()
                                ? Status(ErrorCode::kInvalid, "what does it eat?")
                                : Status::Ok();
                   }}) {}
  ~ProgramConfigTest() override {
    std::filesystem::remove(path_);
    unsetenv("WEIR_CAT_FOOD");
    SetLogLevel(LogLevel::kInfo);
  }

  void Write(const std::string& toml) const { std::ofstream(path_) << toml; }
  // As the program `words` does until it starts; what it says is in out_ and err_.
  std::optional<int> Run(std::vector<std::string> words) {
    CLI::App app("about", "weir-cat");
    settings_.AddSettingFlags(app);
    settings_.AddFileFlags(app);
    words.insert(words.begin(), "weir-cat");
    std::vector<char*> argv;
    argv.reserve(words.size());
    for (std::string& word : words) argv.push_back(word.data());
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    std::optional<int> ended = Parse(app, static_cast<int>(argv.size()), argv.data());
    if (!ended) ended = settings_.Load();
    out_ = ::testing::internal::GetCapturedStdout();
    err_ = ::testing::internal::GetCapturedStderr();
    return ended;
  }
  // What the log says of it.
  std::string Reload() {
    ::testing::internal::CaptureStderr();
    settings_.Reload();
    return ::testing::internal::GetCapturedStderr();
  }

  const std::filesystem::path path_;
  ProgramConfig settings_;
  std::string out_, err_;
};

TEST_F(ProgramConfigTest, EachSettingIsAFlagAVariableAndAKey) {
  Write("[cat]\nfood = 'fish'\nlives_left = 7\nhomes = ['box', 'bed']\nloud = true\n");
  setenv("WEIR_CAT_FOOD", "mice", 1);
  EXPECT_EQ(Run({"--config", path_, "--lives-left", "3", "--loud=false"}), std::nullopt) << err_;
  const Config& config = settings_.config();
  EXPECT_EQ(config.String("cat.food"), "mice");
  EXPECT_EQ(config.Integer("cat.lives_left"), 3);
  EXPECT_EQ(config.List("cat.homes"), (std::vector<std::string>{"box", "bed"}));
  EXPECT_FALSE(config.Bool("cat.loud"));
  EXPECT_EQ(config.Origin("cat.loud"), "--loud");
  EXPECT_EQ(settings_.file(), path_.string());
}

TEST_F(ProgramConfigTest, ASwitchSaysTrueAndAListIsRepeated) {
  EXPECT_EQ(Run({"--loud", "--homes", "roof", "--homes", "tree"}), std::nullopt) << err_;
  EXPECT_TRUE(settings_.config().Bool("cat.loud"));
  EXPECT_EQ(settings_.config().List("cat.homes"), (std::vector<std::string>{"roof", "tree"}));
  EXPECT_EQ(settings_.file(), "");
}

TEST_F(ProgramConfigTest, WhatIsWrongIsBadUsage) {
  EXPECT_EQ(Run({"--lives-left", "many"}), 2);
  EXPECT_EQ(err_, "weir-cat: --lives-left: 'many' is no whole number; write for example 4\n");
  EXPECT_EQ(Run({"--config", "/none.toml"}), 2);
  EXPECT_EQ(err_, "weir-cat: there is no configuration file '/none.toml'\n");
}

TEST_F(ProgramConfigTest, CheckPrintsWhatHoldsAndWhy) {
  Write("[cat]\nfood = 'fish'\n");
  std::filesystem::permissions(path_, std::filesystem::perms(0646));
  EXPECT_EQ(Run({"--config", path_, "--check-config", "--loud"}), 0);
  EXPECT_EQ(out_, "[cat]\nfood = \"fish\"  # " + path_.string() +
                      ":2\nlives_left = 9  # default\nhomes = [\"sofa\"]  # default\n"
                      "loud = true  # --loud\nlog = \"info\"  # default\n");
  EXPECT_THAT(err_, HasSubstr("weir-cat: warning: " + path_.string() + ": everybody may change"));
}

TEST_F(ProgramConfigTest, CheckFindsWhatNoSettingShowsAlone) {
  EXPECT_EQ(Run({"--check-config"}), 2);
  EXPECT_EQ(err_, "weir-cat: what does it eat?\n");
  EXPECT_EQ(out_, "");
}

TEST_F(ProgramConfigTest, ReadAgainTheLogLevelChangesAndTheRestWaits) {
  Write("[cat]\nfood = 'fish'\n");
  ASSERT_EQ(Run({"--config", path_, "--lives-left", "3"}), std::nullopt) << err_;
  EXPECT_THAT(Reload(), HasSubstr("SIGHUP: " + path_.string() + " says nothing new"));

  Write("[cat]\nfood = 'birds'\nlives_left = 1\nlog = 'debug'\n");
  const std::string said = Reload();
  EXPECT_THAT(said,
              HasSubstr("SIGHUP: " + path_.string() +
                        ":2: cat.food = \"birds\" needs a restart, until then it is \"fish\""));
  EXPECT_THAT(said, HasSubstr(path_.string() + ":4: cat.log = \"debug\", was \"info\""));
  EXPECT_THAT(said, Not(HasSubstr("lives"))) << "the flag still goes before the file";
  EXPECT_TRUE(LogEnabled(LogLevel::kDebug));
  EXPECT_EQ(settings_.config().String("cat.food"), "fish");

  const std::string again = Reload();
  EXPECT_THAT(again, HasSubstr("cat.food = \"birds\" needs a restart"));
  EXPECT_THAT(again, Not(HasSubstr("cat.log")));
}

TEST_F(ProgramConfigTest, AFileWithAnErrorChangesNothing) {
  Write("[cat]\nfood = 'fish'\n");
  ASSERT_EQ(Run({"--config", path_}), std::nullopt) << err_;
  Write("[cat]\nlog = 'debug'\nfod = 'fish'\n");
  EXPECT_THAT(Reload(), HasSubstr(":3: unknown setting 'cat.fod'; did you mean 'cat.food'? "
                                  "(weir-cat --help lists all); nothing changes"));
  Write("[cat]\nlog = 'debug'\n");
  EXPECT_THAT(Reload(), HasSubstr("SIGHUP: what does it eat?; nothing changes"));
  EXPECT_FALSE(LogEnabled(LogLevel::kDebug));
}

TEST_F(ProgramConfigTest, AQuieterLogStillSaysThatItIs) {
  Write("[cat]\nfood = 'fish'\n");
  ASSERT_EQ(Run({"--config", path_}), std::nullopt) << err_;
  Write("[cat]\nfood = 'fish'\nlog = 'off'\n");
  EXPECT_THAT(Reload(), HasSubstr("cat.log = \"off\", was \"info\""));
  EXPECT_FALSE(LogEnabled(LogLevel::kError));
  Write("[cat]\nfood = 'fish'\n");
  EXPECT_THAT(Reload(), HasSubstr("cat.log = \"info\", was \"off\""));
}

}  // namespace
}  // namespace weir::cli
