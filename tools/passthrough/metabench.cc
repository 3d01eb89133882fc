// weir-metabench DIR: how many files a second can be created, looked at, listed, renamed, removed.
//
// N threads, each in a directory of its own under DIR, create files (O_CREAT | O_EXCL, a write when
// a size is given, close) until the time or the number of files is used up; then they stat all of
// them, and again, list the directory with a stat of each entry, and again, rename all of them, and
// remove them. Each phase starts in all threads at once; its rate is the work of all
// threads over the time until the last one is done. The directories are removed at the end.

#include <dirent.h>
#include <fcntl.h>
#include <getopt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace weir::metabench {
namespace {

using Clock = std::chrono::steady_clock;

// What each of them is; the second ones of a kind find in caches what the first ones left there.
constexpr const char* kPhaseNames[] = {"create",     "stat",   "stat_again", "list",
                                       "list_again", "rename", "unlink"};
constexpr int kPhases = std::size(kPhaseNames);

struct Options {
  std::string directory;
  int threads = 1;
  double seconds = 4;       // At most this long in the create phase.
  uint64_t files = 12'000;  // At most this many files, over all threads.
  size_t bytes = 0;         // Written into each file.
};

class Run {
 public:
  explicit Run(const Options& options)
      : options_(options),
        barrier_(options.threads),
        made_(static_cast<size_t>(options.threads)),
        payload_(options.bytes, 'w') {}

  // Prints one line of JSON and returns 0, or prints what failed and returns 1.
  int Execute() {
    std::vector<std::thread> threads;
    threads.reserve(made_.size());
    for (int i = 0; i < options_.threads; ++i) threads.emplace_back([this, i] { Work(i); });
    for (std::thread& thread : threads) thread.join();
    if (failed_) return 1;
    uint64_t files = 0;
    for (const uint64_t made : made_) files += made;
    const auto rate = [&](int phase) {
      const std::chrono::duration<double> took = marks_[phase + 1] - marks_[phase];
      return static_cast<double>(files) / took.count();
    };
    printf("{\"files\":%llu", static_cast<unsigned long long>(files));
    for (int phase = 0; phase < kPhases; ++phase) {
      printf(",\"%s_per_s\":%.1f", kPhaseNames[phase], rate(phase));
    }
    printf("}\n");
    return 0;
  }

 private:
  void Work(int index) {
    const std::string prefix = options_.directory + "/metabench." + std::to_string(index);
    uint64_t& made = made_[static_cast<size_t>(index)];
    if (mkdir(prefix.c_str(), 0755) < 0) Fail("mkdir", prefix);
    Mark(index, 0);
    made = Create(prefix);
    Mark(index, 1);
    for (int look = 0; look < 2; ++look) {
      ForEach(prefix, made, "stat", [](const std::string& path) {
        struct stat attr;
        return stat(path.c_str(), &attr);
      });
      Mark(index, 2 + look);
    }
    for (int look = 0; look < 2; ++look) {
      if (List(prefix) != made) Fail("list", prefix);
      Mark(index, 4 + look);
    }
    ForEach(prefix, made, "rename",
            [](const std::string& path) { return rename(path.c_str(), (path + "r").c_str()); });
    Mark(index, 6);
    ForEach(prefix, made, "unlink",
            [](const std::string& path) { return unlink((path + "r").c_str()); });
    Mark(index, 7);
    if (rmdir(prefix.c_str()) < 0) Fail("rmdir", prefix);
  }

  uint64_t Create(const std::string& prefix) {
    const auto end = Clock::now() + std::chrono::duration<double>(options_.seconds);
    const uint64_t most = options_.files / static_cast<uint64_t>(options_.threads);
    uint64_t made = 0;
    for (; made < most && !failed_ && Clock::now() < end; ++made) {
      const std::string path = prefix + "/f" + std::to_string(made);
      const int fd = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
      if (fd < 0) return Fail("create", path), made;
      const ssize_t put = payload_.empty() ? 0 : write(fd, payload_.data(), payload_.size());
      if (put != static_cast<ssize_t>(payload_.size())) Fail("write", path);
      if (close(fd) < 0) Fail("close", path);
    }
    return made;
  }

  // As `ls -l` does: how many entries there are, each looked at.
  uint64_t List(const std::string& prefix) {
    DIR* directory = opendir(prefix.c_str());
    if (directory == nullptr) return Fail("opendir", prefix), 0;
    uint64_t seen = 0;
    while (const dirent* entry = readdir(directory)) {
      if (entry->d_name[0] == '.') continue;
      struct stat attr;
      if (fstatat(dirfd(directory), entry->d_name, &attr, AT_SYMLINK_NOFOLLOW) < 0) {
        Fail("stat", prefix + "/" + entry->d_name);
      }
      ++seen;
    }
    closedir(directory);
    return seen;
  }

  // Goes on after a failure, so that as much as possible is removed.
  template <typename Call>
  void ForEach(const std::string& prefix, uint64_t count, const char* what, Call call) {
    for (uint64_t i = 0; i < count; ++i) {
      const std::string path = prefix + "/f" + std::to_string(i);
      if (call(path) < 0) Fail(what, path);
    }
  }

  // All threads meet; the first one notes the time.
  void Mark(int index, int mark) {
    barrier_.arrive_and_wait();
    if (index == 0) marks_[mark] = Clock::now();
    barrier_.arrive_and_wait();
  }

  void Fail(const char* what, const std::string& path) {
    const int error = errno;
    if (failed_.exchange(true)) return;
    fprintf(stderr, "weir-metabench: %s '%s': %s\n", what, path.c_str(), strerror(error));
  }

  const Options options_;
  std::barrier<> barrier_;
  std::vector<uint64_t> made_;
  const std::string payload_;
  Clock::time_point marks_[kPhases + 1];
  std::atomic<bool> failed_ = false;
};

constexpr char kHelp[] =
    "usage: weir-metabench DIR [--threads N] [--seconds S] [--files MOST] [--size BYTES]\n"
    "Creates, stats, lists, renames and removes files under DIR and prints the rates as one line "
    "of JSON.\n"
    "example: weir-metabench /mnt/weir --threads 4 --seconds 2\n";

int Main(int argc, char** argv) {
  const option names[] = {
      {"threads", required_argument, nullptr, 't'}, {"seconds", required_argument, nullptr, 's'},
      {"files", required_argument, nullptr, 'f'},   {"size", required_argument, nullptr, 'b'},
      {"help", no_argument, nullptr, 'h'},          {nullptr, 0, nullptr, 0}};
  Options options;
  for (int c = 0; (c = getopt_long(argc, argv, "", names, nullptr)) != -1;) {
    if (c == 'h') return fputs(kHelp, stdout), 0;
    if (c == '?') return fputs(kHelp, stderr), 2;
    if (c == 't') options.threads = atoi(optarg);
    if (c == 's') options.seconds = atof(optarg);
    if (c == 'f') options.files = strtoull(optarg, nullptr, 10);
    if (c == 'b') options.bytes = strtoull(optarg, nullptr, 10);
  }
  if (optind + 1 != argc || options.threads < 1 || options.threads > 1024 || options.files == 0) {
    return fputs(kHelp, stderr), 2;
  }
  options.directory = argv[optind];
  return Run(options).Execute();
}

}  // namespace
}  // namespace weir::metabench

int main(int argc, char** argv) {
  return weir::metabench::Main(argc, argv);
}
