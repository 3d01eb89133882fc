// `osdctl osd set --help` names every profile and box that the command takes.
#include <gmock/gmock.h>

#include <CLI/CLI.hpp>

#include "common/qos/qos_config.h"
#include "common/qos/qos_words.h"
#include "tools/osdctl/command.h"

namespace weir::osdctl {
namespace {

using ::testing::HasSubstr;

// The part of the help between an option and the next one.
std::string PartOf(const std::string& help, const std::string& option) {
  const size_t begin = help.find(option + " ");
  EXPECT_NE(begin, std::string::npos) << option;
  return begin == std::string::npos ? "" : help.substr(begin, help.find("\n  --", begin) - begin);
}

TEST(OsdSetHelpTest, NamesAllThatIsAccepted) {
  CLI::App app("osdctl");
  Globals globals;
  AddOsd(app, globals);
  const std::string help = app.get_subcommand("osd")->get_subcommand("set")->help();
  const std::pair<const char*, std::vector<std::string_view>> options[] = {
      {"--profile", ProfileWords()},      {"--surplus", SurplusWords()},
      {"--sharing", SharingWords()},      {"--gate", GateWords()},
      {"--dispatch", DispatchWords()},    {"--cost", CostWords()},
      {"--allocation", AllocationWords()}};
  for (const auto& [option, words] : options) {
    EXPECT_GT(words.size(), 1u) << option;
    const std::string part = "|" + PartOf(help, option) + "|";
    for (std::string_view word : words) EXPECT_THAT(part, HasSubstr(std::string(word))) << option;
  }
  for (const char* word : {"vd", "vc", "cvc", "cscan", "baa"}) {
    EXPECT_THAT(PartOf(help, "--profile"), HasSubstr("|" + std::string(word) + "|"));
  }
  EXPECT_THAT(PartOf(help, "--cost"), HasSubstr("device-time"));
  EXPECT_THAT(PartOf(help, "--surplus"), HasSubstr("cooperative"));
}

TEST(OsdSetHelpTest, TheParsersTakeTheseWords) {
  for (std::string_view word : ProfileWords()) EXPECT_TRUE(ApplyProfile(word, {}).ok()) << word;
  for (std::string_view word : SurplusWords()) EXPECT_TRUE(ParseSurplus(word).ok()) << word;
  for (std::string_view word : SharingWords()) EXPECT_TRUE(ParseSharing(word).ok()) << word;
  for (std::string_view word : GateWords()) EXPECT_TRUE(ParseGate(word).ok()) << word;
  for (std::string_view word : DispatchWords()) EXPECT_TRUE(ParseDispatch(word).ok()) << word;
  for (std::string_view word : CostWords()) EXPECT_TRUE(ParseCost(word).ok()) << word;
  for (std::string_view word : AllocationWords()) EXPECT_TRUE(ParseAllocation(word).ok()) << word;
}

}  // namespace
}  // namespace weir::osdctl
