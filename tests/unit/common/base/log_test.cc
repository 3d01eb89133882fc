#include "common/base/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace weir {
namespace {

TEST(LogTest, WritesWhatTheLevelAllowsAndEvaluatesNothingElse) {
  const auto path =
      std::filesystem::temp_directory_path() / ("weir_log_" + std::to_string(getpid()));
  ASSERT_TRUE(InitLogging({LogLevel::kWarn, path.string(), "weir-test"}).ok());
  int evaluated = 0;
  WEIR_LOG_INFO("quiet {}", ++evaluated);
  WEIR_LOG_WARN("loud {} {{}}", ++evaluated);
  ASSERT_TRUE(InitLogging({}).ok());
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  std::filesystem::remove(path);
  EXPECT_EQ(evaluated, 1);
  EXPECT_THAT(text.str(), ::testing::HasSubstr("W weir-test: loud 1 {}\n"));
  EXPECT_THAT(text.str(), ::testing::Not(::testing::HasSubstr("quiet")));
}

TEST(LogTest, NamesWhatItCannotDo) {
  EXPECT_THAT(InitLogging({LogLevel::kInfo, "/proc/nothing/here", ""}).message(),
              ::testing::HasSubstr("/proc/nothing/here"));
  EXPECT_EQ(*ParseLogLevel("debug"), LogLevel::kDebug);
  EXPECT_THAT(ParseLogLevel("loud").status().message(), ::testing::HasSubstr("'loud'"));
}

// `--log-file DISK` is soon typed, and a disk that is appended to is damaged.
TEST(LogTest, LiesInNothingButText) {
  const auto path =
      std::filesystem::temp_directory_path() / ("weir_image_" + std::to_string(getpid()));
  std::ofstream(path) << "";
  std::filesystem::resize_file(path, 4096);
  EXPECT_THAT(OpenLogFile(path.string()).status().message(), ::testing::HasSubstr(path.string()));
  EXPECT_EQ(InitLogging({LogLevel::kInfo, path.string(), ""}).code(), ErrorCode::kIo);
  EXPECT_EQ(std::filesystem::file_size(path), 4096u);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace weir
