// fsx DIR... [--ops N] [--seed S] [--size BYTES] [--no-direct]; see README.md.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <random>

#include "tests/fsx/tester.h"

namespace weir::fsx {
namespace {

int Run(const Options& options, uint64_t operations) {
  Tester tester(options);
  const auto began = std::chrono::steady_clock::now();
  try {
    for (uint64_t i = 0; i < operations; ++i) tester.Step();
    tester.CheckAll();
  } catch (const Difference& difference) {
    std::fprintf(stderr, "%s\nseed %llu; the last operations:\n%s", difference.what(),
                 static_cast<unsigned long long>(options.seed), tester.Log().c_str());
    return 1;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::printf("fsx: %llu operations, seed %llu: as in memory, %.0f a second\n",
              static_cast<unsigned long long>(operations),
              static_cast<unsigned long long>(options.seed),
              static_cast<double>(operations) / took.count());
  return 0;
}

int Main(int argc, char** argv) {
  Options options;
  options.seed = std::random_device()();
  uint64_t operations = 20'000;
  std::vector<std::string> directories;
  bool no_direct = false;
  CLI::App app{
      "Random operations on a file of one or more mounts, compared with a model in memory"};
  app.add_option("DIR", directories, "directories of the same tree, one per mount")->required();
  app.add_option("--ops", operations, "how many operations");
  app.add_option("--seed", options.seed, "what to repeat; default: random");
  app.add_option("--size", options.most_bytes, "the largest size of the file");
  app.add_flag("--no-direct", no_direct, "without O_DIRECT");
  CLI11_PARSE(app, argc, argv);
  options.direct = !no_direct;
  for (const std::string& directory : directories) {
    options.paths.push_back(directory + "/fsx." + std::to_string(options.seed));
  }
  const int result = Run(options, operations);
  if (result == 0) unlink(options.paths[0].c_str());
  return result;
}

}  // namespace
}  // namespace weir::fsx

int main(int argc, char** argv) {
  return weir::fsx::Main(argc, argv);
}
