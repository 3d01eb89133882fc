#include "common/config/config.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace weir {
namespace {

using namespace std::chrono_literals;

class ConfigTest : public ::testing::Test {
 protected:
  ConfigTest()
      : path_(std::filesystem::temp_directory_path() /
              ("weir_config_" + std::to_string(getpid()) + ".toml")) {}
  ~ConfigTest() override { std::filesystem::remove(path_); }

  using Flags = std::map<std::string, GivenSetting>;
  using Environment = std::map<std::string, std::string>;

  Result<Config> Load(const std::string& toml, Flags flags = {}, Environment environment = {}) {
    std::ofstream(path_) << toml;
    const std::vector<Setting> schema = {
        {"name", SettingType::kString, "weir", "what it is called"},
        {"osd.memory", SettingType::kSize, "1G", "bound of its memory"},
        {"osd.token_rate", SettingType::kRate, "max", "tokens"},
        {"osd.threads", SettingType::kInteger, "2", "threads"},
        {"osd.direct", SettingType::kBool, "true", "O_DIRECT"},
        {"osd.peers", SettingType::kList, "", "whom it asks"},
        {.name = "osd.colours",
         .type = SettingType::kList,
         .default_text = "red,blue",
         .help = "of its lamp",
         .check =
             [](const std::string& text) {
               return text.size() > 2 ? Status::Ok()
                                      : Status(ErrorCode::kInvalid, "'" + text + "' is no colour");
             }},
        {"lease", SettingType::kDuration, "10s", "how long a lease holds"},
    };
    ConfigSources sources{
        .file = path_.string(), .flags = std::move(flags), .environment = {}, .program = "weir-x"};
    sources.environment = [environment](const std::string& name) -> std::optional<std::string> {
      const auto it = environment.find(name);
      if (it == environment.end()) return std::nullopt;
      return it->second;
    };
    for (const auto& [name, value] : environment) sources.variables.push_back(name);
    return Config::Load(schema, sources);
  }

  // Without the name of the file in front.
  std::string ErrorOf(const std::string& toml, Flags flags = {}, Environment environment = {}) {
    auto config = Load(toml, std::move(flags), std::move(environment));
    EXPECT_EQ(config.code(), ErrorCode::kInvalid) << toml;
    const std::string message = config.status().message();
    return message.starts_with(path_.string()) ? message.substr(path_.string().size()) : message;
  }

  std::filesystem::path path_;
};

TEST_F(ConfigTest, FlagBeatsEnvironmentBeatsFileBeatsDefault) {
  auto config = Load("[osd]\nmemory = '2G'\nthreads = 3\ndirect = false\n",
                     {{"osd.memory", {"--memory", {"4G"}}}, {"lease", {"-o lease", {"1s"}}}},
                     {{"WEIR_OSD_MEMORY", "3G"}, {"WEIR_OSD_TOKEN_RATE", "10M/s"}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->String("name"), "weir");
  EXPECT_EQ(config->Origin("name"), "default");
  EXPECT_TRUE(config->IsDefault("name"));
  EXPECT_EQ(config->Integer("osd.threads"), 3);
  EXPECT_EQ(config->Origin("osd.threads"), path_.string() + ":3");
  EXPECT_EQ(config->Where("osd.threads"), path_.string() + ":3: osd.threads");
  EXPECT_FALSE(config->IsDefault("osd.threads"));
  EXPECT_FALSE(config->IsTyped("osd.threads"));
  EXPECT_FALSE(config->Bool("osd.direct"));
  EXPECT_EQ(config->Rate("osd.token_rate"), 10u << 20);
  EXPECT_EQ(config->Origin("osd.token_rate"), "WEIR_OSD_TOKEN_RATE");
  EXPECT_EQ(config->Size("osd.memory"), uint64_t{4} << 30);
  EXPECT_EQ(config->Origin("osd.memory"), "--memory");
  EXPECT_EQ(config->Where("osd.memory"), "--memory");
  EXPECT_TRUE(config->IsTyped("osd.memory"));
  EXPECT_EQ(config->Time("lease"), 1s);
  EXPECT_DEATH((void)config->Bool("lease"), "lease");
}

TEST_F(ConfigTest, ListsAreArraysOrWordsBetweenCommasOrRepeatedFlags) {
  using Texts = std::vector<std::string>;
  auto config = Load("[osd]\npeers = ['a', 'b,c']\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->List("osd.peers"), (Texts{"a", "b,c"}));
  EXPECT_EQ(config->List("osd.colours"), (Texts{"red", "blue"}));
  EXPECT_EQ(Load("[osd]\npeers = 'a,b'\n")->List("osd.peers"), (Texts{"a,b"}));
  EXPECT_EQ(Load("[osd]\npeers = []\n")->List("osd.peers"), Texts{});
  config = Load("", {{"osd.colours", {"--colours", {"a,b,c", "pink"}}}},
                {{"WEIR_OSD_PEERS", "x,y"}, {"WEIR_OSD_COLOURS", "cyan"}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->List("osd.peers"), (Texts{"x", "y"}));
  EXPECT_EQ(config->List("osd.colours"), (Texts{"a,b,c", "pink"}));
}

TEST_F(ConfigTest, VariablesThatNoSettingReadsAreErrors) {
  const std::string all = " (weir-x --help lists all settings)";
  EXPECT_EQ(ErrorOf("", {}, {{"WEIR_OSD_MEMRY", "1G"}}),
            "unknown variable 'WEIR_OSD_MEMRY'; did you mean 'WEIR_OSD_MEMORY'?" + all);
  EXPECT_EQ(ErrorOf("", {}, {{"WEIR_OSD_ZEBRA", "1"}}),
            "unknown variable 'WEIR_OSD_ZEBRA'; unset it" + all);
  EXPECT_TRUE(Load("", {}, {{"WEIR_BIN", "x"}, {"WEIR_MDS_MEMRY", "1"}, {"PATH", "x"}}).ok());
}

TEST_F(ConfigTest, UnknownNamesComeWithTheNearest) {
  const std::string all = " (weir-x --help lists all)";
  EXPECT_EQ(ErrorOf("name = 'x'\n\nnmae = 'y'\n"),
            ":3: unknown setting 'nmae'; did you mean 'name'?" + all);
  EXPECT_EQ(ErrorOf("[osd]\nmemry = '1G'\n"),
            ":2: unknown setting 'osd.memry'; did you mean 'osd.memory'?" + all);
  EXPECT_EQ(ErrorOf("[ods]\nmemory = '1G'\n"),
            ":2: unknown setting 'ods.memory'; did you mean 'osd.memory'?" + all);
  EXPECT_EQ(ErrorOf("[osd]\nzebra = 1\n"), ":2: unknown setting 'osd.zebra'" + all);
  EXPECT_EQ(ErrorOf("[zoo]\n"), ":1: unknown setting 'zoo'" + all);
  EXPECT_EQ(ErrorOf("", {{"zebra", {"--zebra", {"2"}}}}), "--zebra: unknown setting 'zebra'" + all);
}

TEST_F(ConfigTest, AKeyAboveItsTableIsToldWhereItBelongs) {
  std::ofstream(path_) << "memory = '1G'\n";
  const Setting memory{"osd.memory", SettingType::kSize, "1G", ""};
  const ConfigSources sources{path_.string(), {}, {}, {}, "weir-x"};
  EXPECT_EQ(Config::Load({memory}, sources).status().message(),
            path_.string() +
                ":1: unknown setting 'memory'; write it below [osd] (weir-x --help lists all)");
  std::ofstream(path_) << "memroy = '1G'\n";
  EXPECT_EQ(
      Config::Load({memory}, sources).status().message(),
      path_.string() +
          ":1: unknown setting 'memroy'; did you mean 'osd.memory'? (weir-x --help lists all)");
  std::ofstream(path_) << "[osd]\n";  // all of it commented out
  EXPECT_TRUE(Config::Load({memory}, sources).ok());
}

TEST_F(ConfigTest, WrongValuesNameTheLineAndAnExample) {
  EXPECT_EQ(ErrorOf("[osd]\nmemory = '-1G'\n"),
            ":2: osd.memory: '-1G' is no size: it is negative; write for example 4096, 10MiB or "
            "1.5G");
  EXPECT_EQ(ErrorOf("[osd]\nmemory = [1]\n"),
            ":2: osd.memory: must be one value; write for example memory = \"1G\"");
  EXPECT_EQ(ErrorOf("[osd]\nthreads = ['1']\n"),
            ":2: osd.threads: must be one value; write for example threads = 2");
  EXPECT_EQ(ErrorOf("[osd]\npeers = ['a', 1]\n"),
            ":2: osd.peers: must be a list of texts; write for example peers = [\"TEXT\"]");
  EXPECT_EQ(ErrorOf("[osd]\ncolours = []\n"),
            ":2: osd.colours: it is empty; write for example colours = [\"red\", \"blue\"]");
  EXPECT_EQ(ErrorOf("[osd]\ncolours = ['green',\n'']\n"), ":2: osd.colours: '' is no colour");
  EXPECT_EQ(ErrorOf("[osd]\ndirect = 'maybe'\n"),
            ":2: osd.direct: 'maybe' is neither true nor false; write true or false");
  EXPECT_THAT(ErrorOf("name = \n"), ::testing::StartsWith(":1: "));
  EXPECT_EQ(ErrorOf("", {{"osd.threads", {"--threads", {"2x"}}}}),
            "--threads: '2x' is no whole number; write for example 4");
  EXPECT_EQ(ErrorOf("", {}, {{"WEIR_OSD_COLOURS", "red,x"}}), "WEIR_OSD_COLOURS: 'x' is no colour");
}

TEST_F(ConfigTest, FilesThatAreNotThereAreNamed) {
  const auto config = Config::Load({}, {.file = "/nowhere.toml", .flags = {}, .environment = {}});
  EXPECT_EQ(config.code(), ErrorCode::kNotFound);
  EXPECT_EQ(config.status().message(), "there is no configuration file '/nowhere.toml'");
}

TEST_F(ConfigTest, WhatIsThereAndIsNoFileIsSaidSo) {
  const auto error_of = [](const std::string& path) {
    return Config::Load({}, {.file = path, .flags = {}, .environment = {}}).status().message();
  };
  EXPECT_EQ(error_of("/tmp"), "configuration file '/tmp' is a directory: name a file in it");
  std::filesystem::create_symlink("/nowhere.toml", path_);
  EXPECT_EQ(error_of(path_), "configuration file '" + path_.string() +
                                 "' is a symbolic link to '/nowhere.toml', which is not there");
  std::filesystem::remove(path_);
  std::filesystem::create_symlink(path_, path_);
  EXPECT_EQ(error_of(path_),
            "configuration file '" + path_.string() + "': Too many levels of symbolic links");
}

TEST_F(ConfigTest, AFileThatAnybodyMayChangeIsWarnedOf) {
  ASSERT_TRUE(Load("").ok());
  EXPECT_THAT(Load("")->warnings(), ::testing::IsEmpty());
  std::filesystem::permissions(path_, std::filesystem::perms(0666));
  EXPECT_THAT(Load("")->warnings(),
              ::testing::ElementsAre(path_.string() + ": everybody may change it (chmod o-w " +
                                     path_.string() + ")"));
}

// Goal: what is printed is a file that gives the same settings, whatever their texts hold.
TEST_F(ConfigTest, ItsTomlGivesTheSameSettingsAgain) {
  const auto config =
      Load("name = \"a\\\"\\\\ # \\u0007\"\n[osd]\ndirect = 'off'\npeers = ['\"', '']\n", {},
           {{"WEIR_OSD_MEMORY", "3G"}});
  ASSERT_TRUE(config.ok()) << config.status();
  const std::string file = path_.string();
  EXPECT_EQ(config->ToToml(),
            "name = \"a\\\"\\\\ # \\u0007\"  # " + file +
                ":1\nlease = \"10s\"  # default\n\n[osd]\nmemory = \"3G\"  # WEIR_OSD_MEMORY\n"
                "token_rate = \"max\"  # default\nthreads = 2  # default\ndirect = false  # " +
                file + ":3\npeers = [\"\\\"\", \"\"]  # " + file +
                ":4\ncolours = [\"red\", \"blue\"]  # default\n");
  const auto again = Load(config->ToToml());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_THAT(config->DifferencesFrom(*again), ::testing::IsEmpty());
}

TEST_F(ConfigTest, DifferencesAreOfValuesAndCanBeAdopted) {
  auto before = Load("[osd]\nmemory = '1024M'\nthreads = 3\n");
  const auto after = Load("[osd]\nmemory = '1G'\nthreads = 4\npeers = ['a']\n");
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_THAT(before->DifferencesFrom(*after), ::testing::ElementsAre("osd.threads", "osd.peers"));
  before->Adopt("osd.threads", *after);
  EXPECT_EQ(before->Integer("osd.threads"), 4);
  EXPECT_THAT(before->DifferencesFrom(*after), ::testing::ElementsAre("osd.peers"));
}

}  // namespace
}  // namespace weir
