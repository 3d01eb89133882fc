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

  Result<Config> Load(const std::string& toml, std::map<std::string, std::string> flags = {},
                      std::map<std::string, std::string> environment = {}) {
    std::ofstream(path_) << toml;
    const std::vector<Setting> schema = {
        {"name", SettingType::kString, "weir", "what it is called"},
        {"osd.memory", SettingType::kSize, "1G", "bound of its memory"},
        {"osd.token-rate", SettingType::kRate, "max", "tokens"},
        {"osd.threads", SettingType::kInteger, "2", "threads"},
        {"osd.direct", SettingType::kBool, "true", "O_DIRECT"},
        {"lease", SettingType::kDuration, "10s", "how long a lease holds"},
    };
    ConfigSources sources{.file = path_.string(), .flags = std::move(flags), .environment = {}};
    sources.environment = [environment](const std::string& name) -> std::optional<std::string> {
      const auto it = environment.find(name);
      if (it == environment.end()) return std::nullopt;
      return it->second;
    };
    return Config::Load(schema, sources);
  }

  std::filesystem::path path_;
};

TEST_F(ConfigTest, FlagBeatsEnvironmentBeatsFileBeatsDefault) {
  auto config = Load("[osd]\nmemory = '2G'\nthreads = 3\ndirect = false\n",
                     {{"osd.memory", "4G"}, {"lease", "1s"}},
                     {{"WEIR_OSD_MEMORY", "3G"}, {"WEIR_OSD_TOKEN_RATE", "10M/s"}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->String("name"), "weir");
  EXPECT_EQ(config->Origin("name"), "default");
  EXPECT_EQ(config->Integer("osd.threads"), 3);
  EXPECT_EQ(config->Origin("osd.threads"), path_.string() + ":3");
  EXPECT_FALSE(config->Bool("osd.direct"));
  EXPECT_EQ(config->Rate("osd.token-rate"), 10u << 20);
  EXPECT_EQ(config->Origin("osd.token-rate"), "WEIR_OSD_TOKEN_RATE");
  EXPECT_EQ(config->Size("osd.memory"), uint64_t{4} << 30);
  EXPECT_EQ(config->Origin("osd.memory"), "--osd.memory");
  EXPECT_EQ(config->Time("lease"), 1s);
  EXPECT_DEATH((void)config->Bool("lease"), "lease");
}

TEST_F(ConfigTest, ErrorsNameTheSettingAndTheLine) {
  const auto message = [&](const std::string& toml, std::map<std::string, std::string> flags = {}) {
    auto config = Load(toml, std::move(flags));
    EXPECT_EQ(config.code(), ErrorCode::kInvalid);
    return config.status().message();
  };
  const std::string file = path_.string();
  using ::testing::HasSubstr;
  EXPECT_THAT(message("name = 'x'\n\nnmae = 'y'\n"),
              HasSubstr(file + ":3: unknown setting 'nmae'"));
  EXPECT_THAT(message("[osd]\nmemory = '-1G'\n"), HasSubstr(file + ":2: osd.memory: '-1G'"));
  EXPECT_THAT(message("[osd]\nmemory = [1]\n"), HasSubstr(file + ":2: 'osd.memory'"));
  EXPECT_THAT(message("name = \n"), HasSubstr(file + ":1: "));
  EXPECT_THAT(message("", {{"osd.threads", "2x"}}), HasSubstr("--osd.threads: osd.threads: '2x'"));
  EXPECT_THAT(message("", {{"threads", "2"}}), HasSubstr("unknown setting 'threads'"));
}

TEST_F(ConfigTest, AMissingFileIsNotFound) {
  const auto config = Config::Load({}, {.file = "/nowhere.toml", .flags = {}, .environment = {}});
  EXPECT_EQ(config.code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace weir
