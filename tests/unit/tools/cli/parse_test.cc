// Goal: whoever mistypes a verb or an option hears which it was, and what he may have meant.
#include "tools/cli/parse.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace weir::cli {
namespace {

class ParseTest : public ::testing::Test {
 protected:
  // What is said on stderr; the exit code is that of bad usage.
  static std::string Said(std::vector<std::string> words) {
    CLI::App app("about", "prog");
    app.fallthrough();
    app.require_subcommand(1);
    std::string cluster;
    app.add_option("--cluster", cluster);
    auto* parent = app.add_subcommand("class");
    parent->require_subcommand(1);
    std::string name;
    std::string weight;
    for (const char* verb : {"ls", "create", "set"}) {
      auto* leaf = parent->add_subcommand(verb);
      leaf->add_option("name", name);
      leaf->add_option("--weight", weight);
    }
    app.add_subcommand("status");
    app.add_subcommand("stat");
    words.insert(words.begin(), "prog");
    std::vector<char*> argv;
    argv.reserve(words.size());
    for (std::string& word : words) argv.push_back(word.data());
    ::testing::internal::CaptureStderr();
    const auto code = Parse(app, static_cast<int>(argv.size()), argv.data());
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(code, 2) << said;
    return said;
  }
};

TEST_F(ParseTest, NamesAMistypedVerbAndTheNearest) {
  EXPECT_EQ(Said({"satus"}),
            "prog: there is no verb 'satus', the nearest is 'status' (see --help)\n");
  EXPECT_EQ(Said({"clas", "create", "gold"}),
            "prog: there is no verb 'clas', the nearest is 'class' (see --help)\n");
  EXPECT_EQ(Said({"frobnicate"}),
            "prog: there is no verb 'frobnicate', there are class, status, stat (see --help)\n");
}

TEST_F(ParseTest, NamesAMistypedVerbOfAVerb) {
  EXPECT_EQ(Said({"class", "crate", "gold", "--weight", "2"}),
            "prog: there is no verb 'class crate', the nearest is 'class create' (see --help)\n");
  EXPECT_EQ(Said({"class", "sl"}),
            "prog: there is no verb 'class sl', the nearest is 'class ls' (see --help)\n");
  EXPECT_EQ(Said({"class", "rename"}),
            "prog: there is no verb 'class rename', there are ls, create, set (see --help)\n");
}

TEST_F(ParseTest, SaysWhichVerbsThereAreWhereOneIsMissing) {
  EXPECT_EQ(Said({"class"}),
            "prog: a verb is missing behind 'class': ls, create, set (see --help)\n");
  EXPECT_EQ(Said({}), "prog: a verb is missing: class, status, stat (see --help)\n");
}

TEST_F(ParseTest, NamesAMistypedOption) {
  EXPECT_EQ(Said({"class", "create", "gold", "--wieght=2"}),
            "prog: there is no option '--wieght', the nearest is '--weight' (see --help)\n");
  EXPECT_EQ(Said({"status", "--cluter", "x"}),
            "prog: there is no option '--cluter', the nearest is '--cluster' (see --help)\n");
  EXPECT_EQ(Said({"status", "--frob"}), "prog: there is no option '--frob' (see --help)\n");
}

}  // namespace
}  // namespace weir::cli
