#include "tools/sim/output/report.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <vector>

extern char** environ;

namespace weir::sim {
namespace {

// Ends a child whose standard input this is.
bool WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

Result<pid_t> SpawnReading(int input, const std::vector<std::string>& command) {
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  // NOLINTNEXTLINE(performance-inefficient-vector-operation): one more than the words is reserved
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, words[0], &files, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return Status::FromErrno(error, fmt::format("cannot start {}", command[0]));
  return pid;
}

// Runs the command with `text` as its standard input.
Status RunWith(const std::vector<std::string>& command, const std::string& text) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Status::FromErrno(errno, "cannot make a pipe");
  const auto pid = SpawnReading(ends[0], command);
  close(ends[0]);
  // A child that ends early says why; we must not end of the pipe that it leaves.
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  const bool written = pid.ok() && WriteAll(ends[1], text);
  close(ends[1]);
  std::signal(SIGPIPE, before);
  WEIR_RETURN_IF_ERROR(pid.status());
  int status = 0;
  while (waitpid(*pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (written && WIFEXITED(status) && WEXITSTATUS(status) == 0) return Status::Ok();
  return {ErrorCode::kIo, fmt::format("{} {} failed; it said why", command[0], command[1])};
}

}  // namespace

Result<std::string> FindReportProgram() {
  const auto bin = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::filesystem::path installed = bin / "../share/weirfs/report";
  // build/PRESET/bin, and two levels of it are enough for a build of another name.
  for (const std::filesystem::path& place :
       {installed, bin / "../../../tools/lib/report", bin / "../../tools/lib/report"}) {
    const auto normal = place.lexically_normal();
    if (std::filesystem::exists(normal / "__main__.py")) return normal.string();
  }
  return {ErrorCode::kNotFound,
          fmt::format("the program that draws the report is not in '{}'; `cmake --install` puts "
                      "it there",
                      installed.lexically_normal().string())};
}

Status WriteReport(const ReportOptions& options, const std::string& document) {
  WEIR_ASSIGN_OR_RETURN(const std::string program, FindReportProgram());
  std::vector<std::string> command{"python3", program, "--output", options.output, "--sim"};
  command.push_back(options.from.empty() ? "-" : options.from);
  if (!options.live.empty()) command.insert(command.end(), {"--live", options.live});
  if (!options.plots.empty()) {
    command.insert(command.end(), {"--plots", options.plots, "--plot-format", options.format});
  }
  return RunWith(command, document);
}

}  // namespace weir::sim
